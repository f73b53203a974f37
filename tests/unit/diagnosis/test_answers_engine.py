"""What an engine's counters and recorded answers say together about clients that leave and work that is refused."""

from collections.abc import Mapping

import msgspec
import pytest

from tests.factory import histogram, reading, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.diagnosis.refusals import Reason, Refusal, why_refused
from triage.domain.logs import LogEvent, LogKind, LogMark, LogReading
from triage.domain.quantity import Quantity as Q
from triage.domain.situation import NotSeen, Replica, Situation
from triage.domain.stream import Completeness, ErrorAnswer, ProbeReading, StreamReading
from triage.domain.verdict import Confidence, Kind, Verdict

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)
GATEWAY_LOG = NotSeen("gateway.log", "not judged yet", ("gateway-timeout", "retry-storm"), expected=True)
LEFT = StreamReading(
    source="stream.sse", target="a", model="m", protocol="openai-chat", completeness=Completeness.OPEN, timed=True,
    first_visible_s=0.3, last_token_s=2.5, closed_s=2.5, chunks=33, visible_chars=115, events=34, left=True,
)  # fmt: skip
CUT = msgspec.structs.replace(LEFT, completeness=Completeness.TRUNCATED, left=False, closed_s=15.0, last_token_s=15.0)


def leaving(
    *,
    first: float = 76,
    finished: float = 12,
    running: tuple[float, float] = (6, 7),
    more: Mapping[Q, float] | None = None,
    past: Mapping[Q, float] | None = None,
) -> Replica:
    """A replica in which `first` requests got a first token and `finished` ended."""
    base = {Q.GENERATION_TOKENS: 1e6, Q.PROMPT_TOKENS: 2e6, Q.FINISHED: 5e3, Q.ENGINE_STEPS: 1e5} | dict(past or {})
    after = {
        Q.GENERATION_TOKENS: 1e6 + 3286,
        Q.PROMPT_TOKENS: 2e6 + 8693,
        Q.FINISHED: 5e3 + finished,
        Q.ENGINE_STEPS: 1e5 + 500,
    }
    histograms = {Q.TTFT: histogram(0.1, 5000), Q.ITL: histogram(0.05, 1e5), Q.E2E: histogram(2.4, 5000)}
    grown = {
        Q.TTFT: histograms[Q.TTFT].plus(histogram(0.1, first)),
        Q.ITL: histograms[Q.ITL].plus(histogram(0.05, 3000)),
        Q.E2E: histograms[Q.E2E].plus(histogram(2.4, finished)),
    }
    levels = {Q.WAITING: 0.0, Q.KV_USAGE: 0.03}
    return replica(
        reading(base | levels | {Q.RUNNING: running[0]}, histograms=histograms),
        reading(base | after | levels | {Q.RUNNING: running[1]} | dict(more or {}), histograms=grown),
    )


def said(case: Situation, kind: Kind) -> list[Verdict]:
    return [verdict for verdict in diagnose(case).verdicts if verdict.kind is kind]


def first(case: Situation) -> Verdict:
    return diagnose(case).verdicts[0]


# ---- clients that leave


def test_seen_from_both_ends_it_is_named_and_stays_possible() -> None:
    verdict = first(situation(leaving(), streams=(LEFT,), not_seen=(GATEWAY_LOG,)))
    assert (verdict.kind, verdict.detail) == (Kind.CLIENT_ABORT, "while-streaming")
    assert verdict.confidence is Confidence.POSSIBLE
    assert "access log" in verdict.summary
    assert "63 of 76" in verdict.summary
    assert "2.6 s" in verdict.summary


def test_the_engine_alone_cannot_say_who_left() -> None:
    case = situation(leaving())
    assert first(case).kind is Kind.INSUFFICIENT_DATA
    assert [v.confidence for v in said(case, Kind.CLIENT_ABORT)] == [Confidence.POSSIBLE]


def test_a_recorded_cut_contradicts_clients_that_left() -> None:
    case = situation(leaving(), streams=(CUT,), not_seen=(GATEWAY_LOG,))
    assert first(case).kind is Kind.INSUFFICIENT_DATA
    assert said(case, Kind.CLIENT_ABORT) == []
    assert [v.confidence for v in said(case, Kind.TRUNCATED_STREAM)] == [Confidence.POSSIBLE]


def test_prompts_that_come_again_are_retries() -> None:
    again = leaving(
        past={Q.PREFIX_QUERIES: 1e6, Q.PREFIX_HITS: 1e4},
        more={Q.PREFIX_QUERIES: 1e6 + 28932, Q.PREFIX_HITS: 1e4 + 18560},
    )
    assert said(situation(again), Kind.CLIENT_ABORT) == []


def test_prompts_that_always_came_again_are_not() -> None:
    usual = leaving(
        past={Q.PREFIX_QUERIES: 1e6, Q.PREFIX_HITS: 6e5},
        more={Q.PREFIX_QUERIES: 1e6 + 28932, Q.PREFIX_HITS: 6e5 + 18560},
    )
    assert said(situation(usual), Kind.CLIENT_ABORT) != []


def test_a_gauge_that_fell_is_no_client_that_left() -> None:
    """62 were inside at the first reading and none at the second: such gauges may be old."""
    stale = leaving(first=1, finished=1, running=(62, 0))
    assert said(situation(stale), Kind.CLIENT_ABORT) == []


def test_requests_that_still_run_have_not_left() -> None:
    assert said(situation(leaving(first=70, finished=12, running=(2, 60))), Kind.CLIENT_ABORT) == []


