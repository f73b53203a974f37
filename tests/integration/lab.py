"""One simulated engine, and a whole fleet, behind real HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import msgspec

from tests.unit.lab.conftest import ParsedFamily, parse
from triage.lab.fleets import workload_named
from triage.lab.load.shapes import CHAT
from triage.lab.load.spread import Spread
from triage.lab.pages.forms import Flavour
from triage.lab.serving.engine_server import EngineServer
from triage.lab.serving.fleet import Fleet
from triage.lab.serving.pace import Pace
from triage.lab.world.replica import Replica
from triage.lab.world.watch import Watch
from triage.lab.world.world import World

STARTED = 1_764_800_000.0
MODEL = "llama-3.1-8b"


class Served:
    """A replica, its server and a client."""

    def __init__(self, world: World, server: EngineServer, client: aiohttp.ClientSession) -> None:
        self.world = world
        self.server = server
        self.replica: Replica = server.replica
        self.client = client

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def started(self) -> float:
        """Unix seconds at which its process began."""
        return STARTED + self.replica.started

    def condition(self, **changes: float) -> None:
        self.replica.change(msgspec.structs.replace(self.replica.condition, **changes), self.world.now)

    def page(self) -> dict[str, ParsedFamily]:
        return parse(self.replica.page(self.world.now))

    async def post(self, path: str = "/v1/chat/completions", **body: Any) -> tuple[int, Any]:
        payload = {"model": MODEL, "messages": [{"role": "user", "content": "hello there"}], **body}
        async with self.client.post(self.url + path, json=payload) as answer:
            return answer.status, await read(answer)


async def read(answer: aiohttp.ClientResponse) -> Any:
    """The events of a stream, or the body."""
    if answer.content_type == "text/event-stream":
        return events(await answer.text())
    return json.loads(await answer.read())


def events(text: str) -> list[Any]:
    """The data of each event, [DONE] as it is. Everything in the stream must be an event."""
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    assert all(block.startswith("data: ") for block in blocks)
    return [block[6:] if block == "data: [DONE]" else json.loads(block[6:]) for block in blocks]


@asynccontextmanager
async def serving(flavour: Flavour = Flavour.VLLM, speed: float = 20.0, **limits: object) -> AsyncIterator[Served]:
    """Without users: an outside request gets 5 tokens of reasoning and 60 of text."""
    (service,) = workload_named("chat").services
    spec = next(one for one in service.replicas if one.flavour is flavour)
    spec = msgspec.structs.replace(spec, settings=msgspec.structs.replace(spec.settings, noise=0.0, **limits))
    shape = msgspec.structs.replace(CHAT, reasoning=Spread(5, 0.0, 5, 5))
    world = World([msgspec.structs.replace(service, replicas=(spec,), users=0, shape=shape)], "served", STARTED)
    pace = Pace(world, speed)
    server = EngineServer(world.services[0], world.replicas[0], Watch(), pace)
    await server.start()
    pacing = asyncio.create_task(pace.run())
    try:
        async with aiohttp.ClientSession() as client:
            yield Served(world, server, client)
    finally:
        await server.close()
        pacing.cancel()
        with suppress(asyncio.CancelledError):
            await pacing


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what it waits for happens inside an engine without events
            await asyncio.sleep(0.005)


class Answer(msgspec.Struct, frozen=True):
    """What a client saw: cut when the connection ended before the answer did."""

    status: int
    cut: bool
    data: list[Any]


async def ask(client: aiohttp.ClientSession, fleet: Fleet, *, key: bool = True, **body: Any) -> Answer:
    """One streamed question through the gateway of the fleet's first model."""
    gateway = fleet.gateways[0]
    headers = {"Authorization": f"Bearer {fleet.key_file.read_text()}"} if key else {}
    payload = {"model": gateway.model, "messages": [{"role": "user", "content": "hello"}], "stream": True, **body}
    async with client.post(gateway.url + "/v1/chat/completions", json=payload, headers=headers) as answer:
        if answer.content_type != "text/event-stream":
            return Answer(answer.status, False, [await answer.text()])
        got = b""
        try:
            async for piece in answer.content.iter_any():
                got += piece
        except aiohttp.ClientPayloadError:
            return Answer(answer.status, True, [])
        return Answer(answer.status, False, events(got.decode()))
