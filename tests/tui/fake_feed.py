"""A feed whose rounds the test hands out."""

import asyncio
from collections.abc import Callable

from triage.domain.quantity import Quantity
from triage.monitor.observation import Observation


class FakeFeed:
    """A Feed whose rounds the test publishes; keeps count of what was asked of it."""

    def __init__(self, first: Observation | None = None, *, name: str = "prod-eu") -> None:
        self.name = name
        self.interval_s = 5.0
        self.trails: dict[str, dict[Quantity, tuple[tuple[float, float], ...]]] = {}
        self.refreshed = 0
        self.probes = 0
        self.asked = 0
        self.error: Exception | None = None
        self.release_probe = asyncio.Event()
        self._latest = first
        self._news = asyncio.Event()

    def latest(self) -> Observation | None:
        return self._latest

    def publish(self, observation: Observation) -> None:
        self.error = None
        self._latest = observation
        self._news.set()

    def fail(self, error: Exception) -> None:
        self.error = error
        self._news.set()

    async def newer_than(self, sequence: int) -> Observation:
        self.asked += 1
        while True:
            if self.error is not None:
                raise self.error
            if self._latest is not None and self._latest.sequence > sequence:
                return self._latest
            self._news.clear()
            await self._news.wait()

    def trail(self, target: str, quantity: Quantity) -> tuple[tuple[float, float], ...]:
        return self.trails.get(target, {}).get(quantity, ())

    def refresh(self) -> None:
        self.refreshed += 1

    def set_interval(self, seconds: float) -> None:
        self.interval_s = seconds

    async def probe(self, progress: Callable[[str], None]) -> str:
        self.probes += 1
        progress("cold request to vllm-7f9-abc")
        await self.release_probe.wait()
        progress("warm request to vllm-7f9-abc")
        return "answered whole: first token 0.4 s"

    def probe_cost(self) -> str:
        return "2 requests, at most 400 tokens each"
