"""Child process: the monitor on engines whose ports come as JSON on standard input.

`python -m tests.bench.watching ROUNDS` writes one JSON object, the fields of Watched.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from tests.bench.measure import resident_mib
from triage.config import parse_target
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.reading import EngineReading, PageReading, Role, Scrape
from triage.domain.target import Target, TargetState
from triage.gate import Gate
from triage.monitor.monitor import Monitor
from triage.sources.descriptors import raise_descriptor_limit
from triage.sources.engine_scrape import EngineScrape

_INTERVAL_S: Final = 5.0
_WINDOW_S: Final = 30.0
_HISTORY_S: Final = 3600.0
# Rounds of history that are handed over at once.
_AT_ONCE: Final = 24
_TRAILED: Final = (Quantity.RUNNING, Quantity.WAITING, Quantity.KV_USAGE, Quantity.GENERATION_TOKENS)


class Watched(NamedTuple):
    """cpu_s: user and system, over wall_s. latest_s: how late the latest round came.

    missed: rounds that came more than half an interval late. unanswered: targets that were not OK, summed over
    the rounds. gaps: holes in the windows of the last round.
    """

    interval_s: float
    wall_s: float
    cpu_s: float
    first_s: float
    latest_s: float
    missed: int
    unanswered: int
    gaps: int
    resident_mib: float


class _AfterAnHour:
    """The live source, behind an hour of scrapes that came before."""

    def __init__(self, live: EngineScrape) -> None:
        self._live = live
        rounds = int(_HISTORY_S / _INTERVAL_S)
        self._past = [_INTERVAL_S * (place - rounds) for place in range(rounds)]

    @property
    def targets(self) -> Sequence[Target]:
        return self._live.targets

    async def read(self) -> list[Scrape]:
        if not self._past:
            return await self._live.read()
        at, self._past = self._past[:_AT_ONCE], self._past[_AT_ONCE:]
        now = time.time()
        return [_old(target, now + ago) for ago in at for target in self.targets]

    @property
    def in_the_past(self) -> bool:
        return bool(self._past)

    async def close(self) -> None:
        await self._live.close()


def _old(target: Target, at: float) -> Scrape:
    """Only what is kept for an hour; every number is an object of its own, as it is after a real scrape."""
    values = {quantity: at + place for place, quantity in enumerate(_TRAILED)}
    reading = EngineReading(
        target.name, "/metrics", at, "vllm", "v1", "", "bench-model", Role.MIXED, values, {}, {}, (), frozenset(), {}
    )
    return Scrape(target, at, 0.01, PageReading(target, "/metrics", at, (reading,), (), frozenset()), None)


async def watch(ports: Sequence[int], rounds: int) -> Watched:
    crowded = raise_descriptor_limit(len(ports))
    if crowded:
        sys.exit(crowded)
    parsed = [parse_target(f"vllm-{place}=http://127.0.0.1:{port}") for place, port in enumerate(ports)]
    source = _AfterAnHour(EngineScrape(Gate(), [(one.target, one.access) for one in parsed]))
    monitor = Monitor(source, name="bench", limits=Limits(), window_s=_WINDOW_S, interval_s=_INTERVAL_S)
    while source.in_the_past:
        await monitor.round()
    started = time.monotonic()
    loop = asyncio.create_task(monitor.run())
    try:
        seen = await monitor.newer_than(_sequence(monitor))
        first_s = time.monotonic() - started
        before, cpu_before = time.monotonic(), _cpu_s()
        arrived = [before]
        unanswered = gaps = 0
        for _ in range(rounds):
            seen = await monitor.newer_than(seen.sequence)
            arrived.append(time.monotonic())
            unanswered += sum(status.state is not TargetState.OK for status in seen.situation.targets)
            gaps = sum(replica.window.gaps for replica in seen.situation.replicas)
        wall_s, cpu_s = time.monotonic() - before, _cpu_s() - cpu_before
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        await monitor.close()
    late = [now - then - _INTERVAL_S for then, now in pairwise(arrived)]
    missed = sum(one > _INTERVAL_S / 2 for one in late)
    return Watched(_INTERVAL_S, wall_s, cpu_s, first_s, max(late), missed, unanswered, gaps, resident_mib())


def _sequence(monitor: Monitor) -> int:
    latest = monitor.latest()
    return latest.sequence if latest is not None else 0


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps(asyncio.run(watch(json.load(sys.stdin), int(sys.argv[1])))._asdict()))
