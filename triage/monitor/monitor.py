"""Polls the sources, feeds the store, diagnoses, and wakes whoever listens."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from triage.diagnosis.diagnose import diagnose
from triage.domain.errors import TriageError
from triage.domain.limits import Limits
from triage.domain.monitoring import MonitoringReading
from triage.domain.quantity import Quantity
from triage.domain.reading import Scrape
from triage.domain.situation import NotSeen
from triage.domain.stream import ProbeReading, StreamReading
from triage.domain.target import Target
from triage.domain.verdict import Kind
from triage.monitor.observation import Observation
from triage.situation.store import Store

# Shorter intervals cost the engines more than they tell: gauges are written once a step, logs once in ten seconds.
SHORTEST_INTERVAL_S = 0.5
LONGEST_INTERVAL_S = 300.0


# A page that has stopped is that of a stalled engine, of a dead one, or a stale copy.
_TOLD_BY_A_QUESTION = (Kind.ENGINE_STALLED, Kind.ENGINE_DEAD, Kind.METRICS_FROZEN)
_MOST_SUSPECTS = 3


class ScrapeSource(Protocol):
    """What the monitor polls."""

    @property
    def targets(self) -> Sequence[Target]: ...

    async def read(self) -> Sequence[Scrape | MonitoringReading]: ...

    async def close(self) -> None: ...


class Prober(Protocol):
    """What sends the announced probe, if anything may."""

    def cost(self) -> str: ...

    async def probe(
        self, progress: Callable[[str], None], suspects: Sequence[tuple[str, str]] = ()
    ) -> list[tuple[ProbeReading, StreamReading | None]]: ...

    async def close(self) -> None: ...


class Monitor:
    """One loop over one set of sources. Implements `Feed`.

    clock gives unix seconds; it is a parameter so that tests and replay can hold time.
    """

    def __init__(
        self,
        source: ScrapeSource,
        *,
        name: str,
        limits: Limits,
        window_s: float = 30.0,
        interval_s: float = 5.0,
        prober: Prober | None = None,
        probe_every_s: float | None = None,
        not_seen: Sequence[NotSeen] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self._source = source
        self._prober = prober
        self._probe_every_s = probe_every_s
        self._not_seen = tuple(not_seen)
        self._clock = clock
        self._interval_s = interval_s
        self._store = Store(source.targets, window_s=window_s, limits=limits)
        self._latest: Observation | None = None
        self._fresh = asyncio.Condition()
        self._wake = asyncio.Event()
        self._failure: Exception | None = None

    # ---- the loop

    async def run(self) -> None:
        """Poll until cancelled. A round that takes longer than the interval is followed at once by the next.

        A round that fails is told to the listener and followed by the next: the screen must not go quiet.
        """
        automatic = (
            asyncio.create_task(self._probe_regularly(self._probe_every_s)) if self._probe_every_s is not None else None
        )
        try:
            while True:
                started = time.monotonic()
                try:
                    await self.round()
                except Exception as error:  # whatever it is: newer_than() raises it, the loop goes on
                    async with self._fresh:
                        self._failure = error
                        self._fresh.notify_all()
                self._wake.clear()
                rest = self._interval_s - (time.monotonic() - started)
                if rest > 0:
                    try:
                        await asyncio.wait_for(self._wake.wait(), rest)
                    except TimeoutError:
                        continue
        finally:
            if automatic is not None:
                automatic.cancel()
                await asyncio.gather(automatic, return_exceptions=True)

    def remember(self, scrapes: Sequence[Scrape]) -> None:
        """What was read before the monitor began; of each target the oldest first."""
        self._store.add(scrapes)

    async def round(self) -> Observation:
        """Scrape once, judge, publish."""
        self._store.add(await self._source.read())
        at = self._clock()
        # In a thread: a thousand replicas take a quarter of a second, in which keys must be answered.
        observation = await asyncio.to_thread(self._judge, at)
        async with self._fresh:
            self._latest = observation
            self._fresh.notify_all()
        return observation

    def _judge(self, at: float) -> Observation:
        situation = self._store.situation(at, self._interval_s, self._not_seen)
        sequence = self._latest.sequence + 1 if self._latest else 1
        return Observation(sequence, at, situation, diagnose(situation))

    async def close(self) -> None:
        await self._source.close()
        if self._prober is not None:
            await self._prober.close()

    # ---- Feed

    @property
    def interval_s(self) -> float:
        return self._interval_s

    def latest(self) -> Observation | None:
        return self._latest

    async def newer_than(self, sequence: int) -> Observation:
        """Raises, once, what made a round fail."""

        def ready() -> bool:
            newer = self._latest is not None and self._latest.sequence > sequence
            return newer or self._failure is not None

        async with self._fresh:
            await self._fresh.wait_for(ready)
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            assert self._latest is not None
            return self._latest

    def trail(self, target: str, quantity: Quantity) -> tuple[tuple[float, float], ...]:
        return self._store.trail(target, quantity)

    def refresh(self) -> None:
        self._wake.set()

    def set_interval(self, seconds: float) -> None:
        self._interval_s = min(max(seconds, SHORTEST_INTERVAL_S), LONGEST_INTERVAL_S)
        self._wake.set()

    async def probe(self, progress: Callable[[str], None]) -> str:
        if self._prober is None:
            raise TriageError("no probe", "no target can be probed", "give an engine's base URL as --target")
        try:
            results = await self._prober.probe(progress, self._suspects())
        except TriageError as error:
            self._store.probe_failed(str(error))
            raise
        at = self._clock()
        for probe, stream in results:
            self._store.add_probe(at, probe, stream)
        self.refresh()
        return _told(results)

    def _suspects(self) -> list[tuple[str, str]]:
        """Replicas of which only a question to themselves tells whether they live; each with its model."""
        if self._latest is None:
            return []
        doubted = [
            (verdict.scope.replica, verdict.scope.model)
            for verdict in self._latest.diagnosis.verdicts
            if verdict.kind in _TOLD_BY_A_QUESTION
        ]
        # One verdict may stand for several replicas; it names the worst.
        return [(replica, model) for replica, model in doubted if replica and model][:_MOST_SUSPECTS]

    def probe_cost(self) -> str:
        return self._prober.cost() if self._prober is not None else "nothing can be probed"

    async def _probe_regularly(self, every_s: float) -> None:
        """Keeps a streamed answer at hand where that was announced (the demo)."""
        while True:
            try:
                await self.probe(lambda _: None)
            except TriageError:
                pass  # the next round tries again; the missing probe shows under "not seen"
            await asyncio.sleep(every_s)


def _told(results: Sequence[tuple[ProbeReading, StreamReading | None]]) -> str:
    parts = []
    for probe, stream in results:
        if stream is not None and stream.first_visible_s is not None:
            parts.append(f"{probe.target}: first visible token after {stream.first_visible_s:.2f} s")
        elif stream is not None:
            parts.append(f"{probe.target}: no visible token ({stream.completeness.value})")
        else:
            parts.append(f"{probe.target}: {probe.error or probe.status or 'no answer'}")
    return "; ".join(parts)
