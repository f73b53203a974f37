"""A fleet's Kubernetes API on loopback, and somebody who asks it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from triage.lab.cluster.api import ClusterServer
from triage.lab.cluster.history import History
from triage.lab.fleets import COMPANION, workload_named
from triage.lab.serving.pace import Pace
from triage.lab.world.replica import Replica
from triage.lab.world.world import World

RECORDED = Path(__file__).parents[1] / "data" / "recordings" / "kubernetes"
TOKEN = "lab-cluster-token"
PODS = "/api/v1/namespaces/lab/pods"
Patience = Callable[[], asyncio.Timeout]


class Town:
    """A fleet in real time, its API server, and somebody who asks it."""

    def __init__(self, server: ClusterServer, world: World, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.world = world
        self.session = session

    def replica(self, name: str) -> Replica:
        return next(one for one in self.world.replicas if one.name == name)

    async def ask(self, path: str, method: str = "GET", token: str = TOKEN, **query: str | int) -> tuple[int, Any]:
        """Status and body, JSON where it is."""
        async with self.open(path, method, token, **query) as response:
            text = await response.text()
            return response.status, json.loads(text) if response.content_type == "application/json" else text

    @asynccontextmanager
    async def open(
        self, path: str, method: str = "GET", token: str = TOKEN, **query: str | int
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.session.request(
            method, self.server.url + path, params=query, headers=headers, json={} if method == "POST" else None
        ) as response:
            yield response


@asynccontextmanager
async def open_town() -> AsyncIterator[Town]:
    """The chat fleet at 20 s, asked over HTTP."""
    world = World([*workload_named("chat").services, COMPANION], "api", 1_764_800_000.0)
    history = History(world)
    world.advance(20.0)
    ports = {replica.name: 40_001 + place for place, replica in enumerate(world.replicas)}
    server = ClusterServer(world, Pace(world), ports, TOKEN, history)
    await server.start()
    async with aiohttp.ClientSession() as session:
        yield Town(server, world, session)
    await server.close()


def recorded(name: str) -> Any:
    return json.loads((RECORDED / name).read_text())


async def next_event(response: aiohttp.ClientResponse) -> Any:
    return json.loads(await response.content.readline())


async def events_until(response: aiohttp.ClientResponse, wanted: Callable[[Any], bool]) -> Any:
    while not wanted(event := await next_event(response)):
        pass
    return event
