"""Captured streams and whole answers: every one of the cases and recordings, with what must be read from it."""

import json
from typing import Any

import pytest

from tests.cases.public import FOLDER
from tests.data import RECORDINGS
from triage.dialects.streams.capture import read_capture, read_response
from triage.domain.stream import Completeness as C
from triage.domain.stream import StreamReading


def case(name: str) -> StreamReading:
    path = FOLDER / name
    return read_capture(path.read_text(errors="replace"), path.name, path.stem)


def recording(name: str) -> StreamReading:
    path = RECORDINGS / name
    return read_capture(path.read_text(errors="replace"), path.name, path.stem)


# completeness, first reasoning, first visible, closed (seconds), completion tokens
EXPECTED: dict[str, tuple[C, float | None, float | None, float | None, int | None]] = {
    "C105/stream.sse": (C.REASONING_ATE_BUDGET, None, None, 62.114, 10_000),
    "C108/stream.sse": (C.LENGTH_IN_TOOL, None, None, 0.382, 14),
    "C35/stream.sse": (C.OPEN, 0.25, None, 30.0, None),
    "C39/stream.sse": (C.COMPLETE, None, None, None, None),
    "C41/client.sse": (C.COMPLETE, None, None, None, None),
    "C41/upstream.sse": (C.TRUNCATED, None, 0.9, 4.1, None),
    "C42/stream.sse": (C.COMPLETE, None, None, None, 8),
    "C48/stream.sse": (C.TRUNCATED, None, 0.3, 15.002, None),
    "C52/direct.sse": (C.COMPLETE, None, 0.5, 32.75, None),
    "C52/gateway.sse": (C.COMPLETE, None, 16.502, 32.816, None),
    "R01/stream.sse": (C.COMPLETE, None, 0.065, 2.298, 50),
    "R02/stream.sse": (C.OPEN, None, None, 29.007, None),
    "R03/stream.sse": (C.OPEN, None, 18.289, 30.008, None),
    "R04/stream.sse": (C.OPEN, None, 0.098, 98.016, None),
    "R05/stream.sse": (C.ERROR, None, 0.087, 4.134, None),
    "R06/short.sse": (C.COMPLETE, None, 0.088, 1.447, 30),
    "R06/stream.sse": (C.TRUNCATED, None, 0.066, 16.009, None),
    "R07/stream-2.sse": (C.REASONING_ATE_BUDGET, 0.053, None, 1.583, 64),
    "R07/stream.sse": (C.REASONING_ATE_BUDGET, 0.058, None, 5.275, 200),
    "R08/stream.sse": (C.OPEN, None, 0.335, 2.534, None),
    "R09/stream.sse": (C.COMPLETE, None, 8.309, 16.114, 5),
    "R10/stream.sse": (C.COMPLETE, None, 0.087, 1.859, 40),
    "R11/stream.sse": (C.COMPLETE, None, 4.354, 4.408, 60),
    "R12/baseline.sse": (C.COMPLETE, None, 0.065, 4.53, 100),
    "R12/stream.sse": (C.OPEN, None, 0.725, 28.01, None),
    "R13/stream.sse": (C.COMPLETE, None, 23.484, 25.586, 60),
    "R14/stream.sse": (C.COMPLETE, None, 5.574, 6.292, 60),
    "R16/stream.sse": (C.COMPLETE, None, 0.003, 0.006, 40),
}


def test_no_capture_is_forgotten() -> None:
    assert set(EXPECTED) == {f"{path.parent.name}/{path.name}" for path in FOLDER.glob("*/*.sse")}


@pytest.mark.parametrize("name", EXPECTED)
def test_captures_of_the_cases(name: str) -> None:
    reading = case(name)
    completeness, reasoning, visible, closed, completion = EXPECTED[name]
    assert reading.completeness is completeness
    assert (reading.first_reasoning_s, reading.first_visible_s) == (reasoning, visible)
    assert reading.closed_s == closed
    assert reading.timed is (closed is not None)
    assert reading.completion_tokens == completion
    assert (reading.source, reading.target) == (name.split("/")[1], name.split("/")[1].removesuffix(".sse"))


def test_decisive_details() -> None:
    assert case("R04/stream.sse").detail == "the recording ends before the stream; no text in its last 95.0 s"
    assert case("R02/stream.sse").detail == "no event came"
    assert case("C42/stream.sse").detail == "no terminator, but a finish reason and an orderly close"
    assert case("C39/stream.sse").detail == "tool-call markup <tool_call> in the visible text"
    assert case("C108/stream.sse").detail.startswith("arguments of execute_bash_code are not JSON")
    assert case("C105/stream.sse").reasoning_tokens == 10_000
    assert case("C35/stream.sse").reasoning_chars > 20_000
    dead = case("R05/stream.sse").error
    assert dead is not None
    assert dead.startswith("EngineCore encountered an issue")


