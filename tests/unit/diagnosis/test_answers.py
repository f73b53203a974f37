"""Evidence folders of answers that nobody has seen before: what is said of each, and what must not be said."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.diagnosis.diagnose import diagnose
from triage.dialects.streams.capture import read_capture
from triage.domain.situation import Situation
from triage.domain.verdict import Confidence, Kind, Verdict
from triage.situation.folder import load_folder

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)
TOOLS = [{"type": "function", "function": {"name": "get_pods", "parameters": {"type": "object"}}}]
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "pods?"}], "stream": True}
WITH_TOOLS = REQUEST | {"tools": TOOLS}


def folder(path: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        (path / name).write_bytes(text.encode())
    return path


def verdicts(path: Path, files: dict[str, Any]) -> tuple[Verdict, ...]:
    return diagnose(load_folder(folder(path, files))).verdicts


def first(path: Path, files: dict[str, Any]) -> Verdict:
    return verdicts(path, files)[0]


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, index: int = 0, **more: Any) -> str:
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish}
    return f"data: {json.dumps({'object': 'chat.completion.chunk', 'model': 'm', 'choices': [choice]} | more)}\n\n"


def text(words: str = "Four pods are ready. ", index: int = 0) -> str:
    return chunk({"content": words}, index=index)


def call(arguments: str | None, index: int = 0, **more: Any) -> str:
    function = {} if arguments is None else {"arguments": arguments}
    return chunk({"tool_calls": [{"index": index, "function": function | more.pop("function", {}), **more}]})


def body(message: dict[str, Any], finish: str | None = "stop", tokens: int | None = 40) -> dict[str, Any]:
    usage = {} if tokens is None else {"usage": {"prompt_tokens": 10, "completion_tokens": tokens}}
    choice = {"index": 0, "message": {"role": "assistant", "content": None} | message, "finish_reason": finish}
    return {"object": "chat.completion", "model": "m", "choices": [choice]} | usage


DONE = "data: [DONE]\n\n"
CUT = ": connection reset by peer at t=4.1\n"
HERMES = '<tool_call>\n{"name": "get_pods", "arguments": {"ns": "x"}}\n</tool_call>'


# ---- whole answers that look odd: none of these is a fault

FINE = {
    "no [DONE], but a finish reason": {"stream.sse": text() + chunk(finish="stop") + ": closed by the server\n"},
    "CRLF": {"stream.sse": (text() + chunk(finish="stop") + DONE).replace("\n", "\r\n")},
    "two choices": {
        "stream.sse": text()
        + text(index=1)
        + chunk(finish="stop")
        + chunk(finish="length", index=1)
        + chunk(choices=[], usage={"completion_tokens": 12})
        + DONE
    },
    "tools offered, answered in words": {
        "request.json": WITH_TOOLS,
        "stream.sse": text() + chunk(finish="stop") + DONE,
    },
    "a call in a code block": {
        "request.json": REQUEST,
        "response.json": body({"content": f"Hermes writes:\n```\n{HERMES}\n```\nand then stops."}),
    },
    "JSON that was asked for": {
        "request.json": REQUEST,
        "response.json": body({"content": '{"name": "get_pods", "parameters": {"ns": "x"}}'}),
    },
    "parallel calls in fragments": {
        "request.json": WITH_TOOLS,
        "stream.sse": call(None, 0, id="a", function={"name": "get_pods"})
        + call('{"ns"', 0)
        + call(': "x"}', 0)
        + call('{"n', 1, id="b", function={"name": "get_pods"})
        + call('s": "y"}', 1)
        + chunk(finish="tool_calls")
        + DONE,
    },
    "parallel calls that all have index 0": {
        "request.json": WITH_TOOLS,
        "stream.sse": call('{"ns": "x"}', 0, id="a", function={"name": "get_pods"})
        + call('{"ns": "y"}', 0, id="b", function={"name": "get_pods"})
        + chunk(finish="tool_calls")
        + DONE,
    },
    "a new id with every fragment": {
        "request.json": WITH_TOOLS,
        "stream.sse": call('{"ns"', 0, id="a", function={"name": "get_pods"})
        + call(': "x"}', 0, id="b")
        + chunk(finish="tool_calls")
        + DONE,
    },
    "no parameters": {
        "request.json": WITH_TOOLS,
        "stream.sse": call("", 0, id="a", function={"name": "get_pods"}) + chunk(finish="tool_calls") + DONE,
    },
    "empty object": {
        "request.json": WITH_TOOLS,
        "response.json": body(
            {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}, "tool_calls"
        ),
    },
    "a refusal": {"response.json": body({"refusal": "I cannot help with that."})},
    "Anthropic, token limit": {
        "response.json": {
            "type": "message",
            "model": "m",
            "content": [{"type": "text", "text": "Four pods"}],
            "stop_reason": "max_tokens",
            "usage": {"input_tokens": 4, "output_tokens": 4},
        }
    },
    "llama.cpp, context shifted": {
        "response.json": {
            "content": "Four pods",
            "stop": True,
            "stop_type": "limit",
            "truncated": True,
            "tokens_predicted": 3,
        }
    },
    "Responses, token limit with text": {
        "response.json": {
            "object": "response",
            "model": "m",
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "Four pods are"}]}],
            "usage": {"output_tokens": 4},
        }
    },
    "finish reason before the last text": {
        "stream.sse": text() + chunk({"content": "ready."}, "stop") + chunk(choices=[], usage={}) + DONE
    },
}


@pytest.mark.parametrize("files", FINE.values(), ids=FINE.keys())
def test_odd_but_whole_is_healthy(files: dict[str, Any], tmp_path: Path) -> None:
    said = verdicts(tmp_path, files)
    assert [verdict.kind for verdict in said] == [Kind.HEALTHY], [verdict.summary for verdict in said]


# ---- answers that prove nothing

OPEN = {
    "recording that merely ends": {"stream.sse": ": t=0.2\n" + text() + text()},
    "comments only": {"stream.sse": ": keep-alive\n\n: keep-alive\n\n"},
    "comments only, then cut": {"stream.sse": ": keep-alive\n\n: keep-alive\n\n" + CUT},
    "client stopped": {"stream.sse": text() + ": client stopped reading at t=2.0\n"},
    "client's own limit": {"stream.sse": text() + ": curl: (28) operation timed out\n"},
    "role chunk, capture ended": {"stream.sse": chunk({"role": "assistant", "content": ""}) + ": capture ended\n"},
    "asked while it is being made": {"response.json": {"object": "response", "status": "in_progress", "output": []}},
    "a model that was only loaded": {
        "response.json": {"model": "m", "response": "", "done": True, "done_reason": "load"}
    },
    "held back on purpose": {"response.json": body({"content": ""}, "content_filter")},
    "goes on in the next turn": {
        "response.json": {"type": "message", "content": [], "stop_reason": "pause_turn", "usage": {"output_tokens": 30}}
    },
    "a whole body without a finish reason": {"response.json": body({"content": "Four pods"}, None)},
    "a wrong request": {"response-400.json": {"error": {"message": "temperature must be at most 2", "code": 400}}},
    "an unknown model": {"response-404.json": {"error": {"message": "The model `x` does not exist", "code": 404}}},
    "a bad key": {"response-401.json": {"error": "Unauthorized"}},
    "one prompt that is too long": {"response-400.json": {"error": "maximum context length is 8192 tokens"}},
}


@pytest.mark.parametrize("files", OPEN.values(), ids=OPEN.keys())
def test_what_proves_nothing_is_not_named_with_confidence(files: dict[str, Any], tmp_path: Path) -> None:
    said = verdicts(tmp_path, files)
    assert [verdict.kind for verdict in said if verdict.confidence in SURE and verdict.kind is not Kind.HEALTHY] == []


# ---- cut answers

CUTS = {
    "reset": ({"stream.sse": ": t=1.0\n" + text() + text() + CUT}, None),
    "HTTP/2 reset": (
        {"stream.sse": text() + ": HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR, stream was reset\n"},
        None,
    ),
    "closed without a finish reason": ({"stream.sse": text() + ": connection closed by the server\n"}, None),
    "error event under 200": (
        {"stream.sse": text() + 'data: {"error": {"message": "CUDA kernel failed", "code": 500}}\n\n' + DONE},
        "error-event",
    ),
    "abort as finish reason, and [DONE]": ({"stream.sse": text() + chunk(finish="abort") + DONE}, "engine-abort"),
    "error event about the context, in the middle": (
        {"stream.sse": text() + 'data: {"error": {"message": "Context size has been exceeded.", "code": 500}}\n\n'},
        "error-event",
    ),
    "one of two choices": ({"stream.sse": text() + text(index=1) + chunk(finish="stop") + CUT}, None),
    "whole at the engine": (
        {"engine.sse": text() + text() + chunk(finish="stop") + DONE, "gateway.sse": text() + CUT},
        "hop-between",
    ),
    "cut at the engine": ({"upstream.sse": text() + CUT, "client.sse": text() + CUT}, "engine-side"),
    "probe with tokens": (
        {
            "probes.json": [
                {
                    "target": "gateway",
                    "method": "POST",
                    "path": "/v1/chat/completions",
                    "status": 200,
                    "ttft_s": 0.2,
                    "total_s": 15.0,
                    "error": "peer closed connection without sending complete message body (incomplete chunked read)",
                }
            ]
        },
        None,
    ),
}


@pytest.mark.parametrize(("files", "detail"), CUTS.values(), ids=CUTS.keys())
def test_cut_answers(files: dict[str, Any], detail: str | None, tmp_path: Path) -> None:
    verdict = first(tmp_path, files)
    assert verdict.kind is Kind.TRUNCATED_STREAM, verdict.summary
    assert verdict.confidence in SURE
    assert verdict.detail == detail


def test_the_hop_is_named_as_far_as_two_recordings_prove_it(tmp_path: Path) -> None:
    verdict = first(tmp_path, CUTS["whole at the engine"][0])
    assert (verdict.scope.hop, verdict.confidence) == ("gateway", Confidence.LIKELY)


def test_the_same_text_with_an_orderly_end_in_front_is_the_discriminating_test(tmp_path: Path) -> None:
    verdict = first(tmp_path, {"pod.sse": text() + CUT, "edge.sse": text() + chunk(finish="stop") + DONE})
    assert (verdict.detail, verdict.scope.hop) == ("engine-side", "pod")
    assert verdict.confidence is Confidence.CONFIRMED
    assert any(item.id == "probe.clean-end" for item in verdict.evidence)


def test_a_note_about_a_body_that_was_shortened_is_no_cut(tmp_path: Path) -> None:
    probe = {"method": "POST", "path": "/v1/completions", "status": 200, "ttft_s": 0.1, "note": "body truncated here"}
    assert all(v.kind is not Kind.TRUNCATED_STREAM for v in verdicts(tmp_path, {"probes.json": [probe]}))


def test_a_shorter_whole_answer_proves_no_hop(tmp_path: Path) -> None:
    verdict = first(
        tmp_path, {"engine.sse": text("Hi") + chunk(finish="stop") + DONE, "gateway.sse": text() + text() + CUT}
    )
    assert (verdict.kind, verdict.scope.hop, verdict.detail) == (Kind.TRUNCATED_STREAM, None, None)


def test_an_unread_gateway_log_keeps_it_possible(tmp_path: Path) -> None:
    line = '{"response_code": 200, "response_flags": "UT", "duration": 15000, "path": "/v1/chat/completions"}\n'
    verdict = first(tmp_path, {"stream.sse": text() + CUT, "gateway.log": line * 5})
    assert verdict.confidence in (None, Confidence.POSSIBLE)


def test_a_client_that_hung_up_is_no_cut(tmp_path: Path) -> None:
    probe = {"method": "POST", "path": "/v1/completions", "status": 200, "ttft_s": 0.1, "error": "client disconnected"}
    assert all(v.kind is not Kind.TRUNCATED_STREAM for v in verdicts(tmp_path, {"probes.json": [probe]}))


# ---- empty answers


@pytest.mark.parametrize(
    ("files", "detail", "confidence"),
    [
        (
            {"response.json": body({"content": "", "reasoning_content": "Restart the collector."})},
            "answer-in-reasoning",
            Confidence.LIKELY,
        ),
        ({"response.json": body({"content": ""})}, "text-lost", Confidence.LIKELY),
        ({"response.json": body({"content": " \n "})}, "text-lost", Confidence.LIKELY),
        ({"response.json": body({"content": ""}, tokens=1)}, "text-lost", Confidence.POSSIBLE),
        ({"response.json": body({"content": ""}, tokens=None)}, "text-lost", Confidence.POSSIBLE),
        ({"response.json": body({"content": ""}, "length", 4096)}, "text-lost", Confidence.POSSIBLE),
        ({"response.json": body({"content": "ok"}, "stop", 3000)}, "text-lost", Confidence.POSSIBLE),
        ({"counts.json": {"answers": 1000, "content_empty": {"stop": 70, "length": 200}}}, None, Confidence.LIKELY),
    ],
)
def test_empty_answers(files: dict[str, Any], detail: str | None, confidence: Confidence, tmp_path: Path) -> None:
    verdict = first(tmp_path, files)
    assert (verdict.kind, verdict.detail, verdict.confidence) == (Kind.EMPTY_OUTPUT, detail, confidence), (
        verdict.summary
    )


@pytest.mark.parametrize("counts", [{"answers": 9_000_000, "empty": {"stop": 70}}, {"empty": {"stop": 3}}])
def test_a_few_of_many_are_only_possible(counts: dict[str, Any], tmp_path: Path) -> None:
    said = verdicts(tmp_path, {"counts.json": counts})
    assert [(verdict.kind, verdict.confidence) for verdict in said] == [
        (Kind.INSUFFICIENT_DATA, None),
        (Kind.EMPTY_OUTPUT, Confidence.POSSIBLE),
    ]
    assert "empty-output is possible" in said[0].summary


def test_a_budget_that_went_into_thoughts_is_hidden_reasoning(tmp_path: Path) -> None:
    files = {"response.json": body({"content": "", "reasoning_content": "hm " * 200}, "length", 200)}
    said = verdicts(tmp_path, files)
    assert said[0].kind is Kind.HIDDEN_REASONING
    assert all(verdict.kind is not Kind.EMPTY_OUTPUT for verdict in said)


def test_counted_answers_at_their_limit_are_not_empty_output(tmp_path: Path) -> None:
    files = {"counts.json": {"answers": 1000, "content_empty": {"length": 200}}}
    assert first(tmp_path, files).kind is Kind.INSUFFICIENT_DATA


# ---- tool calls

LOST = {
    "in the text": ({"request.json": WITH_TOOLS, "response.json": body({"content": HERMES})}, "not-parsed"),
    "in the text, streamed in pieces": (
        {
            "request.json": WITH_TOOLS,
            "stream.sse": "".join(text(HERMES[i : i + 3]) for i in range(0, len(HERMES), 3))
            + chunk(finish="stop")
            + DONE,
        },
        "not-parsed",
    ),
    "without a marker": (
        {"request.json": WITH_TOOLS, "response.json": body({"content": '{"name": "get_pods", "parameters": {}}'})},
        "not-parsed",
    ),
    "in the reasoning": (
        {"request.json": WITH_TOOLS, "response.json": body({"reasoning_content": f"I look. {HERMES}"})},
        "not-parsed",
    ),
    "head missing": (
        {"stream.sse": call('ns": "x"}', 0, id="a", function={"name": "f"}) + chunk(finish="tool_calls") + DONE},
        "broken-arguments",
    ),
    "an object written as a string": (
        {"response.json": body({"tool_calls": [{"function": {"name": "f", "arguments": '"{}"'}}]}, "tool_calls")},
        "broken-arguments",
    ),
    "cut by the token limit": (
        {"response.json": body({"tool_calls": [{"function": {"name": "f", "arguments": '{"a": "b'}}]}, "length")},
        "cut-by-limit",
    ),
    "cut by the token limit, reported as a call": (
        {
            "request.json": WITH_TOOLS | {"max_tokens": 40},
            "response.json": body({"tool_calls": [{"function": {"name": "f", "arguments": '{"a": "b'}}]}, "tool_calls"),
        },
        "cut-by-limit",
    ),
    "announced and not there": ({"response.json": body({"content": "Let me look."}, "tool_calls")}, "call-lost"),
}


@pytest.mark.parametrize(("files", "detail"), LOST.values(), ids=LOST.keys())
def test_lost_calls(files: dict[str, Any], detail: str, tmp_path: Path) -> None:
    said = verdicts(tmp_path, files)
    assert (said[0].kind, said[0].detail) == (Kind.TOOL_CALL_FAILURE, detail), said[0].summary
    assert said[0].confidence in SURE
    assert all(verdict.kind is not Kind.EMPTY_OUTPUT for verdict in said)


def test_a_call_in_the_text_without_a_request_is_only_possible(tmp_path: Path) -> None:
    verdict = first(tmp_path, {"response.json": body({"content": HERMES})})
    assert (verdict.kind, verdict.confidence) == (Kind.TOOL_CALL_FAILURE, Confidence.POSSIBLE)


def test_a_call_that_nobody_offered_is_neither_a_failure_nor_healthy(tmp_path: Path) -> None:
    said = verdicts(tmp_path, {"request.json": REQUEST, "response.json": body({"content": HERMES})})
    assert [verdict.kind for verdict in said] == [Kind.INSUFFICIENT_DATA]


def test_offered_tools_and_nothing_at_all_may_be_either(tmp_path: Path) -> None:
    said = verdicts(tmp_path, {"request.json": WITH_TOOLS, "response.json": body({"content": ""})})
    assert {verdict.kind for verdict in said} >= {Kind.EMPTY_OUTPUT, Kind.TOOL_CALL_FAILURE}


def test_the_other_path_is_the_test(tmp_path: Path) -> None:
    whole = body({"tool_calls": [{"function": {"name": "get_pods", "arguments": "{}"}}]}, "tool_calls")
    files = {
        "request.json": WITH_TOOLS,
        "stream.sse": text(HERMES) + chunk(finish="stop") + DONE,
        "response.json": whole,
    }
    verdict = first(tmp_path, files)
    assert verdict.confidence is Confidence.CONFIRMED
    assert verdict.summary.endswith("not streamed it is well")


def test_a_request_belongs_to_its_own_answer(tmp_path: Path) -> None:
    """Of two exchanges only one offered tools, and the text with the markup is the other one's."""
    files = {
        "request-plain.json": REQUEST,
        "response-plain.json": body({"content": HERMES}),
        "request-tools.json": WITH_TOOLS,
        "response-tools.json": body(
            {"tool_calls": [{"function": {"name": "get_pods", "arguments": "{}"}}]}, "tool_calls"
        ),
    }
    assert all(verdict.kind is not Kind.TOOL_CALL_FAILURE for verdict in verdicts(tmp_path, files))


