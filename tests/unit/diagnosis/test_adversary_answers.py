"""What observed answers prove, and when one may call a system healthy."""

import msgspec
import pytest

from tests.factory import serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.logs import LogEvent, LogKind, LogMark, LogReading
from triage.domain.reading import LoadedModel
from triage.domain.situation import NotSeen, Situation
from triage.domain.stream import Completeness, ProbeReading, StreamReading
from triage.domain.verdict import Confidence, Kind, Verdict

GATEWAY_LOG = NotSeen("gateway.log", "not judged yet", ("gateway-timeout", "retry-storm"), expected=True)
PODS = NotSeen("pods.json", "not read yet", ("crash-loop", "ready-not-routable"), expected=True)


def first(case: Situation) -> Verdict:
    return diagnose(case).verdicts[0]


def stream(**fields: object) -> StreamReading:
    base: dict[str, object] = {
        "source": "stream.sse",
        "target": "a",
        "model": "m",
        "protocol": "openai-chat",
        "completeness": Completeness.COMPLETE,
        "timed": True,
        "chunks": 100,
    }
    return StreamReading(**(base | fields))  # type: ignore[arg-type]


def probe(target: str = "a", **fields: object) -> ProbeReading:
    base = {"source": "probes.json", "target": target, "method": "POST", "path": "/v1/completions", "status": 200}
    return ProbeReading(**(base | {"first_token_s": 0.2, "total_s": 0.4, "output_tokens": 4} | fields))  # type: ignore[arg-type]


# ---- reasoning that is not streamed


UNSTREAMED = stream(
    first_visible_s=38.2, last_token_s=41.0, visible_chars=900, completion_tokens=2760, reasoning_tokens=2580
)


def test_billed_tokens_before_the_first_text_are_hidden_reasoning() -> None:
    verdict = first(situation(serving(), streams=(UNSTREAMED,)))
    assert (verdict.kind, verdict.confidence) == (Kind.HIDDEN_REASONING, Confidence.LIKELY)
    assert "2,580 of 2,760 tokens" in verdict.summary


def test_a_late_answer_without_reasoning_tokens_is_not() -> None:
    plain = msgspec.structs.replace(UNSTREAMED, reasoning_tokens=None)
    assert all(v.kind is not Kind.HIDDEN_REASONING for v in diagnose(situation(serving(), streams=(plain,))).verdicts)


def test_a_little_reasoning_does_not_explain_a_long_wait() -> None:
    """Forty tokens at 16 ms each are not what 38 s were spent on."""
    little = msgspec.structs.replace(UNSTREAMED, completion_tokens=220, reasoning_tokens=40)
    assert all(v.kind is not Kind.HIDDEN_REASONING for v in diagnose(situation(serving(), streams=(little,))).verdicts)


def test_a_whole_answer_that_is_mostly_reasoning_is_possible_and_never_healthy() -> None:
    """Its tokens took 12,560 × 25 ms at the engine's speed; the answer itself carries no times."""
    whole = stream(
        timed=False, reasoning_chars=40000, visible_chars=60, completion_tokens=12600, reasoning_tokens=12560
    )
    verdicts = diagnose(situation(serving(itl=0.025), streams=(whole,))).verdicts
    assert verdicts[0].kind is Kind.INSUFFICIENT_DATA
    assert [v.confidence for v in verdicts if v.kind is Kind.HIDDEN_REASONING] == [Confidence.POSSIBLE]


# ---- health


def test_an_answer_without_times_does_not_confirm_speed() -> None:
    whole = stream(timed=False, visible_chars=500)
    verdict = first(situation(streams=(whole,)))
    assert (verdict.kind, verdict.confidence) == (Kind.HEALTHY, Confidence.POSSIBLE)
    assert "nothing about speed" in verdict.summary


def test_a_model_partly_on_the_cpu_is_not_called_healthy() -> None:
    half = LoadedModel("ps.json", "m:70b", 0.36)
    verdict = first(situation(loaded_models=(half,), streams=(stream(timed=False, visible_chars=500),)))
    assert verdict.kind is Kind.INSUFFICIENT_DATA
    assert "36 %" in verdict.summary
    whole = msgspec.structs.replace(half, on_gpu=1.0)
    assert first(situation(serving(), loaded_models=(whole,))).kind is Kind.HEALTHY


@pytest.mark.parametrize(
    ("unread", "asked", "healthy"),
    [(GATEWAY_LOG, "a", False), (GATEWAY_LOG, "gateway", True), (PODS, "gateway", False), (PODS, "a", False)],
)
def test_something_unread_is_outweighed_only_by_an_answer_through_it(
    unread: NotSeen, asked: str, healthy: bool
) -> None:
    verdict = first(situation(serving(), probes=(probe(asked),), not_seen=(unread,)))
    assert (verdict.kind is Kind.HEALTHY) is healthy
    assert verdict.confidence is (Confidence.POSSIBLE if healthy else None)


def test_a_warning_that_means_nothing_is_explained() -> None:
    warning = LogEvent(LogMark.STALL_WARNING, 9, "No available shared memory broadcast block found")
    log = LogReading("engine.log", "default", LogKind.ENGINE, "vllm", 9, (warning,), {LogMark.STALL_WARNING: 1})
    idle = serving(running=0, tokens=0, prompt=0, finished=0)
    verdict = first(situation(idle, logs=(log,), probes=(probe(),), not_seen=(GATEWAY_LOG,)))
    assert (verdict.kind, verdict.confidence) == (Kind.HEALTHY, Confidence.POSSIBLE)
    assert "harmless" in verdict.summary


def test_requests_sent_without_credentials_leave_the_question_of_access_open() -> None:
    refused = probe(status=401, first_token_s=None, output_tokens=None, auth="none")
    case = situation(serving(), probes=(probe(), refused))
    assert first(case).kind is Kind.INSUFFICIENT_DATA
    assert "valid credentials" in first(case).next_test


def test_nothing_readable_is_not_called_unremarkable() -> None:
    empty = NotSeen("metrics-t0.prom", "empty", (), expected=True)
    assert "unremarkable" not in first(situation(not_seen=(empty,))).summary