@pytest.mark.parametrize(("aborted", "finished", "named"), [(4, 5, True), (2, 2, False), (4, 40, False)])
def test_counted_aborts(aborted: float, finished: float, named: bool) -> None:
    case = situation(leaving(first=finished, finished=finished, past={Q.ABORTED: 7.0}, more={Q.ABORTED: 7.0 + aborted}))
    assert bool(said(case, Kind.CLIENT_ABORT)) is named
    assert first(case).kind is not Kind.CLIENT_ABORT


def test_a_client_that_left_because_nothing_came_says_nothing_about_others() -> None:
    bored = msgspec.structs.replace(LEFT, closed_s=40.0)
    assert first(situation(leaving(), streams=(bored,))).kind is Kind.INSUFFICIENT_DATA


# ---- work that is refused

LONG = ErrorAnswer("response-400.json", 400, "This model's maximum context length is 4096 tokens. However, your prompt "
                   "contains at least 4097 input tokens")  # fmt: skip
WRONG = ErrorAnswer("response-400b.json", 400, "temperature must be at most 2")


def refusing(refused: float, answered: float) -> Replica:
    past = {Q.HTTP_REFUSED: 10.0, Q.HTTP_ANSWERED: 1000.0}
    more = {Q.HTTP_REFUSED: 10.0 + refused, Q.HTTP_ANSWERED: 1000.0 + answered}
    return leaving(first=answered, finished=answered, running=(2, 2), past=past, more=more)


def test_most_requests_refused_and_one_says_why() -> None:
    verdict = first(situation(refusing(43, 18), error_answers=(LONG,)))
    assert (verdict.kind, verdict.detail, verdict.confidence) == (
        Kind.OVER_REJECTION,
        "context-limit",
        Confidence.LIKELY,
    )


def test_refusals_without_a_reason_name_nothing_and_ask_for_a_body() -> None:
    verdict = first(situation(refusing(43, 18)))
    assert verdict.kind is Kind.INSUFFICIENT_DATA
    assert "the body of one refused answer" in verdict.next_test
    assert said(situation(refusing(43, 18), error_answers=(WRONG,)), Kind.OVER_REJECTION) == []


def test_refusals_for_several_reasons_stay_possible() -> None:
    case = situation(refusing(43, 18), error_answers=(LONG, WRONG))
    assert [v.confidence for v in said(case, Kind.OVER_REJECTION)] == [Confidence.POSSIBLE]


def test_a_few_long_prompts_are_their_senders_mistake() -> None:
    case = situation(refusing(3, 400), error_answers=(LONG,))
    assert first(case).confidence not in SURE


def test_the_engines_own_count_of_rejections_is_enough() -> None:
    verdict = first(situation(leaving(first=60, finished=60, past={Q.REJECTED: 0.0}, more={Q.REJECTED: 30.0})))
    assert (verdict.kind, verdict.detail) == (Kind.OVER_REJECTION, "queue-full")


def test_a_dead_engine_is_dead_and_does_not_refuse() -> None:
    full = ErrorAnswer("response-503.json", 503, "The request queue is full.")
    fatal = LogEvent(LogMark.FATAL, 9, "EngineCore encountered a fatal error")
    log = LogReading("engine.log", "default", LogKind.ENGINE, "vllm", 9, (fatal,), {LogMark.FATAL: 1})
    case = situation(error_answers=(full,), logs=(log,), streams=(CUT,))
    assert first(case).kind is Kind.ENGINE_DEAD
    assert said(case, Kind.OVER_REJECTION) == said(case, Kind.TRUNCATED_STREAM) == []


def test_a_refused_probe_of_a_busy_engine() -> None:
    probe = ProbeReading("probe", "a", "POST", "/v1/chat/completions", 503, body="no slot available")
    assert [v.detail for v in said(situation(serving(), probes=(probe,)), Kind.OVER_REJECTION)] == ["queue-full"]


def test_a_refusal_beside_a_good_page_is_not_healthy() -> None:
    assert all(v.kind is not Kind.HEALTHY for v in diagnose(situation(serving(), error_answers=(WRONG,))).verdicts)


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (
            "This model's maximum context length is 6048 tokens. However, you requested 6616 tokens "
            "(568 in the messages, 6048 in the completion).",
            Refusal(Reason.CONTEXT, 6048, 568, 6048),
        ),
        (
            "'max_tokens' is too large: 10000. This model's maximum context length is 16384 tokens and your request "
            "has 112946 input tokens",
            Refusal(Reason.CONTEXT, 16384, 112946, 10000),
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3000 `inputs` tokens and 2000 `max_new_tokens`",
            Refusal(Reason.CONTEXT, 4096, 3000, 2000),
        ),
        ("prompt is too long: 213462 tokens > 200000 maximum", Refusal(Reason.CONTEXT, 200000, 213462)),
        ("Model is overloaded", Refusal(Reason.CAPACITY)),
        ("upstream connect error or disconnect/reset before headers. reset reason: overflow", Refusal(Reason.CAPACITY)),
        ("local_rate_limited", Refusal(Reason.RATE)),
        ("temperature must be at most 2", None),
        ("context_length is not a known field", None),
        ("upstream request timeout", None),
        ("no healthy upstream", None),
        ("", None),
    ],
)
def test_the_words_of_refusals(words: str, refusal: Refusal | None) -> None:
    assert why_refused(words) == refusal
