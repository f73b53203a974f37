"""A real engine: scraped, driven into queueing, probed."""

import asyncio
from collections.abc import Callable

from tests.integration.llama import SLOTS
from tests.integration.question import budget
from triage.domain.quantity import Quantity
from triage.domain.reading import EngineReading
from triage.domain.stream import Completeness
from triage.domain.target import Failure, FailureReason, Target
from triage.gate import Access, Gate
from triage.probing.measure import list_models, measure
from triage.probing.prober import EngineProber
from triage.sources.engine_scrape import EngineScrape

_CLIENTS = 6
# A slot holds 1,024 tokens of prompt and answer.
_LONG = budget(max_tokens=900, total_s=60.0)


def source_of(gate: Gate, url: str) -> EngineScrape:
    return EngineScrape(gate, [(Target("llama", url), Access(url))])


async def read_engine(source: EngineScrape) -> EngineReading:
    (found,) = await source.read()
    assert found.page is not None, found.failure
    (engine,) = found.page.engines
    return engine


async def test_an_idle_server_is_read(llama: str, gate: Gate) -> None:
    engine = await read_engine(source_of(gate, llama))
    assert engine.engine == "llama.cpp"
    assert engine.get(Quantity.RUNNING) == 0
    assert engine.get(Quantity.WAITING) == 0


async def test_more_clients_than_slots_are_seen_waiting(
    llama: str, gate: Gate, patience: Callable[[], asyncio.Timeout]
) -> None:
    source = source_of(gate, llama)
    before = await read_engine(source)
    target = Target("llama", llama)
    clients = [gate.client(Access(llama)) for _ in range(_CLIENTS)]
    (model,) = _names(await list_models(clients[0]))
    async with patience():
        load = [asyncio.create_task(measure(client, target, model, _LONG)) for client in clients]
        during = await read_engine(source)
        while not during.values[Quantity.WAITING]:
            assert not all(task.done() for task in load), "the queue was never seen"
            during = await read_engine(source)
        results = await asyncio.gather(*load)
    assert during.get(Quantity.RUNNING) == SLOTS
    assert {result.failure for result in results} == {None}
    streams = [result.stream for result in results if result.stream is not None]
    assert len(streams) == _CLIENTS
    after = await read_engine(source)
    assert after.get(Quantity.WAITING) == 0
    spent = sum(stream.completion_tokens or 0 for stream in streams)
    assert spent > 0
    assert after.values[Quantity.GENERATION_TOKENS] - before.values[Quantity.GENERATION_TOKENS] >= spent - _CLIENTS
    # Who waited for a slot waited longer for the first token than who did not.
    waits = sorted(result.probe.first_token_s or 0.0 for result in results)
    assert waits[-1] > waits[0]


async def test_a_probe_is_measured(llama: str, gate: Gate) -> None:
    client = gate.client(Access(llama))
    (model,) = _names(await list_models(client))
    measured = await measure(client, Target("llama", llama), model, budget(max_tokens=32))
    assert measured.failure is None
    stream, probe = measured.stream, measured.probe
    assert stream is not None
    assert stream.timed
    assert stream.completeness is Completeness.COMPLETE
    assert stream.finish_reason in ("length", "stop")
    assert stream.completion_tokens is not None
    assert 0 < stream.completion_tokens <= 32
    marks = [stream.first_event_s, stream.first_visible_s, stream.last_token_s, stream.closed_s]
    assert None not in marks
    assert marks == sorted(mark for mark in marks if mark is not None)
    assert (probe.status, probe.method, probe.path) == (200, "POST", "/v1/chat/completions")
    assert probe.got_token
    assert probe.generates
    assert (probe.error, probe.body) == ("", "")


async def test_the_prober_asks_each_model_once(llama: str, gate: Gate) -> None:
    targets = [(Target(name, llama), Access(llama)) for name in ("one", "two")]
    prober = EngineProber(gate, targets, lambda: budget(max_tokens=8))
    said: list[str] = []
    results = await prober.probe(said.append)
    assert [probe.target for probe, _ in results] == ["one"]
    assert any("first token after" in line for line in said)
    assert len([exchange for exchange in gate.transcript if exchange.method == "POST"]) == 1


async def test_a_wrong_path_is_told_in_the_servers_words(llama: str, gate: Gate) -> None:
    client = gate.client(Access(llama + "/no/such/prefix"))
    measured = await measure(client, Target("llama", llama), "random", budget(max_tokens=8))
    assert measured.stream is None
    assert isinstance(measured.failure, Failure)
    assert measured.failure.reason is FailureReason.NOT_FOUND
    assert measured.probe.status == 404
    assert measured.probe.body


def _names(models: tuple[str, ...] | Failure) -> tuple[str, ...]:
    assert not isinstance(models, Failure), models
    return models