def test_a_cut_call_is_a_cut_answer(tmp_path: Path) -> None:
    said = verdicts(tmp_path, {"stream.sse": call('{"ns": "', 0, id="a", function={"name": "f"}) + CUT})
    assert [verdict.kind for verdict in said] == [Kind.TRUNCATED_STREAM]


# ---- refusals

OLLAMA_FULL = "server busy, please try again.  maximum pending requests exceeded"
SGLANG_FULL = "The request queue is full."
LLAMA_LONG = "request (9412 tokens) exceeds the available context size (8192 tokens)"
RATE_LIMITED = {"message": "Rate limit reached: 20 requests per minute"}


@pytest.mark.parametrize(
    ("files", "detail", "sure"),
    [
        ({"response-503.json": {"error": OLLAMA_FULL}}, "queue-full", True),
        ({"response-503.json": {"object": "error", "message": SGLANG_FULL, "code": 503}}, "queue-full", True),
        (
            {
                "response-400.json": {
                    "message": "Requested token count exceeds the model's maximum context length of 64000 tokens. You "
                    "requested a total of 71897 tokens: 7897 tokens from the input messages and 64000 tokens for the "
                    "completion.",
                    "code": 400,
                }
            },
            "context-limit",
            True,
        ),
        (
            {
                "models.json": {"data": [{"id": "m", "max_model_len": 131072}]},
                "response-400.json": {"error": LLAMA_LONG},
            },
            "context-limit",
            True,
        ),
        ({"response-429.json": {"error": RATE_LIMITED}}, "rate-limit", False),
        ({"response-401.json": {"error": "Jwt is not yet valid: token is not yet valid"}}, "expired-credentials", True),
        ({"response-401.json": {"error": "token expired"}}, "expired-credentials", False),
    ],
)  # fmt: skip
def test_refused_work(files: dict[str, Any], detail: str, sure: bool, tmp_path: Path) -> None:
    found = [v for v in verdicts(tmp_path, files) if v.kind is Kind.OVER_REJECTION]
    assert [verdict.detail for verdict in found] == [detail]
    assert (found[0].confidence in SURE) is sure


