"""The running lab: four simulated engines on loopback, and the incident they are in."""

import asyncio
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from triage.domain.errors import TriageError
from triage.lab.incidents import HEALTHY, INCIDENTS, REPLICAS, Incident, incident_named
from triage.lab.pacing import Pacer
from triage.lab.replica import Replica
from triage.lab.server import EngineServer

# Simulated before the first scrape, so that lifetime means exist and an incident is under way.
_HEALTHY_S = 600.0
_INCIDENT_S = 45.0


class LabTarget(msgspec.Struct, frozen=True):
    """One simulated engine to look at. url: its base URL, without a path."""

    name: str
    url: str
    model: str


class IncidentInfo(msgspec.Struct, frozen=True):
    """An incident that can be switched to. cause: the verdict word a right diagnosis gives."""

    name: str
    title: str
    cause: str


class Fleet:
    """`async with Fleet() as fleet: await fleet.start("queueing")`. Everything runs in one event loop.

    seed: the same seed gives the same history before the start. speed: virtual seconds per real second.
    """

    def __init__(self, seed: int = 1, speed: float = 1.0) -> None:
        self._seed = seed
        self._speed = speed
        self._incident = HEALTHY
        self._replicas: list[Replica] = []
        self._servers: list[EngineServer] = []
        self._pacer: Pacer | None = None
        self._pacing: asyncio.Task[None] | None = None

    @staticmethod
    def incidents() -> tuple[IncidentInfo, ...]:
        """What `start` and `switch` know."""
        return tuple([IncidentInfo(one.name, one.title, one.cause) for one in INCIDENTS])

    @property
    def incident(self) -> str:
        return self._incident.name

    @property
    def targets(self) -> tuple[LabTarget, ...]:
        """Empty unless running."""
        return tuple(
            [
                LabTarget(replica.spec.name, server.url, replica.spec.model)
                for replica, server in zip(self._replicas, self._servers, strict=True)
            ]
        )

    async def start(self, incident: str = HEALTHY.name) -> None:
        """Simulate the past, then serve in real time. Ready when it returns.

        TriageError: unknown incident, already running, or no port to listen on.
        """
        chosen = incident_named(incident)
        if self._pacer is not None:
            raise TriageError("The lab is already running", hint="use switch to change the incident")
        # In a thread: over half a second of computing, during which a screen may want to draw.
        replicas = await asyncio.to_thread(_past, self._seed, chosen)
        self._incident = chosen
        self._pacer = Pacer(replicas, self._speed)
        started = time.time() - replicas[0].now
        try:
            for replica in replicas:
                server = EngineServer(replica, started, self._pacer.catch_up)
                self._replicas.append(replica)
                self._servers.append(server)
                await server.start()
        except OSError as error:
            await self.close()
            raise TriageError("The lab cannot listen on 127.0.0.1", str(error)) from error
        self._pacing = asyncio.create_task(self._pacer.run())

    def switch(self, incident: str) -> None:
        """Begin another incident now. TriageError when it is unknown or the lab is not running."""
        chosen = incident_named(incident)
        if self._pacer is None:
            raise TriageError("The lab is not running", hint="start it first")
        self._pacer.catch_up()
        self._incident = chosen
        for replica in self._replicas:
            replica.apply(chosen)

    async def close(self) -> None:
        """Stop serving; open answers are cut. Can be called at any time, and again."""
        pacing, servers = self._pacing, self._servers
        self._pacing = self._pacer = None
        self._servers, self._replicas = [], []
        await asyncio.gather(*[server.close() for server in servers])
        if pacing is not None:
            pacing.cancel()
            with suppress(asyncio.CancelledError):
                await pacing

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _past(seed: int, incident: Incident) -> list[Replica]:
    replicas = [Replica(spec, HEALTHY, seed) for spec in REPLICAS]
    for replica in replicas:
        replica.advance(_HEALTHY_S)
        if incident is not HEALTHY:
            replica.apply(incident)
            replica.advance(_HEALTHY_S + _INCIDENT_S)
    return replicas
