"""One streamed answer of each API: milestones, counts and verdict."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.dialects.streams.observer import StreamObserver
from triage.domain.stream import Completeness as C
from triage.domain.stream import StreamReading
from triage.domain.text import clean as cleaned


def watch(*events: Any, clean: bool | None = True, status: int | None = 200, step: float | None = 1.0) -> StreamReading:
    """Event n comes n seconds after the request; text is fed as it is, objects as JSON."""
    observer = StreamObserver("probe", "replica-0", status=status)
    for second, event in enumerate(events, 1):
        at = None if step is None else second * step
        observer.feed(event if isinstance(event, str) else json.dumps(event), at)
    return observer.close(None if step is None else (len(events) + 1) * step, clean)


def chat(finish: str | None = None, usage: dict[str, Any] | None = None, **delta: Any) -> dict[str, Any]:
    chunk: dict[str, Any] = {"object": "chat.completion.chunk", "model": "m", "choices": []}
    if delta or finish:
        chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish}]
    if usage:
        chunk["usage"] = usage
    return chunk


def call(arguments: str, index: int = 0, name: str | None = None) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"name": name, "arguments": arguments}}]}


ROLE = chat(role="assistant", content="")
DONE = "[DONE]"


# ---- OpenAI chat


def test_milestones_of_a_reasoning_answer() -> None:
    reading = watch(
        ROLE,
        chat(reasoning="Let me"),
        chat(reasoning=" see."),
        chat(content="\n\n"),
        chat(content="Four"),
        chat(content="."),
        chat(finish="stop"),
        chat(usage={"prompt_tokens": 9, "completion_tokens": 12, "completion_tokens_details": {"reasoning_tokens": 7}}),
        DONE,
    )
    assert (reading.protocol, reading.model, reading.completeness, reading.detail) == (
        "openai-chat",
        "m",
        C.COMPLETE,
        "",
    )
    assert (reading.first_event_s, reading.first_reasoning_s, reading.last_reasoning_s) == (1.0, 2.0, 3.0)
    assert (reading.first_visible_s, reading.last_token_s, reading.closed_s) == (5.0, 6.0, 10.0)
    assert (reading.reasoning_chars, reading.visible_chars, reading.chunks, reading.events) == (11, 5, 5, 8)
    assert (reading.prompt_tokens, reading.completion_tokens, reading.reasoning_tokens) == (9, 12, 7)
    assert (reading.finish_reason, reading.timed, reading.status) == ("stop", True, 200)


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"reasoning": {"text": "hm"}},
        {"reasoning_content": "hm", "reasoning": "hm"},  # vLLM 0.12 to 0.15 sends the same text twice
        {"reasoning_content": "hm", "thinking_blocks": [{"type": "thinking", "thinking": "hm"}]},  # LiteLLM
        {"thinking_blocks": [{"type": "thinking", "thinking": "hm"}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},  # Mistral
        {"content": "<think>hm</think>"},
    ],
)
def test_every_field_that_reasoning_comes_in(delta: dict[str, Any]) -> None:
    reading = watch(chat(**delta), chat(content="yes"), chat(finish="stop"), DONE)
    assert (reading.reasoning_chars, reading.first_reasoning_s) == (2, 1.0)
    assert (reading.visible_chars, reading.first_visible_s, reading.completeness) == (3, 2.0, C.COMPLETE)


def test_encrypted_reasoning_has_a_time_and_no_characters() -> None:
    reading = watch(chat(reasoning_details=[{"type": "reasoning.encrypted", "data": "x"}]), chat(content="a"))
    assert (reading.first_reasoning_s, reading.reasoning_chars) == (1.0, 0)


def test_tags_are_text_once_reasoning_has_its_own_field() -> None:
    reading = watch(chat(reasoning="r"), chat(content="a</think>b"), chat(finish="stop"), DONE)
    assert (reading.reasoning_chars, reading.visible_chars) == (1, len("a</think>b"))


def test_role_empty_and_usage_chunks_are_no_tokens() -> None:
    reading = watch(
        ROLE, chat(content=None), chat(content=""), chat(finish="stop"), chat(usage={"prompt_tokens": 1}), DONE
    )
    assert (reading.events, reading.chunks, reading.first_visible_s, reading.last_token_s) == (5, 0, None, None)


def test_comments_and_pings_are_no_events() -> None:
    observer = StreamObserver("s", "t")
    observer.comment(1.0)
    observer.feed('{"type": "ping"}', 2.0)
    reading = observer.close(3.0, None)
    assert (reading.events, reading.first_event_s, reading.completeness) == (0, None, C.OPEN)
    assert reading.detail == "no event came, 1 keep-alive comments"


def test_tool_calls_have_a_time_of_their_own() -> None:
    reading = watch(
        ROLE,
        chat(**call("", name="get_pods")),
        chat(**call('{"ns":')),
        chat(**call('"a"}')),
        chat(finish="tool_calls"),
        DONE,
    )
    assert (reading.first_tool_s, reading.first_visible_s, reading.tool_calls, reading.chunks) == (2.0, None, 1, 3)
    assert reading.completeness is C.COMPLETE


@pytest.mark.parametrize("finish", ["tool_calls", "length"])
def test_arguments_cut_by_the_limit(finish: str) -> None:
    reading = watch(chat(**call('{"ns": "in', name="get_pods")), chat(finish=finish), DONE)
    assert reading.completeness is C.LENGTH_IN_TOOL
    assert reading.detail.startswith("arguments of get_pods are not JSON: ")


def test_two_calls_are_checked_apart() -> None:
    chunks = [chat(**call('{"a"', 0)), chat(**call('{"b": 1}', 1)), chat(**call(": 2}", 0))]
    assert watch(*chunks, chat(finish="tool_calls"), DONE).completeness is C.COMPLETE


def test_a_call_without_arguments_is_well() -> None:
    assert watch(chat(**call("", name="now")), chat(finish="tool_calls"), DONE).completeness is C.COMPLETE


def test_endless_arguments_are_not_kept() -> None:
    chunks = [chat(**call("x" * 65536)) for _ in range(6)]
    assert watch(*chunks, chat(finish="tool_calls"), DONE).completeness is C.COMPLETE


def test_markup_that_no_parser_took() -> None:
    reading = watch(chat(content="<tool_"), chat(content='call>{"name"'), chat(finish="stop"), DONE)
    assert (reading.completeness, reading.tool_calls) == (C.COMPLETE, 0)
    assert reading.detail == "tool-call markup <tool_call> in the visible text"


# ---- the ways to end


def test_finish_reason_in_an_earlier_chunk_and_no_terminator() -> None:
    chunks = (chat(content="ready"), chat(content=".", finish="stop"), chat(usage={"completion_tokens": 3}))
    orderly, unknown, cut = watch(*chunks), watch(*chunks, clean=None), watch(*chunks, clean=False)
    assert (orderly.completeness, orderly.detail) == (
        C.COMPLETE,
        "no terminator, but a finish reason and an orderly close",
    )
    assert unknown.completeness is C.NO_TERMINATOR
    assert (cut.completeness, cut.detail) == (C.NO_TERMINATOR, "cut after the finish reason, before the terminator")


@pytest.mark.parametrize(
    ("clean", "completeness", "detail"),
    [
        (False, C.TRUNCATED, "the connection was cut without a finish reason"),
        (True, C.TRUNCATED, "the server closed the connection without a finish reason"),
        (None, C.OPEN, "the recording ends before the stream"),
    ],
)
def test_no_finish_reason(clean: bool | None, completeness: C, detail: str) -> None:
    reading = watch(chat(content="half an"), clean=clean)
    assert (reading.completeness, reading.detail, reading.finish_reason) == (completeness, detail, None)


def test_half_an_event_and_a_long_silence_are_told() -> None:
    observer = StreamObserver("s", "t")
    observer.feed(json.dumps(chat(content="a")), 3.0)
    observer.feed('{"choices": [{"del', 3.1)
    assert (
        observer.close(98.0, None).detail
        == "the recording ends before the stream, the last event is incomplete; no text in its last 95.0 s"
    )


@pytest.mark.parametrize("finish", ["abort", "error", "cancelled"])
def test_finish_reasons_that_are_no_answer(finish: str) -> None:
    assert watch(chat(content="a"), chat(finish=finish), DONE).completeness is C.ABORTED


def test_the_terminator_alone_proves_nothing() -> None:
    reading = watch(chat(content="a"), DONE)
    assert (reading.completeness, reading.detail) == (C.ABORTED, "the terminator came without a finish reason")


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "engine dead", "code": 500}},
        {"error": "engine dead"},
        {"object": "error", "message": "engine dead", "code": 500},
        {"type": "error", "error": {"type": "overloaded_error", "message": "engine dead"}},
    ],
)
def test_errors_inside_the_stream(event: dict[str, Any]) -> None:
    reading = watch(chat(content="a"), event, DONE)
    assert (reading.completeness, reading.error) == (C.ERROR, "engine dead")


def test_an_event_named_error_is_one() -> None:
    observer = StreamObserver("s", "t")
    observer.feed('{"message": "no worker"}', None, "error")
    assert observer.close(None, True).error == "no worker"


def test_a_refused_request() -> None:
    assert watch({"detail": "nope"}, status=503).error == "HTTP 503"


def test_an_error_field_of_null_is_none() -> None:
    assert watch(chat(content="a") | {"error": None}, chat(finish="stop"), DONE).completeness is C.COMPLETE


# ---- what a finished answer can lack


def usage(completion: int, reasoning: int | None = None) -> dict[str, Any]:
    details = {} if reasoning is None else {"completion_tokens_details": {"reasoning_tokens": reasoning}}
    return chat(usage={"prompt_tokens": 9, "completion_tokens": completion, **details})


@pytest.mark.parametrize(
    ("chunks", "completeness"),
    [
        # finish length without visible output
        ([chat(reasoning="mmm"), chat(finish="length"), usage(200)], C.REASONING_ATE_BUDGET),
        ([chat(reasoning="mmm"), chat(finish="length")], C.REASONING_ATE_BUDGET),
        ([chat(finish="length"), usage(10_000, 10_000)], C.REASONING_ATE_BUDGET),
        ([chat(finish="length"), usage(10_000)], C.EMPTY),
        ([chat(finish="length"), usage(10_000, 0)], C.EMPTY),
        # a one-token probe of a reasoning model
        ([chat(reasoning="m"), chat(finish="length"), usage(1, 1)], C.COMPLETE),
        ([chat(finish="length"), usage(1)], C.COMPLETE),
        # finish stop without visible output
        ([chat(reasoning="mmm"), chat(finish="stop"), usage(31)], C.EMPTY),
        ([chat(finish="stop"), usage(31)], C.EMPTY),
        ([chat(finish="stop")], C.EMPTY),
        ([chat(finish="stop"), usage(0)], C.COMPLETE),
        ([chat(content=" \n"), chat(finish="stop"), usage(2)], C.EMPTY),
        # tokens against characters
        ([chat(content="x" * 30), chat(finish="stop"), usage(900)], C.BILLED_NOT_SHOWN),
        ([chat(content="x" * 30), chat(finish="stop"), usage(900, 890)], C.COMPLETE),
        ([chat(content="x" * 30), chat(reasoning="y" * 30), chat(finish="stop"), usage(900, 890)], C.BILLED_NOT_SHOWN),
        ([chat(content="x" * 60), chat(finish="stop"), usage(100)], C.COMPLETE),  # byte-level tokens
        ([chat(content="x"), chat(finish="stop"), usage(60)], C.COMPLETE),
        ([chat(**call('{"a": "' + "x" * 900 + '"}')), chat(finish="tool_calls"), usage(900)], C.COMPLETE),
    ],
)
def test_content(chunks: list[Any], completeness: C) -> None:
    assert watch(*chunks, DONE).completeness is completeness


def test_reasoning_that_was_not_streamed_is_told() -> None:
    reading = watch(chat(content="four"), chat(finish="stop"), usage(40, 38), DONE)
    assert (reading.completeness, reading.detail) == (C.COMPLETE, "38 reasoning tokens were not streamed")


def test_usage_forms() -> None:
    sglang = watch(
        chat(content="abcd", finish="stop"), chat(usage={"completion_tokens": 3, "reasoning_tokens": 0}), DONE
    )
    assert (sglang.completion_tokens, sglang.reasoning_tokens) == (3, 0)
    timings = chat(content="abcd", finish="stop") | {"timings": {"cache_n": 8, "prompt_n": 29, "predicted_n": 3}}
    llamacpp = watch(timings, DONE)
    assert (llamacpp.prompt_tokens, llamacpp.completion_tokens) == (37, 3)
    running = [chat(content="a", usage={"completion_tokens": n, "prompt_tokens": 5}) for n in (1, 2, 3)]
    assert watch(*running, chat(finish="stop"), DONE).completion_tokens == 3


# ---- other APIs


def test_legacy_completions() -> None:
    chunk = {"object": "text_completion", "choices": [{"text": "Paris", "finish_reason": None}]}
    end = {"object": "text_completion", "choices": [{"text": "", "finish_reason": "stop"}]}
    reading = watch(chunk, end, DONE)
    assert (reading.protocol, reading.visible_chars, reading.completeness) == ("openai-completions", 5, C.COMPLETE)


def test_anthropic_messages() -> None:
    reading = watch(
        {
            "type": "message_start",
            "message": {"model": "m", "usage": {"input_tokens": 11, "output_tokens": 1, "cache_read_input_tokens": 4}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "abc"}},
        {"type": "ping"},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "name": "ls", "input": {}}},
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"path": "/"}'},
        },
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    )
    assert (reading.protocol, reading.model, reading.completeness) == ("anthropic-messages", "m", C.COMPLETE)
    assert (reading.first_reasoning_s, reading.first_visible_s, reading.first_tool_s) == (3.0, 7.0, 8.0)
    assert (reading.prompt_tokens, reading.completion_tokens, reading.finish_reason) == (15, 20, "tool_calls")
    assert (reading.events, reading.tool_calls) == (10, 1)


def test_anthropic_redacted_thinking_and_no_final_count() -> None:
    reading = watch(
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 0}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": "x"}},
        clean=False,
    )
    assert (reading.completeness, reading.first_reasoning_s, reading.completion_tokens) == (C.TRUNCATED, 2.0, None)


def responses(*deltas: tuple[str, str], status: str = "completed", **end: Any) -> StreamReading:
    events: list[Any] = [{"type": "response.created", "response": {"model": "m"}}]
    events += [{"type": f"response.{kind}.delta", "delta": text, "output_index": 1} for kind, text in deltas]
    return watch(*events, {"type": f"response.{status}", "response": {"status": status, **end}})


def test_responses_api() -> None:
    output = [{"type": "message", "content": [{"type": "output_text", "text": "Four."}]}]
    usage = {"input_tokens": 9, "output_tokens": 12, "output_tokens_details": {"reasoning_tokens": 7}}
    reading = responses(("reasoning_text", "hm"), ("output_text", "Four."), output=output, usage=usage)
    assert (reading.protocol, reading.model, reading.completeness) == ("openai-responses", "m", C.COMPLETE)
    assert (reading.first_reasoning_s, reading.first_visible_s, reading.visible_chars) == (2.0, 3.0, 5)
    assert (reading.prompt_tokens, reading.completion_tokens, reading.reasoning_tokens) == (9, 12, 7)


def test_responses_whose_text_comes_only_with_the_end() -> None:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Four."}]},
        {"type": "function_call", "name": "f", "arguments": "{}"},
    ]
    reading = responses(output=output)
    assert (reading.reasoning_chars, reading.visible_chars, reading.tool_calls, reading.finish_reason) == (
        2,
        5,
        1,
        "tool_calls",
    )
    assert reading.first_visible_s == 2.0


def test_responses_that_end_otherwise() -> None:
    cut = responses(("output_text", "Fo"), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert (cut.completeness, cut.finish_reason) == (C.COMPLETE, "length")
    failed = responses(("output_text", "Fo"), status="failed", error={"message": "out of memory"})
    assert (failed.completeness, failed.error) == (C.ERROR, "out of memory")
    assert responses(("output_text", "Fo"), status="cancelled").completeness is C.ABORTED
    broken = responses(("function_call_arguments", '{"a'))
    assert broken.completeness is C.LENGTH_IN_TOOL


def test_ollama_chat_and_generate() -> None:
    end = {"done": True, "done_reason": "length", "prompt_eval_count": 7, "eval_count": 80}
    thinking = watch(
        {"model": "m", "message": {"thinking": "hm", "content": ""}, "done": False}, {"message": {"content": ""}, **end}
    )
    assert (thinking.protocol, thinking.completeness) == ("ollama", C.REASONING_ATE_BUDGET)
    assert (thinking.prompt_tokens, thinking.completion_tokens) == (7, 80)
    generate = watch({"response": "Hi", "done": False}, {"response": "!", "done": True, "done_reason": "stop"})
    assert (generate.visible_chars, generate.completeness) == (3, C.COMPLETE)
    tool = watch(
        {"message": {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, "done": False},
        {"done": True},
    )
    assert (tool.tool_calls, tool.completeness) == (1, C.COMPLETE)


@pytest.mark.parametrize(
    ("end", "finish"),
    [({"stop_type": "limit"}, "length"), ({"stop_type": "eos"}, "stop"), ({"stopped_limit": True}, "length")],
)
def test_llamacpp_completion(end: dict[str, Any], finish: str) -> None:
    reading = watch(
        {"content": "Hi", "stop": False},
        {"content": "", "stop": True, "tokens_predicted": 2, "tokens_evaluated": 5, **end},
    )
    assert (reading.protocol, reading.finish_reason, reading.completion_tokens) == ("llama.cpp", finish, 2)
    assert reading.completeness is C.COMPLETE


# ---- bad input


def test_remote_words_are_cleaned() -> None:
    reading = watch(
        chat(content="a", finish="st\x1b[31mop\u202e") | {"model": "m\x1b]0;x\x07\u200b" + "n" * 500},
        {"error": "\x1b[2Jbad"},
    )
    assert reading.model.startswith("mn")
    assert len(reading.model) <= 120
    assert (reading.finish_reason, reading.error) == ("stop", "bad")


def test_without_times_nothing_is_timed() -> None:
    reading = watch(chat(content="a"), chat(finish="stop"), DONE, step=None)
    assert (reading.timed, reading.first_visible_s, reading.closed_s, reading.completeness) == (
        False,
        None,
        None,
        C.COMPLETE,
    )


def test_events_that_lost_the_blank_line_between_them() -> None:
    observer = StreamObserver("s", "t")
    observer.feed("\n".join([json.dumps(chat(content="a")), json.dumps(chat(finish="stop")), DONE]), 1.0)
    reading = observer.close(1.0, True)
    assert (reading.events, reading.completeness) == (2, C.COMPLETE)


def test_broken_events_are_told() -> None:
    reading = watch(chat(content="a"), "{not json", chat(finish="stop"), DONE)
    assert (reading.completeness, reading.detail) == (C.COMPLETE, "1 events are not JSON")


_KEYS = [
    *("type", "choices", "delta", "message", "content", "usage", "error", "done"),
    *("stop", "tool_calls", "index", "function", "arguments", "finish_reason", "response", "output"),
    *("object", "text", "completion_tokens", "reasoning", "timings", "content_block"),
]
_WORDS = st.sampled_from(["stop", "message_start", "content_block_start", "response.completed", "tool_use", "error"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=12,
)


@given(st.lists(_JSON.map(json.dumps) | st.text(max_size=30), max_size=6), st.sampled_from([True, False, None]))
def test_nothing_a_server_sends_raises(events: list[str], clean: bool | None) -> None:
    reading = watch(*events, clean=clean)
    assert reading.reasoning_chars >= 0
    assert reading.visible_chars >= 0
    assert reading.finish_reason is None or reading.finish_reason == cleaned(reading.finish_reason)


def test_deep_nesting_does_not_raise() -> None:
    watch(
        "[" * 100_000,
        '{"choices":' * 5000 + "1" + "}" * 5000,
        '{"choices": [{"delta": {"content": "\\ud800"}}]}',
        "1" * 10_000,
    )