def test_a_list_that_promises_what_is_enforced_makes_a_long_prompt_the_clients_mistake(tmp_path: Path) -> None:
    files = {
        "models.json": {"data": [{"id": "m", "max_model_len": 8192}]},
        "response-400.json": {"error": LLAMA_LONG},
    }
    assert all(verdict.confidence not in SURE for verdict in verdicts(tmp_path, files))


def test_probes_that_must_be_refused_are_no_over_rejection(tmp_path: Path) -> None:
    probe = {"method": "POST", "path": "/v1/completions", "status": 401, "auth": "expired", "body": "token expired"}
    assert all(v.kind is not Kind.OVER_REJECTION for v in verdicts(tmp_path, {"probes.json": [probe]}))


def test_a_refusal_that_came_as_the_only_event_of_a_stream(tmp_path: Path) -> None:
    files = {"stream.sse": 'data: {"error": {"message": "The request queue is full.", "code": 503}}\n\n'}
    verdict = first(tmp_path, files)
    assert (verdict.kind, verdict.detail) == (Kind.OVER_REJECTION, "queue-full")


# ---- any stream at all

ENDS = ("", CUT, DONE, ": client stopped reading\n", ": closed by the server\n", ": keep-alive\n\n")
PARTS = (
    text(),
    text("<tool_call>"),
    text("```\n"),
    text('{"name": "get_pods", "arguments": {}}'),
    text(index=1),
    chunk({"reasoning_content": "hm"}),
    chunk({"role": "assistant", "content": ""}),
    chunk({}),
    call('{"a"', 0, id="a", function={"name": "f"}),
    call(": 1}", 0),
    call(": 1}", 0, id="b", function={"name": "g"}),
    chunk(finish="tool_calls"),
    chunk(finish="length"),
    chunk(choices=[], usage={"completion_tokens": 90}),
    'data: {"error": "boom"}\n\n',
    "data: {not json\n\n",
    ": t=3.5\n",
    "\r\n",
)


