"""A real engine of one's own, driven from idle into a queue: `TRIAGE_TEST_VLLM_URL=… pytest -m vllm`.

The engine runs at most two sequences at once, as in the recordings; nothing else may use it meanwhile.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.integration.question import budget
from triage.domain.limits import Limits
from triage.domain.target import Target
from triage.domain.verdict import Confidence, Diagnosis, Kind, Verdict
from triage.gate import Access, Gate
from triage.monitor.monitor import Monitor
from triage.probing.measure import list_models, measure
from triage.probing.prober import EngineProber
from triage.sources.engine_scrape import EngineScrape

_INTERVAL_S = 2.0
_WINDOW_S = 16.0
_CLIENTS = 12
_LONG = budget(max_tokens=300, total_s=300.0)
_PATIENCE_S = 240.0

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)

pytestmark = [
    pytest.mark.parametrize(
        "variable",
        [
            pytest.param("TRIAGE_TEST_VLLM_URL", marks=pytest.mark.vllm, id="vllm"),
            pytest.param("TRIAGE_TEST_SGLANG_URL", marks=pytest.mark.sglang, id="sglang"),
        ],
    )
]


@pytest.fixture
def url(variable: str) -> str:
    found = os.environ.get(variable)
    if not found:
        pytest.skip(f"{variable} is not set")
    return found


@asynccontextmanager
async def watching(gate: Gate, url: str) -> AsyncIterator[Monitor]:
    pairs = [(Target("engine", url), Access(url))]
    monitor = Monitor(
        EngineScrape(gate, pairs),
        name="real",
        limits=Limits(),
        window_s=_WINDOW_S,
        interval_s=_INTERVAL_S,
        prober=EngineProber(gate, pairs, lambda: budget(max_tokens=64)),
    )
    running = asyncio.create_task(monitor.run())
    try:
        yield monitor
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await monitor.close()


@asynccontextmanager
async def crowd(gate: Gate, url: str) -> AsyncIterator[None]:
    """Twelve people who ask again as soon as they were answered."""
    async with asyncio.timeout(_PATIENCE_S):
        client = gate.client(Access(url))
        models = await list_models(client)
        await client.close()
    assert isinstance(models, tuple)
    assert models

    async def ask() -> None:
        own = gate.client(Access(url))
        try:
            while True:
                await measure(own, Target("engine", url), models[0], _LONG)
        finally:
            await own.close()

    asking = [asyncio.create_task(ask()) for _ in range(_CLIENTS)]
    try:
        yield
    finally:
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def first(monitor: Monitor, kind: Kind, confidences: tuple[Confidence, ...]) -> Verdict:
    """The first verdict once it is of this kind; every other one that is sure is a failure."""
    sequence = 0
    seen: Diagnosis | None = None
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                observation = await monitor.newer_than(sequence)
                sequence, seen = observation.sequence, observation.diagnosis
                verdict = seen.verdicts[0]
                if verdict.kind is kind and verdict.confidence in confidences:
                    return verdict
                assert verdict.kind in (kind, Kind.HEALTHY) or verdict.confidence not in SURE, verdict
    except TimeoutError:
        pytest.fail(f"never {kind.value}; the last diagnosis was {seen}")


async def test_an_idle_engine_that_answers_a_probe_is_healthy(url: str, gate: Gate) -> None:
    async with watching(gate, url) as monitor:
        await monitor.probe(lambda _: None)
        # Random weights may think all of the probe's tokens long: then nobody knows when text would come.
        await first(monitor, Kind.HEALTHY, SURE)


async def test_more_people_than_sequences_are_a_queue(url: str, gate: Gate) -> None:
    async with watching(gate, url) as monitor, crowd(gate, url):
        verdict = await first(monitor, Kind.QUEUEING, SURE)
        assert verdict.detail in ("sequence-limit", None)  # which limit it is shows when the batch stayed full
        assert verdict.share is not None
        assert verdict.share.value > 0.5
