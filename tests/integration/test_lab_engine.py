"""One simulated engine over HTTP on loopback, twenty times as fast as life."""

import asyncio

import aiohttp
import pytest

from tests.integration.lab import MODEL, serving, until
from tests.unit.lab.conftest import parse, total
from triage.lab.pages.forms import Flavour

BOTH = pytest.mark.parametrize(
    ("flavour", "field"), [(Flavour.VLLM, "reasoning"), (Flavour.SGLANG, "reasoning_content")]
)


@BOTH
async def test_a_stream_has_its_parts_in_order(flavour: Flavour, field: str) -> None:
    async with serving(flavour) as served:
        status, chunks = await served.post(stream=True, stream_options={"include_usage": True})
    assert status == 200
    assert chunks.pop() == "[DONE]"
    usage = chunks.pop()
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 65
    assert usage["usage"]["completion_tokens_details"] == {"reasoning_tokens": 5}
    assert usage["usage"]["total_tokens"] == usage["usage"]["prompt_tokens"] + 65
    assert usage["usage"].get("reasoning_tokens") == (5 if flavour is Flavour.SGLANG else None)
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert all(delta[field] for delta in deltas[1:6])
    assert all("content" not in delta for delta in deltas[1:6])
    assert all(delta["content"] and field not in delta for delta in deltas[6:66])
    assert not any(deltas[66].values())
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * 66 + ["stop"]


async def test_no_usage_chunk_unless_asked_for() -> None:
    async with serving() as served:
        _, chunks = await served.post(stream=True)
    assert not [chunk for chunk in chunks[:-1] if "usage" in chunk]


@BOTH
async def test_a_token_limit_can_end_inside_reasoning(flavour: Flavour, field: str) -> None:
    async with serving(flavour) as served:
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


async def test_reasoning_can_be_turned_off_in_the_template() -> None:
    async with serving() as served:
        _, whole = await served.post(chat_template_kwargs={"enable_thinking": False})
    assert whole["usage"]["completion_tokens"] == 60
    assert whole["choices"][0]["message"]["reasoning"] is None
    assert whole["choices"][0]["message"]["content"]


async def test_sglang_leaves_out_reasoning_details_without_reasoning() -> None:
    async with serving(Flavour.SGLANG) as served:
        _, whole = await served.post(chat_template_kwargs={"enable_thinking": False})
    assert whole["usage"]["reasoning_tokens"] == 0
    assert "completion_tokens_details" not in whole["usage"]


async def test_text_completions() -> None:
    async with serving() as served:
        status, whole = await served.post("/v1/completions", prompt="Once upon a time")
        _, chunks = await served.post("/v1/completions", prompt=["Once"], stream=True, max_tokens=4)
    assert (status, whole["object"]) == (200, "text_completion")
    assert whole["choices"][0]["text"]
    assert whole["usage"]["completion_tokens"] == 60
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
        b'{"model": "llama-3.1-8b"}',
        b'{"model": "llama-3.1-8b", "messages": []}',
        b'{"model": "llama-3.1-8b", "messages": "hello"}',
        b'{"model": "llama-3.1-8b", "messages": [{"role": "user", "content": "x"}], "max_tokens": 0}',
        b'{"model": "llama-3.1-8b", "messages": [{"role": "user", "content": "x"}], "max_tokens": "many"}',
        b'{"model": "llama-3.1-8b", "messages": [{"role": "user", "content": "' + b"x" * 80_000 + b'"}]}',
    ],
)
@BOTH
async def test_a_bad_request_gets_400_and_no_place_in_the_queue(flavour: Flavour, field: str, body: bytes) -> None:
    async with (
        serving(flavour) as served,
        served.client.post(served.url + "/v1/chat/completions", data=body) as answer,
    ):
        assert answer.status == 400
        error = await answer.json()
        error = error["error"] if flavour is Flavour.VLLM else error
        assert error["code"] == 400
        assert error["message"]
        assert served.replica.engine.open_requests == 0


async def test_vllm_knows_its_model_and_sglang_takes_any() -> None:
    async with serving() as served:
        status, error = await served.post(model="x[/foo]")
        assert (status, error["error"]["code"]) == (404, 404)
    async with serving(Flavour.SGLANG) as served:
        status, whole = await served.post(model="x[/foo]")
        assert (status, whole["model"]) == (200, "x[/foo]")


@BOTH
async def test_the_small_endpoints(flavour: Flavour, field: str) -> None:
    async with serving(flavour) as served:
        async with served.client.get(served.url + "/health") as answer:
            assert (answer.status, await answer.read()) == (200, b"")
        async with served.client.get(served.url + "/v1/models") as answer:
            (card,) = (await answer.json())["data"]
            assert (card["id"], card["owned_by"], card["max_model_len"]) == (MODEL, flavour.value, 16_384)
        async with served.client.get(served.url + "/version") as answer:
            assert (await answer.json())["version"] == ("0.32.0" if flavour is Flavour.VLLM else "0.5.23")
        async with served.client.get(served.url + "/v1/chat/completions") as answer:
            assert answer.status == 405