def judged(parts: list[str]) -> tuple[Verdict, ...]:
    return diagnose(Situation(at=None, window_s=0.0, streams=(read_capture("".join(parts), "s.sse", "s"),))).verdicts


@given(st.lists(st.sampled_from(PARTS), max_size=8), st.sampled_from(ENDS))
def test_any_stream_is_judged(parts: list[str], end: str) -> None:
    """No order of events raises, and one without an end is never called cut, empty or broken."""
    kinds = {verdict.kind for verdict in judged([*parts, end]) if verdict.confidence in SURE}
    finished = any('finish_reason": "' in part or "error" in part for part in parts)
    if not finished and end in ("", ": client stopped reading\n", ": keep-alive\n\n"):
        assert kinds <= {Kind.HEALTHY, Kind.HIDDEN_REASONING}


@given(st.lists(st.sampled_from([text(), chunk({}), ": ping\n\n", chunk({"reasoning_content": "hm"})]), max_size=6))
def test_text_and_a_finish_reason_are_whole_however_it_ends(parts: list[str]) -> None:
    for end in ENDS:
        said = judged([*parts, text(), chunk(finish="stop"), end])
        faults = {Kind.TRUNCATED_STREAM, Kind.EMPTY_OUTPUT, Kind.TOOL_CALL_FAILURE}
        assert faults.isdisjoint(verdict.kind for verdict in said)