def test_buffering_shows_in_the_times_of_the_chunks() -> None:
    direct, gateway = case("C52/direct.sse"), case("C52/gateway.sse")
    assert direct.visible_chars == gateway.visible_chars == 129 * 40
    assert direct.chunks == gateway.chunks == 129


@pytest.mark.parametrize(
    ("name", "protocol", "completeness", "reasoning_chars", "completion", "reasoning_tokens"),
    [
        ("vllm/vllm-0.32.0-stream-reasoning-exhausts-max-tokens.sse", "openai-chat", C.REASONING_ATE_BUDGET, 33, 8, 7),
        ("vllm/vllm-0.32.0-stream-anthropic-messages.sse", "anthropic-messages", C.REASONING_ATE_BUDGET, 33, 8, None),
        ("vllm/vllm-0.32.0-stream-engine-killed.sse", "openai-chat", C.ERROR, 0, None, None),
        (
            "sglang/sglang-0.5.23-stream-reasoning-exhausts-max-tokens.sse",
            "openai-chat",
            C.REASONING_ATE_BUDGET,
            26,
            8,
            8,
        ),
        # cut off by the person who recorded it, with no note
        ("sglang/sglang-0.5.23-stream-anthropic-messages.sse", "anthropic-messages", C.OPEN, 20, None, None),
        ("dynamo/chat_ok.txt", "openai-chat", C.COMPLETE, 0, 5, None),
        ("dynamo/stream_cut_by_worker_kill_tail.txt", "openai-chat", C.ERROR, 0, None, None),
        ("dynamo/stream_queued_when_worker_killed_tail.txt", "", C.ERROR, 0, None, None),
        ("litellm/200_ok_stream.txt", "openai-chat", C.COMPLETE, 0, None, None),
    ],
)
def test_recordings_of_real_servers(
    name: str,
    protocol: str,
    completeness: C,
    reasoning_chars: int,
    completion: int | None,
    reasoning_tokens: int | None,
) -> None:
    reading = recording(name)
    assert (reading.protocol, reading.completeness, reading.timed) == (protocol, completeness, False)
    assert (reading.reasoning_chars, reading.completion_tokens, reading.reasoning_tokens) == (
        reasoning_chars,
        completion,
        reasoning_tokens,
    )


@pytest.mark.parametrize(
    ("name", "protocol", "finish", "prompt"),
    [
        ("completion", "llama.cpp", "length", 4),
        ("completions", "openai-completions", "length", 4),
        # no message_start: the first token gave no text yet
        ("messages", "anthropic-messages", "length", None),
        ("responses", "openai-responses", "stop", 24),
    ],
)
def test_the_routes_of_llamacpp(name: str, protocol: str, finish: str, prompt: int | None) -> None:
    reading = recording(f"llama-cpp/stream-{name}.sse")
    assert (reading.protocol, reading.completeness, reading.finish_reason) == (protocol, C.COMPLETE, finish)
    assert (reading.prompt_tokens, reading.completion_tokens, reading.detail) == (prompt, 20, "")
    assert reading.visible_chars in (19, 20)
    assert reading.first_visible_s is not None
    assert reading.last_token_s is not None
    assert reading.closed_s is not None
    assert reading.first_visible_s <= reading.last_token_s <= reading.closed_s


CONTENT = 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'


@pytest.mark.parametrize(
    ("note", "completeness", "closed"),
    [
        (": connection closed cleanly by server", C.TRUNCATED, 2.5),
        (": connection reset by peer at t=4.1", C.TRUNCATED, 4.1),
        (": upstream timed out", C.TRUNCATED, 2.5),
        (": curl: (28) operation timed out", C.OPEN, 2.5),  # the client's own limit
        (": capture ended by observer at t=30.0", C.OPEN, 30.0),
        (": client stopped reading", C.OPEN, 2.5),
        (": ping - keep-alive timeout 5 s", C.OPEN, 2.5),
        ("", C.OPEN, 2.5),
    ],
)
def test_notes_about_the_end(note: str, completeness: C, closed: float) -> None:
    reading = read_capture(f": t=2.5\n{CONTENT}{note}\n", "a.sse", "a")
    assert (reading.completeness, reading.closed_s, reading.first_visible_s) == (completeness, closed, 2.5)


