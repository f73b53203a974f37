"""One HTTP port on loopback that can be closed and opened again, as a process that dies and is started again."""

from typing import Any

import msgspec
from aiohttp import web

# Open answers get this long to end when a port is closed; then they are cut.
_SHUTDOWN_S = 0.1


class Listener:
    """app: built anew for each opening, since a process that died keeps nothing. port: stays the same."""

    def __init__(self) -> None:
        self.port = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def open(self) -> bool:
        return self._runner is not None

    def app(self) -> web.Application:
        raise NotImplementedError

    async def start(self) -> None:
        """OSError when there is no port to listen on."""
        # Without handler_cancellation a client that leaves while it queues would be served all the same.
        runner = web.AppRunner(self.app(), access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_S)
        self._runner = runner
        try:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", self.port).start()
        except OSError:
            await self.close()
            raise
        self.port = int(runner.addresses[0][1])

    async def close(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()


def as_json(payload: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(payload), status=status, content_type="application/json")


def cut(request: web.Request) -> None:
    """Close the connection under an answer."""
    if request.transport is not None:
        request.transport.close()
