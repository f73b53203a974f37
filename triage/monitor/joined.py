"""Targets that are scraped directly and a monitoring server beside them, as one source."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from triage.domain.monitoring import MonitoringReading
from triage.domain.reading import Scrape
from triage.domain.target import Target

# How long the direct scrapes, which are complete, wait for the server: what comes later belongs to the next round.
_GRACE_S = 0.5


class Source(Protocol):
    """What is joined."""

    @property
    def targets(self) -> Sequence[Target]: ...

    async def read(self) -> Sequence[Scrape | MonitoringReading]: ...

    async def close(self) -> None: ...


class Joined:
    """A slow server holds up nobody: its answer is taken when it is there."""

    def __init__(self, direct: Source, server: Source) -> None:
        self._direct = direct
        self._server = server
        self._asked: asyncio.Task[Sequence[Scrape | MonitoringReading]] | None = None

    @property
    def targets(self) -> Sequence[Target]:
        return self._direct.targets

    async def read(self) -> Sequence[Scrape | MonitoringReading]:
        """The direct scrapes of now, and what the server has answered meanwhile."""
        if self._asked is None:
            self._asked = asyncio.create_task(self._server.read())
        scrapes = await self._direct.read()
        await asyncio.wait([self._asked], timeout=_GRACE_S)
        if not self._asked.done():
            return scrapes
        asked, self._asked = self._asked, None
        return [*scrapes, *asked.result()]

    async def close(self) -> None:
        if self._asked is not None:
            self._asked.cancel()
            await asyncio.gather(self._asked, return_exceptions=True)
        await self._direct.close()
        await self._server.close()