def test_a_note_in_the_middle_is_not_about_the_end() -> None:
    reading = read_capture(f"{CONTENT}: connection reset, retried\n{CONTENT}", "a.sse", "a")
    assert (reading.completeness, reading.visible_chars) == (C.OPEN, 2)


def test_newline_delimited_json() -> None:
    text = (
        ': t=0.5\n{"model":"m","message":{"content":"Hi"},"done":false}\n: t=0.7\n{"done":true,"done_reason":"stop"}\n'
    )
    reading = read_capture(text, "a.sse", "a")
    assert (reading.protocol, reading.completeness, reading.first_visible_s) == ("ollama", C.COMPLETE, 0.5)


@pytest.mark.parametrize("text", ["", "<html>\n\n</html>", "\x00\xff" * 100, "data: \ud800\n\n", ": t=1e999\n"])
def test_garbage_is_a_stream_without_events(text: str) -> None:
    reading = read_capture(text, "a.sse", "a")
    assert (reading.events, reading.completeness, reading.protocol) == (0, C.OPEN, "")


# ---- whole answers

BODIES: dict[str, tuple[str, C, int, int, int, int | None] | None] = {
    "C104/response-nothink.json": ("ollama", C.COMPLETE, 0, 38, 0, 9),
    "C104/response-think.json": ("ollama", C.REASONING_ATE_BUDGET, 310, 0, 0, 80),
    "C105/response.json": ("openai-responses", C.REASONING_ATE_BUDGET, 0, 0, 0, 10_000),
    "C107/response.json": ("openai-chat", C.COMPLETE, 0, 134, 0, 41),
    "C108/response-chat.json": ("openai-chat", C.COMPLETE, 0, 0, 1, 14),
    "C11/response-503.json": None,
    "C37/response-length.json": ("openai-chat", C.REASONING_ATE_BUDGET, 48, 0, 0, 4096),
    "C37/response-stop.json": ("openai-chat", C.EMPTY, 106, 0, 0, 31),
    "C39/response-nonstream.json": ("openai-chat", C.COMPLETE, 0, 0, 1, None),
    "C78/response-400.json": None,
    "R10/response-400.json": None,
}


def test_no_answer_is_forgotten() -> None:
    assert set(BODIES) == {f"{path.parent.name}/{path.name}" for path in FOLDER.glob("*/response*.json")}


@pytest.mark.parametrize("name", BODIES)
def test_whole_answers_of_the_cases(name: str) -> None:
    reading = read_response(json.loads((FOLDER / name).read_text()), "response.json", "response")
    if reading is None:
        assert BODIES[name] is None
        return
    assert BODIES[name] == (
        reading.protocol,
        reading.completeness,
        reading.reasoning_chars,
        reading.visible_chars,
        reading.tool_calls,
        reading.completion_tokens,
    )
    assert reading.timed is False
    assert (reading.first_visible_s, reading.closed_s) == (None, None)


def test_markup_in_a_whole_answer() -> None:
    body = json.loads((FOLDER / "C107/response.json").read_text())
    reading = read_response(body, "response.json", "response")
    assert reading is not None
    assert reading.detail == "tool-call markup <｜tool▁calls▁begin｜> in the visible text"


def test_whole_answers_of_the_other_apis() -> None:
    message = {
        "type": "message",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "name": "f", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 9},
    }
    reading = read_response(message, "s", "t")
    assert reading is not None
    assert (reading.protocol, reading.reasoning_chars, reading.visible_chars) == ("anthropic-messages", 2, 2)
    assert (reading.tool_calls, reading.completion_tokens, reading.completeness) == (1, 9, C.COMPLETE)
    completion = read_response({"content": "Hi", "stop": True, "stop_type": "eos", "tokens_predicted": 2}, "s", "t")
    assert completion is not None
    assert (completion.protocol, completion.completeness) == ("llama.cpp", C.COMPLETE)
    tagged = {"choices": [{"message": {"content": "hm</think>\n\nHi"}, "finish_reason": "stop"}]}
    split = read_response(tagged, "s", "t")
    assert split is not None
    assert (split.reasoning_chars, split.visible_chars) == (2, 2)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": "x"},
        {"model": "m", "messages": []},
        {"object": "list", "data": []},
        {"type": "ping"},
    ],
)
def test_what_is_no_answer(body: dict[str, Any]) -> None:
    assert read_response(body, "s", "t") is None
