"""The DCGM exporter of one node, over HTTP."""

from aiohttp import web

from triage.lab.cluster.dcgm_page import dcgm_page
from triage.lab.cluster.gpu_load import GpuMeter
from triage.lab.serving.listener import Listener
from triage.lab.serving.pace import Pace
from triage.lab.world.replica import Replica
from triage.lab.world.world import World

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class GpuExporter(Listener):
    """Of the node that the replica's devices are in."""

    def __init__(self, world: World, replica: Replica, pace: Pace) -> None:
        super().__init__()
        self._world = world
        self._meter = GpuMeter(replica)
        self._pace = pace

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        return app

    async def _metrics(self, request: web.Request) -> web.Response:  # noqa: ARG002 - the handler's signature
        page = dcgm_page(self._world, self._meter, self._pace.catch_up())
        return web.Response(body=page.encode(), headers={"Content-Type": _TYPE})
