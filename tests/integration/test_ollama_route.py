"""A target that is Ollama: no metrics page, its process list is read in place of one."""

import asyncio
import json
from typing import Any

import pytest

from tests.integration.conftest import Serve
from tests.integration.server import Request, answer
from tests.integration.test_doctor_command import doctor
from tests.unit.dialects.test_ollama import MODEL
from triage.diagnosis.diagnose import diagnose
from triage.domain.limits import Limits
from triage.domain.situation import Situation
from triage.domain.target import Failure, FailureReason, Target, TargetState
from triage.domain.verdict import Kind
from triage.gate import Access, Gate
from triage.monitor.monitor import Monitor
from triage.probing.measure import list_models
from triage.sources.engine_scrape import EngineScrape

PAGE = '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name="m"} 1\n'


class Ollama:
    """Its routes as far as they are read. models: what it holds. page: a metrics page, where another engine answers."""

    def __init__(self, models: list[dict[str, Any]]) -> None:
        self.routes: dict[str, str] = {
            "/": "Ollama is running",
            "/api/ps": json.dumps({"models": models}),
            "/api/version": '{"version":"0.12.3"}',
        }

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        body = self.routes.get(request.path)
        writer.write(answer("404 page not found", "404 Not Found") if body is None else answer(body))


def source_of(gate: Gate, url: str) -> EngineScrape:
    return EngineScrape(gate, [(Target("ollama", url), Access(url, timeout_s=5.0))])


async def looked_at(gate: Gate, url: str) -> Situation:
    monitor = Monitor(source_of(gate, url), name="test", limits=Limits())
    return (await monitor.round()).situation


async def test_the_list_is_the_page_and_then_the_only_question(serve: Serve, gate: Gate) -> None:
    server = await serve(Ollama([MODEL]))
    source = source_of(gate, server.url)
    for _ in range(3):
        (scrape,) = await source.read()
        assert scrape.failure is None
        assert scrape.page is not None
        assert scrape.page.processes is not None
        assert scrape.page.at == scrape.at
        assert scrape.page.processes.version == "0.12.3"
    search = ["/metrics", "/v1/metrics", "/prometheus/metrics", "/api/ps", "/api/version"]
    assert [request.path for request in server.requests] == [*search, "/api/ps", "/api/ps"]
    assert {request.method for request in server.requests} == {"GET"}


@pytest.mark.parametrize("end", ["", "/metrics", "/api/ps", "/api/chat", "/v1/chat/completions"])
async def test_whatever_of_its_addresses_is_given(serve: Serve, gate: Gate, end: str) -> None:
    server = await serve(Ollama([MODEL]))
    (scrape,) = await source_of(gate, server.url + end).read()
    assert scrape.page is not None
    assert scrape.page.processes is not None


async def test_it_is_well_and_says_what_is_not_known(serve: Serve, gate: Gate) -> None:
    server = await serve(Ollama([MODEL]))
    situation = await looked_at(gate, server.url)
    (status,) = situation.targets
    assert (status.state, status.engine, status.failure) == (TargetState.OK, "ollama", None)
    (model,) = situation.loaded_models
    assert (model.name, model.target) == ("gemma3:latest", "ollama")
    (unseen,) = [seen for seen in situation.not_seen if seen.source == "engine metrics"]
    assert "ollama exports neither queue nor times" in unseen.why
    assert "queueing" in unseen.costs
    verdict = diagnose(situation).verdicts[0]
    assert verdict.kind is Kind.INSUFFICIENT_DATA
    # A fifth of it is computed by the CPU: from a folder's ps.json the same is said.
    assert "only 81 % of it is in GPU memory" in verdict.summary
    assert "probe" in verdict.next_test
    assert "scrape" not in verdict.next_test


async def test_nothing_loaded_is_well_too(serve: Serve, gate: Gate) -> None:
    server = await serve(Ollama([]))
    situation = await looked_at(gate, server.url)
    assert situation.targets[0].state is TargetState.OK
    assert situation.loaded_models == ()


@pytest.mark.parametrize(
    "missing",
    [
        {"/api/ps": "[]"},
        {"/api/ps": '{"models": [{"name": "m"}]}'},
        {"/api/version": "<html>"},
        {"/api/version": '{"version": 5}'},
    ],
)
async def test_a_sentence_or_one_route_alone_is_no_proof(serve: Serve, gate: Gate, missing: dict[str, str]) -> None:
    other = Ollama([])
    other.routes |= missing
    server = await serve(other)
    (scrape,) = await source_of(gate, server.url).read()
    assert scrape.failure is not None
    assert scrape.failure.reason is FailureReason.NOT_FOUND


async def test_one_that_stops_answering_is_dark_and_its_models_are_forgotten(serve: Serve, gate: Gate) -> None:
    server = await serve(Ollama([MODEL]))
    monitor = Monitor(source_of(gate, server.url), name="test", limits=Limits())
    await monitor.round()
    await server.stop()
    situation = (await monitor.round()).situation
    assert situation.targets[0].state is TargetState.DARK
    assert situation.targets[0].processes is None
    assert situation.loaded_models == ()


async def test_another_engine_that_comes_up_at_its_address_is_read(serve: Serve, gate: Gate) -> None:
    other = Ollama([MODEL])
    server = await serve(other)
    source = source_of(gate, server.url)
    await source.read()
    other.routes = {"/metrics": PAGE}
    (scrape,) = await source.read()
    assert scrape.page is not None
    assert scrape.page.engines[0].engine == "vllm"
    other.routes = Ollama([MODEL]).routes
    await source.read()
    (scrape,) = await source.read()
    assert scrape.page is not None
    assert scrape.page.processes is not None


async def test_doctor_says_what_it_exports_and_what_not(serve: Serve) -> None:
    server = await serve(Ollama([MODEL]))
    code, out = await doctor("--target", f"box={server.url}")
    assert code == 0
    said = " ".join(out.split())
    assert "box ok: ollama 0.12.3 gemma3:latest" in said
    assert "gemma3:latest, 81 % in GPU memory, context 4,096, unloads 2025-10-17T23:47:07.933Z" in said
    assert "Ollama, which has no metrics page" in said
    assert "queueing" in said
    assert "load, prompt and decode time" in said
    code, out = await doctor("--target", f"box={server.url}", "--format", "json")
    report = json.loads(out)
    assert "engine metrics" not in report["missing"]  # nothing could be configured for it
    (seen,) = report["targets"][0]["seen"]
    assert seen["exported"] == []
    assert len(seen["loaded"]) == 1


def listing(*names: str) -> str:
    return json.dumps({"object": "list", "data": [{"id": name, "owned_by": "library"} for name in names]})


async def test_a_probe_loads_no_model(serve: Serve, gate: Gate) -> None:
    """Its model list names what is on disk; asking all of it would push out what users need."""
    box = Ollama([MODEL])
    box.routes["/v1/models"] = listing("big:70b", "gemma3:latest", "other:8b")
    server = await serve(box)
    client = gate.client(Access(server.url))
    assert await list_models(client) == ("gemma3:latest",)
    box.routes["/api/ps"] = json.dumps({"models": []})
    refused = await list_models(client)
    assert isinstance(refused, Failure)
    assert "none of 3 models is in memory" in refused.detail
    box.routes["/v1/models"] = listing("only:8b")
    assert await list_models(client) == ("only:8b",)
    del box.routes["/api/ps"]
    box.routes["/v1/models"] = listing("a", "b")
    assert await list_models(client) == ("a", "b")
