"""One replica over HTTP on loopback, running twenty times as fast as life."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest

from triage.lab.incidents import Flavour, Incident, ReplicaSpec
from triage.lab.pacing import Pacer
from triage.lab.replica import Replica
from triage.lab.server import EngineServer

STARTED = 1_700_000_000.0
BOTH = pytest.mark.parametrize(
    ("flavour", "field"), [(Flavour.VLLM, "reasoning"), (Flavour.SGLANG, "reasoning_content")]
)


class Served:
    """A replica, its server and a client."""

    def __init__(self, replica: Replica, url: str, client: aiohttp.ClientSession) -> None:
        self.replica = replica
        self.url = url
        self.client = client

    async def post(self, path: str = "/v1/chat/completions", **body: Any) -> tuple[int, Any]:
        payload = {"model": "tiny", "messages": [{"role": "user", "content": "hello there"}], **body}
        async with self.client.post(self.url + path, json=payload) as answer:
            if answer.content_type == "text/event-stream":
                return answer.status, events(await answer.text())
            return answer.status, json.loads(await answer.read())


def events(text: str) -> list[Any]:
    """The data of each event, [DONE] as it is. Everything in the stream must be an event."""
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    assert all(block.startswith("data: ") for block in blocks)
    return [block[6:] if block == "data: [DONE]" else json.loads(block[6:]) for block in blocks]


@asynccontextmanager
async def serving(spec: ReplicaSpec, incident: Incident, speed: float = 20.0) -> AsyncIterator[Served]:
    replica = Replica(spec, incident, seed=1)
    pacer = Pacer([replica], speed)
    server = EngineServer(replica, STARTED, pacer.catch_up)
    await server.start()
    pacing = asyncio.create_task(pacer.run())
    try:
        async with aiohttp.ClientSession() as client:
            yield Served(replica, server.url, client)
    finally:
        await server.close()
        pacing.cancel()
        with suppress(asyncio.CancelledError):
            await pacing


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what it waits for happens inside an engine without events
            await asyncio.sleep(0.005)


@BOTH
async def test_a_stream_has_its_parts_in_order(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, flavour: Flavour, field: str
) -> None:
    async with serving(spec(flavour), nothing_wrong) as served:
        status, chunks = await served.post(stream=True, stream_options={"include_usage": True})
    assert status == 200
    assert chunks.pop() == "[DONE]"
    usage = chunks.pop()
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 15
    assert usage["usage"]["completion_tokens_details"] == {"reasoning_tokens": 5}
    assert usage["usage"]["total_tokens"] == usage["usage"]["prompt_tokens"] + 15
    assert usage["usage"].get("reasoning_tokens") == (5 if flavour is Flavour.SGLANG else None)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert all(delta[field] for delta in deltas[1:6])
    assert all("content" not in delta for delta in deltas[1:6])
    assert all(delta["content"] and field not in delta for delta in deltas[6:16])
    assert not any(deltas[16].values())
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * 16 + ["stop"]


async def test_no_usage_chunk_unless_asked_for(spec: Callable[..., ReplicaSpec], nothing_wrong: Incident) -> None:
    async with serving(spec(), nothing_wrong) as served:
        _, chunks = await served.post(stream=True)
    assert not [chunk for chunk in chunks[:-1] if "usage" in chunk]


@BOTH
async def test_a_token_limit_can_end_inside_reasoning(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, flavour: Flavour, field: str
) -> None:
    async with serving(spec(flavour), nothing_wrong) as served:
        _, chunks = await served.post(stream=True, max_tokens=3, stream_options={"include_usage": True})
        _, whole = await served.post(max_completion_tokens=3)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[1:-3]]
    assert [list(delta) for delta in deltas] == [[field]] * 3
    assert chunks[-3]["choices"][0]["finish_reason"] == "length"
    assert chunks[-2]["usage"]["completion_tokens"] == 3
    assert chunks[-2]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 3}
    (choice,) = whole["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"] is None
    assert choice["message"][field]


async def test_reasoning_can_be_turned_off_in_the_template(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident
) -> None:
    async with serving(spec(), nothing_wrong) as served:
        _, whole = await served.post(chat_template_kwargs={"enable_thinking": False})
    assert whole["usage"]["completion_tokens"] == 10
    assert whole["choices"][0]["message"]["reasoning"] is None
    assert whole["choices"][0]["message"]["content"]


async def test_sglang_leaves_out_reasoning_details_without_reasoning(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident
) -> None:
    async with serving(spec(Flavour.SGLANG), nothing_wrong) as served:
        _, whole = await served.post(chat_template_kwargs={"enable_thinking": False})
    assert whole["usage"]["reasoning_tokens"] == 0
    assert "completion_tokens_details" not in whole["usage"]


async def test_text_completions(spec: Callable[..., ReplicaSpec], nothing_wrong: Incident) -> None:
    async with serving(spec(), nothing_wrong) as served:
        status, whole = await served.post("/v1/completions", prompt="Once upon a time")
        _, chunks = await served.post("/v1/completions", prompt=["Once"], stream=True, max_tokens=4)
    assert (status, whole["object"]) == (200, "text_completion")
    assert whole["choices"][0]["text"]
    assert whole["usage"]["completion_tokens"] == 10
    assert chunks[-1] == "[DONE]"
    assert [bool(chunk["choices"][0]["text"]) for chunk in chunks[:-1]] == [True] * 4 + [False]


@pytest.mark.parametrize(
    "body",
    [
        b"{not json",
        b"\xff\xfe",
        b"[]",
        b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"model": "\\ud800", "messages": [{"role": "user"}]}',
        b'{"model": "tiny"}',
        b'{"model": "tiny", "messages": []}',
        b'{"model": "tiny", "messages": "hello"}',
        b'{"model": "tiny", "messages": [{"role": "user", "content": "x"}], "max_tokens": 0}',
        b'{"model": "tiny", "messages": [{"role": "user", "content": "x"}], "max_tokens": "many"}',
        b'{"model": "tiny", "messages": [{"role": "user", "content": "x"}], "max_tokens": 4096}',
        b'{"model": "tiny", "messages": [{"role": "user", "content": "' + b"x" * 20_000 + b'"}]}',
    ],
)
@BOTH
async def test_a_bad_request_gets_400_and_no_place_in_the_queue(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, flavour: Flavour, field: str, body: bytes
) -> None:
    async with (
        serving(spec(flavour), nothing_wrong) as served,
        served.client.post(served.url + "/v1/chat/completions", data=body) as answer,
    ):
        assert answer.status == 400
        error = await answer.json()
        error = error["error"] if flavour is Flavour.VLLM else error
        assert error["code"] == 400
        assert error["message"]
        assert served.replica.engine.open_requests == 0


async def test_vllm_knows_its_model_and_sglang_takes_any(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident
) -> None:
    async with serving(spec(), nothing_wrong) as served:
        status, error = await served.post(model="x[/foo]")
        assert (status, error["error"]["code"]) == (404, 404)
    async with serving(spec(Flavour.SGLANG), nothing_wrong) as served:
        status, whole = await served.post(model="x[/foo]")
        assert (status, whole["model"]) == (200, "x[/foo]")


@BOTH
async def test_the_small_endpoints(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, flavour: Flavour, field: str
) -> None:
    async with serving(spec(flavour), nothing_wrong) as served:
        async with served.client.get(served.url + "/health") as answer:
            assert (answer.status, await answer.read()) == (200, b"")
        async with served.client.get(served.url + "/v1/models") as answer:
            (card,) = (await answer.json())["data"]
            assert (card["id"], card["owned_by"], card["max_model_len"]) == ("tiny", flavour.value, 4096)
        async with served.client.get(served.url + "/version") as answer:
            assert (await answer.json())["version"] == ("0.32.0" if flavour is Flavour.VLLM else "0.5.23")
        async with served.client.get(served.url + "/v1/chat/completions") as answer:
            assert answer.status == 405


@pytest.mark.parametrize("coding", ["gzip", "identity"])
async def test_metrics_are_compressed_when_asked_for(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, parse_page: Callable, add_up: Callable, coding: str
) -> None:
    async with (
        serving(spec(), nothing_wrong) as served,
        served.client.get(served.url + "/metrics", headers={"Accept-Encoding": coding}) as answer,
    ):
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert answer.headers.get("Content-Encoding") == ("gzip" if coding == "gzip" else None)
        page = parse_page(await answer.text())
        assert add_up(page, "process_start_time_seconds") == STARTED


async def test_requests_over_http_are_in_the_metrics(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, parse_page: Callable, add_up: Callable
) -> None:
    async with serving(spec(), nothing_wrong) as served:
        await served.post(stream=True)
        page = parse_page(served.replica.metrics.page(STARTED))
    assert add_up(page, "vllm:request_success_total", finished_reason="stop") == 1
    assert add_up(page, "vllm:generation_tokens_total") == 15


async def test_a_request_waits_behind_the_others(spec: Callable[..., ReplicaSpec], nothing_wrong: Incident) -> None:
    async with serving(spec(max_num_seqs=1), nothing_wrong) as served:
        order = []

        async def ask(name: str, limit: int) -> None:
            await served.post(stream=True, max_tokens=limit)
            order.append(name)

        first = asyncio.create_task(ask("long, first", 15))
        # On a busy machine the engine may catch up and end the first one between two looks.
        await until(lambda: served.replica.engine.open_requests == 1 or first.done())
        await asyncio.gather(first, ask("short, second", 1))
    assert order == ["long, first", "short, second"]


@pytest.mark.parametrize("stream", [True, False])
@BOTH
async def test_a_client_that_leaves_is_dropped_running_or_queued(
    spec: Callable[..., ReplicaSpec],
    nothing_wrong: Incident,
    parse_page: Callable,
    add_up: Callable,
    flavour: Flavour,
    field: str,
    stream: bool,
) -> None:
    # A step takes 100 s: neither request can end by itself within this test.
    slow = spec(flavour, max_num_seqs=1, step_base_s=100.0)
    async with serving(slow, nothing_wrong, speed=1.0) as served:
        clients = [asyncio.create_task(served.post(stream=stream)) for _ in range(2)]
        await until(lambda: served.replica.engine.open_requests == 2)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        await until(lambda: served.replica.engine.open_requests == 0)
        page = parse_page(served.replica.metrics.page(STARTED))
    assert add_up(page, "sglang:num_aborted_requests_total") == (2 if flavour is Flavour.SGLANG else 0)
    assert add_up(page, "vllm:request_success_total") == 0


async def test_a_client_that_leaves_in_mid_stream_is_dropped(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident
) -> None:
    endless = spec(step_base_s=0.5)  # 15 tokens of half a second
    async with serving(endless, nothing_wrong, speed=5.0) as served:
        body = {"messages": [{"role": "user", "content": "x"}], "stream": True}
        async with served.client.post(served.url + "/v1/chat/completions", json=body) as answer:
            assert (await answer.content.readline()).startswith(b"data: ")
            assert served.replica.engine.open_requests == 1
            answer.close()
        await until(lambda: served.replica.engine.open_requests == 0)


async def test_closing_cuts_open_streams(spec: Callable[..., ReplicaSpec], nothing_wrong: Incident) -> None:
    async with aiohttp.ClientSession() as client:
        async with serving(spec(step_base_s=100.0), nothing_wrong, speed=1.0) as served:
            served.client, closed_early = client, served.client
            await closed_early.close()
            waiting = asyncio.create_task(served.post(stream=True))
            await until(lambda: served.replica.engine.open_requests == 1)
        async with asyncio.timeout(10):
            with pytest.raises(aiohttp.ClientPayloadError):
                await waiting
    assert served.replica.engine.open_requests == 0
