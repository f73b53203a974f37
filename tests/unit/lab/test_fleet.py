"""The whole lab on loopback."""

import asyncio
import json
from collections.abc import Callable

import aiohttp
import pytest

from triage.domain.errors import TriageError
from triage.lab.fleet import Fleet


async def page(client: aiohttp.ClientSession, url: str, parse_page: Callable) -> dict:
    async with client.get(url + "/metrics") as answer:
        assert answer.status == 200
        return parse_page(await answer.text())


async def test_four_targets_answer_with_a_past(parse_page: Callable, add_up: Callable) -> None:
    async with Fleet() as fleet, aiohttp.ClientSession() as client:
        await fleet.start()
        assert fleet.incident == "healthy"
        assert [target.name for target in fleet.targets] == ["chat-a", "chat-b", "chat-c", "small-a"]
        assert len({target.url for target in fleet.targets}) == 4
        for target in fleet.targets:
            assert target.url.startswith("http://127.0.0.1:")
            async with client.get(target.url + "/v1/models") as answer:
                assert (await answer.json())["data"][0]["id"] == target.model
            families = await page(client, target.url, parse_page)
            counts = [
                add_up(families, f"{engine}:e2e_request_latency_seconds_count", model_name=target.model)
                for engine in ("vllm", "sglang")
            ]
            assert sum(counts) > 300


async def test_an_incident_is_under_way_when_the_lab_starts(parse_page: Callable, add_up: Callable) -> None:
    async with Fleet() as fleet, aiohttp.ClientSession() as client:
        await fleet.start("queueing")
        assert fleet.incident == "queueing"
        waiting = [
            add_up(families, "vllm:num_requests_waiting") + add_up(families, "sglang:num_queue_reqs")
            for families in [await page(client, target.url, parse_page) for target in fleet.targets]
        ]
        assert min(waiting[:3]) >= 64
        assert waiting[3] == 0


async def test_switching_changes_what_the_engines_do(parse_page: Callable, add_up: Callable) -> None:
    async with Fleet(speed=20.0) as fleet, aiohttp.ClientSession() as client:
        await fleet.start()
        url = fleet.targets[0].url

        async def next_itl() -> float:
            """Mean inter-token latency of the next thousand tokens."""
            before = await page(client, url, parse_page)
            async with asyncio.timeout(20):
                while True:
                    await asyncio.sleep(0.02)
                    now = await page(client, url, parse_page)
                    count, total = [
                        add_up(now, f"vllm:inter_token_latency_seconds_{part}")
                        - add_up(before, f"vllm:inter_token_latency_seconds_{part}")
                        for part in ("count", "sum")
                    ]
                    if count >= 1000:
                        return total / count

        assert await next_itl() < 0.03
        fleet.switch("slow-decode")
        assert fleet.incident == "slow-decode"
        assert await next_itl() > 0.15
        fleet.switch("queueing")
        waiting = 0.0
        async with asyncio.timeout(20):
            while waiting < 64:
                await asyncio.sleep(0.02)
                waiting = add_up(await page(client, url, parse_page), "vllm:num_requests_waiting")


async def test_a_probe_meets_the_incident(parse_page: Callable) -> None:
    async with Fleet(speed=50.0) as fleet, aiohttp.ClientSession() as client:
        await fleet.start("hidden-reasoning")
        body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 64}
        for target in fleet.targets[:3]:
            async with client.post(target.url + "/v1/chat/completions", json=body) as answer:
                whole = json.loads(await answer.read())
            assert whole["usage"]["completion_tokens_details"] == {"reasoning_tokens": 64}
            assert whole["choices"][0]["finish_reason"] == "length"


async def test_an_unknown_incident_is_refused_and_changes_nothing() -> None:
    fleet = Fleet()
    with pytest.raises(TriageError, match="slow-decode"):
        await fleet.start("meteor")
    assert fleet.targets == ()
    async with fleet:
        await fleet.start()
        with pytest.raises(TriageError, match="slow-decode"):
            fleet.switch("meteor")
        assert fleet.incident == "healthy"
        with pytest.raises(TriageError, match="already running"):
            await fleet.start("queueing")


async def test_a_lab_that_does_not_run_cannot_be_switched() -> None:
    with pytest.raises(TriageError, match="not running"):
        Fleet().switch("queueing")


async def test_closing_frees_the_ports_and_can_be_repeated() -> None:
    fleet = Fleet()
    await fleet.close()
    await fleet.start()
    url = fleet.targets[0].url
    await fleet.close()
    await fleet.close()
    assert fleet.targets == ()
    async with aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.get(url + "/health")


def test_incidents_are_listed_without_starting() -> None:
    listed = {info.name: info.cause for info in Fleet.incidents()}
    assert listed == {
        "healthy": "healthy",
        "queueing": "queueing",
        "hidden-reasoning": "hidden-reasoning",
        "slow-decode": "slow-decode",
    }
    assert all(info.title for info in Fleet.incidents())
