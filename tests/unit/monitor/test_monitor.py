"""The loop: publishes each round, wakes listeners, survives a failing probe, ends when cancelled."""

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest

from tests.factory import reading
from triage.diagnosis.diagnose import diagnose
from triage.domain.errors import TriageError
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import PageReading, Scrape
from triage.domain.situation import Situation
from triage.domain.stream import ProbeReading, StreamReading
from triage.domain.target import Target
from triage.domain.verdict import Diagnosis
from triage.monitor.monitor import LONGEST_INTERVAL_S, SHORTEST_INTERVAL_S, Monitor

A = Target("a", "http://a")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Source:
    """Each read takes half a second of the clock and finds ten tokens for each of its seconds."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.targets: Sequence[Target] = [A]
        self.rounds = 0
        self.closed = False

    async def read(self) -> list[Scrape]:
        self.rounds += 1
        self.clock.now += 0.5
        own = reading({Q.RUNNING: 1, Q.GENERATION_TOKENS: 10 * self.clock.now})
        return [Scrape(A, self.clock.now, 0.0, PageReading(A, "a", self.clock.now, (own,), (), frozenset({"x"})), None)]

    async def close(self) -> None:
        self.closed = True


class FailingProber:
    def __init__(self) -> None:
        self.calls = 0
        self.suspects: list[tuple[str, str]] = []

    def cost(self) -> str:
        return "1 request"

    async def probe(
        self, progress: Callable[[str], None], suspects: Sequence[tuple[str, str]] = ()
    ) -> list[tuple[ProbeReading, StreamReading | None]]:
        self.calls += 1
        self.suspects = list(suspects)
        raise TriageError("no probe", "refused")

    async def close(self) -> None: ...


def monitor(source: Source, clock: Clock, **options: object) -> Monitor:
    return Monitor(source, name="t", limits=Limits(), interval_s=0.5, clock=clock, **options)  # type: ignore[arg-type]


async def test_each_round_is_a_newer_observation() -> None:
    clock = Clock()
    source = Source(clock)
    loop = monitor(source, clock)
    first = await loop.round()
    second = await loop.round()
    assert (first.sequence, second.sequence) == (1, 2)
    assert second.situation.replicas[0].window.rate(Q.GENERATION_TOKENS) == 10.0
    assert loop.latest() is second


async def test_listeners_wake_and_cancel_ends_the_loop() -> None:
    clock = Clock()
    source = Source(clock)
    loop = monitor(source, clock)
    task = asyncio.create_task(loop.run())
    seen = await asyncio.wait_for(loop.newer_than(0), 5)
    loop.refresh()
    newer = await asyncio.wait_for(loop.newer_than(seen.sequence), 5)
    assert newer.sequence > seen.sequence
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await loop.close()
    assert source.closed


async def test_a_failing_probe_does_not_end_the_loop() -> None:
    clock = Clock()
    prober = FailingProber()
    loop = monitor(Source(clock), clock, prober=prober, probe_every_s=0.01)
    task = asyncio.create_task(loop.run())
    while prober.calls < 2:
        await asyncio.wait_for(loop.newer_than(0), 5)
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class StillSource(Source):
    """It says that work is inside, for ever, while its process runs."""

    async def read(self) -> list[Scrape]:
        self.clock.now += 30.0
        own = reading({Q.RUNNING: 4.0, Q.WAITING: 0.0, Q.GENERATION_TOKENS: 9.0, Q.PROCESS_CPU: self.clock.now})
        page = PageReading(A, "a", self.clock.now, (own,), (), frozenset({"x"}))
        return [Scrape(A, self.clock.now, 0.0, page, None)]


@pytest.mark.parametrize(("source", "named"), [(Source, False), (StillSource, True)])
async def test_who_stands_still_is_asked_itself(source: type[Source], named: bool) -> None:
    clock, prober = Clock(), FailingProber()
    loop = Monitor(
        source(clock), name="t", limits=Limits(), window_s=120.0, interval_s=30.0, clock=clock, prober=prober
    )
    for _ in range(4):
        await loop.round()
    with pytest.raises(TriageError):
        await loop.probe(lambda _: None)
    assert bool(prober.suspects) is named
    assert {name for name, _ in prober.suspects} <= {A.name}


async def test_a_round_that_fails_is_told_and_the_next_one_goes_on() -> None:
    clock = Clock()
    source = Source(clock)
    working = source.read

    async def broken() -> list[Scrape]:
        raise RuntimeError("a bug in a source")

    source.read = broken  # type: ignore[method-assign]
    loop = monitor(source, clock)
    task = asyncio.create_task(loop.run())
    with pytest.raises(RuntimeError, match="a bug in a source"):
        await asyncio.wait_for(loop.newer_than(0), 5)
    source.read = working  # type: ignore[method-assign]
    loop.refresh()
    assert (await asyncio.wait_for(loop.newer_than(0), 5)).sequence == 1
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_without_a_prober_a_probe_is_a_clear_error() -> None:
    clock = Clock()
    with pytest.raises(TriageError, match="no probe"):
        await monitor(Source(clock), clock).probe(lambda _: None)


async def test_the_interval_is_bounded() -> None:
    clock = Clock()
    loop = monitor(Source(clock), clock)
    loop.set_interval(0.0)
    assert loop.interval_s == SHORTEST_INTERVAL_S
    loop.set_interval(1e9)
    assert loop.interval_s == LONGEST_INTERVAL_S


async def test_the_loop_goes_on_while_a_round_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are answered by the loop: a judgement that takes long must not hold it."""
    alive = threading.Event()

    def patient(situation: Situation) -> Diagnosis:
        assert alive.wait(10), "the loop stood still"
        return diagnose(situation)

    monkeypatch.setattr("triage.monitor.monitor.diagnose", patient)
    monitor = Monitor(Source(Clock()), name="a", limits=Limits())
    judged = asyncio.create_task(monitor.round())
    asyncio.get_running_loop().call_later(0.01, alive.set)
    assert (await judged).sequence == 1


async def test_a_probe_that_could_not_be_sent_is_told_as_such() -> None:
    """Not as "not configured", and not with the advice to send one."""
    monitor = Monitor(Source(Clock()), name="a", limits=Limits(), prober=FailingProber())
    with pytest.raises(TriageError):
        await monitor.probe(lambda _: None)
    (probe,) = [seen for seen in (await monitor.round()).situation.not_seen if seen.source == "probe"]
    assert "refused" in probe.why
