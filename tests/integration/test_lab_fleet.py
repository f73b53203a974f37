"""The whole lab on loopback: engines with a past, incidents that begin and end, and all of it gone afterwards."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
import yaml

from tests.integration.lab import MODEL, ask
from tests.unit.lab.conftest import ParsedFamily, parse, total
from triage.domain.errors import TriageError
from triage.lab.faults.catalogue import faults_named
from triage.lab.fleets import workload_named
from triage.lab.serving.fleet import Fleet, workload_for


def fleet_of(workload: str = "chat", **options: float) -> Fleet:
    return Fleet(workload_named(workload), real_gateway=False, **options)  # type: ignore[arg-type]


async def page(client: aiohttp.ClientSession, url: str) -> dict[str, ParsedFamily]:
    async with client.get(url + "/metrics") as answer:
        assert answer.status == 200
        return parse(await answer.text())


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.mark.parametrize("workload", ["chat", "agents", "batch"])
async def test_every_target_answers_with_a_past(workload: str, client: aiohttp.ClientSession) -> None:
    async with fleet_of(workload) as fleet:
        await fleet.start()
        assert fleet.incident == "healthy"
        assert len({target.url for target in fleet.targets}) == len(fleet.targets) >= 3
        assert len({target.model for target in fleet.targets}) == 2
        for target in fleet.targets:
            async with client.get(target.url + "/v1/models") as answer:
                assert (await answer.json())["data"][0]["id"] == target.model
            families = await page(client, target.url)
            counts = [total(families, f"{engine}:e2e_request_latency_seconds_count") for engine in ("vllm", "sglang")]
            assert sum(counts) > 20
        assert {kept.replica for kept in fleet.past_pages} == {target.name for target in fleet.targets}


async def test_an_incident_is_under_way_when_the_lab_starts(client: aiohttp.ClientSession) -> None:
    async with fleet_of() as fleet:
        await fleet.start("load-surge")
        waiting = []
        for target in fleet.targets:
            families = await page(client, target.url)
            waiting.append(total(families, "vllm:num_requests_waiting") + total(families, "sglang:num_queue_reqs"))
        assert min(waiting[:3]) >= 20
        assert waiting[3] == 0, "the other model has its own users"
        assert fleet.truth().main == "queueing"
        assert {alert.name for alert in fleet.alerts()} >= {"AnswersBeginLate"}


async def test_switching_changes_what_the_engines_do_and_mends_them(client: aiohttp.ClientSession) -> None:
    async with fleet_of(speed=20.0) as fleet:
        await fleet.start()
        url = fleet.targets[0].url

        async def until_waiting(least: float, most: float) -> None:
            async with asyncio.timeout(20):
                while not least <= total(await page(client, url), "vllm:num_requests_waiting") <= most:  # noqa: ASYNC110 - over HTTP
                    await asyncio.sleep(0.02)

        await until_waiting(0, 0)
        fleet.switch("sequence-limit")
        assert fleet.incident == "sequence-limit"
        await until_waiting(20, 1000)
        fleet.switch("healthy")
        await until_waiting(0, 0)


async def test_a_process_that_ends_takes_its_port_along_and_comes_back(client: aiohttp.ClientSession) -> None:
    async with fleet_of() as fleet:
        await fleet.start("pending")

        async def listening() -> int:
            """Engines of the model that accept a connection."""
            found = 0
            for target in fleet.targets[:3]:
                try:
                    async with client.get(target.url + "/health") as answer:
                        found += answer.status == 200
                except aiohttp.ClientConnectionError:
                    pass
            return found

        async with asyncio.timeout(10):
            while await listening() == 3:
                pass
        urls = [target.url for target in fleet.targets]
        fleet.switch("healthy")
        async with asyncio.timeout(10):
            while await listening() != 3:
                pass
        assert [target.url for target in fleet.targets] == urls


async def test_two_incidents_at_once(client: aiohttp.ClientSession) -> None:
    async with fleet_of() as fleet:
        await fleet.start("metrics-missing+empty-answers")
        statuses = []
        for target in fleet.targets[:3]:
            async with client.get(target.url + "/metrics") as answer:
                statuses.append(answer.status)
        assert 404 in statuses
        empty = 0
        for _ in range(8):
            answer = await ask(client, fleet, max_tokens=20)
            empty += not any(chunk["choices"][0]["delta"].get("content") for chunk in answer.data[:-1])
        assert empty >= 4, "nine answers in ten"


async def test_the_access_log_is_that_of_the_simulated_users() -> None:
    async with fleet_of() as fleet:
        await fleet.start("context-limit")
        lines = [json.loads(line) for line in fleet.access_log.read_text().splitlines()]
    assert len(lines) > 1000
    assert {line["upstream_cluster"] for line in lines} == {MODEL, "qwen3-8b"}
    assert any(line["response_code"] == 400 for line in lines[-200:])
    assert not any(line["response_code"] == 400 for line in lines[:200])
    assert len({line["x_client"] for line in lines}) > 20


async def test_an_unknown_incident_is_refused_and_changes_nothing() -> None:
    async with fleet_of() as fleet:
        with pytest.raises(TriageError, match="load-surge"):
            await fleet.start("meteor")
        assert fleet.targets == ()
        await fleet.start()
        with pytest.raises(TriageError, match="load-surge"):
            fleet.switch("meteor")
        with pytest.raises(TriageError, match="triage demo --incident affinity-lost"):
            fleet.switch("affinity-lost")
        assert fleet.incident == "healthy"
        with pytest.raises(TriageError, match="already running"):
            await fleet.start("load-surge")


async def test_a_lab_that_does_not_run_cannot_be_switched() -> None:
    async with fleet_of() as fleet:
        with pytest.raises(TriageError, match="not running"):
            fleet.switch("load-surge")


@pytest.mark.parametrize("real", [True, False])
async def test_closing_frees_ports_and_files_and_can_be_repeated(client: aiohttp.ClientSession, real: bool) -> None:
    fleet = Fleet(workload_named("chat"), real_gateway=real)
    await fleet.start()
    urls = [target.url for target in (*fleet.targets, *fleet.gateways)]
    folder = fleet.folder
    assert fleet.key_file.stat().st_mode & 0o077 == 0
    await fleet.close()
    await fleet.close()
    assert fleet.targets == fleet.gateways == ()
    assert not folder.exists()
    for url in urls:
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.get(url + "/health")


async def test_the_cluster_and_the_exporters_tell_of_the_same_fleet(client: aiohttp.ClientSession) -> None:
    async with fleet_of() as fleet:
        await fleet.start("pending")
        config = yaml.safe_load(fleet.kubeconfig.read_text())
        server = config["clusters"][0]["cluster"]["server"]
        headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}

        async def pods() -> dict[str, str]:
            async with client.get(server + "/api/v1/namespaces/lab/pods", headers=headers) as answer:
                found = await answer.json()
            return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in found["items"]}

        phases = await pods()
        assert phases.keys() == {target.name for target in fleet.targets}
        assert "Pending" in phases.values()
        assert phases["side-a"] == "Running"
        fleet.switch("healthy")
        assert set((await pods()).values()) == {"Running"}
        assert len(fleet.exporters) == len(fleet.targets)
        for url in fleet.exporters:
            async with client.get(url + "/metrics") as answer:
                assert "DCGM_FI_DEV_GPU_UTIL{" in await answer.text()


def test_each_incident_finds_a_fleet_that_can_have_it() -> None:
    assert workload_for(faults_named("load-surge")).name == "chat"
    assert workload_for(faults_named("affinity-lost")).name == "agents"
    assert workload_for(faults_named("tool-calls-unparsed+xid")).name == "agents"