@pytest.mark.parametrize("coding", ["gzip", "identity"])
async def test_metrics_are_compressed_when_asked_for(coding: str) -> None:
    async with (
        serving() as served,
        served.client.get(served.url + "/metrics", headers={"Accept-Encoding": coding}) as answer,
    ):
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert answer.headers.get("Content-Encoding") == ("gzip" if coding == "gzip" else None)
        page = parse(await answer.text())
        assert total(page, "process_start_time_seconds") == served.started


async def test_requests_over_http_are_in_the_metrics() -> None:
    async with serving() as served:
        await served.post(stream=True)
        page = served.page()
    assert total(page, "vllm:request_success_total", finished_reason="stop") == 1
    assert total(page, "vllm:generation_tokens_total") == 65


async def test_a_request_waits_behind_the_others() -> None:
    async with serving(speed=2.0, max_num_seqs=1) as served:
        order = []

        async def ask(name: str, limit: int) -> None:
            await served.post(stream=True, max_tokens=limit)
            order.append(name)

        first = asyncio.create_task(ask("long, first", 60))
        # On a busy machine the engine may catch up and end the first one between two looks.
        await until(lambda: served.replica.engine.open_requests == 1 or first.done())
        await asyncio.gather(first, ask("short, second", 1))
    assert order == ["long, first", "short, second"]


@pytest.mark.parametrize("stream", [True, False])
@BOTH
async def test_a_client_that_leaves_is_dropped_running_or_queued(flavour: Flavour, field: str, stream: bool) -> None:
    async with serving(flavour, speed=1.0, max_num_seqs=1) as served:
        served.condition(host=1e-5)  # a step takes minutes: neither request can end by itself within this test
        clients = [asyncio.create_task(served.post(stream=stream)) for _ in range(2)]
        await until(lambda: served.replica.engine.open_requests == 2)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        await until(lambda: served.replica.engine.open_requests == 0)
        page = served.page()
    assert total(page, "sglang:num_aborted_requests_total") == (2 if flavour is Flavour.SGLANG else 0)
    assert total(page, "vllm:request_success_total") == 0


async def test_a_client_that_leaves_in_mid_stream_is_dropped() -> None:
    async with serving(speed=5.0) as served:
        served.condition(bandwidth=0.05)  # some half a second a token
        body = {"messages": [{"role": "user", "content": "x"}], "stream": True}
        async with served.client.post(served.url + "/v1/chat/completions", json=body) as answer:
            assert (await answer.content.readline()).startswith(b"data: ")
            assert served.replica.engine.open_requests == 1
            answer.close()
        await until(lambda: served.replica.engine.open_requests == 0)


async def test_closing_cuts_open_streams() -> None:
    async with aiohttp.ClientSession() as client:
        async with serving(speed=1.0) as served:
            served.condition(bandwidth=0.05)
            url = served.url + "/v1/chat/completions"
            body = {"messages": [{"role": "user", "content": "x"}], "stream": True}
            answer = await client.post(url, json=body)
            assert (await answer.content.readline()).startswith(b"data: ")
        async with asyncio.timeout(10):
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.read()
    assert served.replica.engine.open_requests == 0


async def test_a_dead_core_answers_errors_and_says_so_at_its_health_route() -> None:
    async with serving() as served:
        served.replica.lose_core(served.world.now, ["gone"])
        status, error = await served.post(stream=True)
        assert status == 500
        assert error["error"]["message"].startswith("EngineCore encountered an issue")
        async with served.client.get(served.url + "/health") as answer:
            assert answer.status == 503
        async with served.client.get(served.url + "/metrics") as answer:
            assert answer.status == 200


async def test_a_process_that_ends_closes_its_port_and_cuts_what_is_open() -> None:
    async with serving(speed=1.0) as served:
        served.condition(bandwidth=0.05)
        url = served.url
        body = {"messages": [{"role": "user", "content": "x"}], "stream": True}
        answer = await served.client.post(url + "/v1/chat/completions", json=body)
        assert (await answer.content.readline()).startswith(b"data: ")
        served.replica.exit(served.world.now, 1, "Error")
        await served.server.follow()
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()
        with pytest.raises(aiohttp.ClientConnectionError):
            await served.client.get(url + "/health")
        served.replica.mend(served.world.now)
        await served.server.follow()
        assert served.url == url
        async with served.client.get(url + "/health") as healthy:
            assert healthy.status == 200


async def test_an_answer_whose_text_is_lost_is_billed_and_empty() -> None:
    async with serving() as served:
        served.condition(blank=1.0)
        _, whole = await served.post()
        _, chunks = await served.post(stream=True)
    assert whole["choices"][0]["message"]["content"] is None
    assert whole["usage"]["completion_tokens"] == 65
    assert not any(chunk["choices"][0]["delta"].get("content") for chunk in chunks[:-1])
