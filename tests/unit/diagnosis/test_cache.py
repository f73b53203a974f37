"""Lost prefix-cache hits: what takes them away, and falls that are none."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import histogram, reading, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.histogram import Histogram
from triage.domain.logs import LogKind, LogReading
from triage.domain.prompts import PromptPair, Reuse
from triage.domain.quantity import Quantity as Q
from triage.domain.situation import Replica, Situation
from triage.domain.verdict import Confidence, Kind, Verdict

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)
PAIR = PromptPair("request-1.json", "request-2.json", length=9000, shared=60, changed=5, rest=8900)


def caching(
    share: float,
    before: float,
    *,
    asked: float = 60_000,
    asked_before: float = 5e6,
    requests: float = 30,
    length: float = 2000,
    ttft: float = 0.4,
    started: float | None = 1000.0,
    waiting: float = 0.0,
    kv: float = 0.3,
    extra: Mapping[Q, float] | None = None,
    name: str = "a",
) -> Replica:
    """A vLLM replica. share, before: of prompt tokens found in the cache, in the window and since start up to it."""
    levels = {Q.RUNNING: 4.0, Q.WAITING: waiting, Q.KV_USAGE: kv} | dict(extra or {})
    if started is not None:
        levels[Q.PROCESS_START] = started
    past_requests = asked_before / length
    start = {
        Q.PREFIX_QUERIES: asked_before,
        Q.PREFIX_HITS: before * asked_before,
        Q.PROMPT_TOKENS: asked_before,
        Q.GENERATION_TOKENS: 1e5 if asked_before else 0.0,
        Q.FINISHED: past_requests,
        Q.ENGINE_STEPS: 1e5,
    }
    end = {
        Q.PREFIX_QUERIES: asked_before + asked,
        Q.PREFIX_HITS: before * asked_before + share * asked,
        Q.PROMPT_TOKENS: asked_before + max(asked, requests * length),
        Q.GENERATION_TOKENS: start[Q.GENERATION_TOKENS] + 6000,
        Q.FINISHED: past_requests + requests,
        Q.ENGINE_STEPS: 1e5 + 1000,
    }
    none = Histogram((), (), 0.0, 0.0)
    past = {Q.TTFT: histogram(0.3, past_requests) if past_requests else none, Q.ITL: histogram(0.02, 1e5)}
    now = {
        Q.TTFT: past[Q.TTFT].plus(histogram(ttft, requests)) if past_requests else histogram(ttft, requests),
        Q.ITL: past[Q.ITL].plus(histogram(0.02, 6000)),
    }
    return replica(
        reading(levels | start, histograms=past, name=name), reading(levels | end, histograms=now, name=name)
    )


def against(now: Replica, earlier: Replica) -> Replica:
    return msgspec.structs.replace(now, baseline=earlier.window)


def first(case: Situation) -> Verdict:
    return diagnose(case).verdicts[0]


def lost(case: Situation) -> Verdict | None:
    return next((v for v in diagnose(case).verdicts if v.kind is Kind.CACHE_MISS_REGRESSION), None)


def surely_lost(case: Situation) -> bool:
    return (found := lost(case)) is not None and found.confidence in SURE


def usage(*groups: tuple[str, int, int, int]) -> LogReading:
    """(sender, requests, prompt tokens, cached tokens) each."""
    records = [Reuse(sender, prompt, cached) for sender, count, prompt, cached in groups for _ in range(count)]
    return LogReading("usage.log", "usage", LogKind.ACCESS, "", len(records), reuse=tuple(records))


GOOD = caching(0.9, 0.9, started=1000.0)


# ---- mechanisms


def test_hits_that_a_restart_took_away_for_good() -> None:
    case = situation(against(caching(0.0, 0.0, started=9000.0, ttft=1.4), GOOD))
    verdict = first(case)
    assert (verdict.kind, verdict.confidence, verdict.detail) == (
        Kind.CACHE_MISS_REGRESSION,
        Confidence.LIKELY,
        "restart",
    )


def test_a_new_process_that_does_not_ask_its_cache() -> None:
    """The new version has prefix caching off: its series are there and stand still."""
    case = situation(against(caching(0.0, 0.0, asked=0, asked_before=0, started=9000.0, ttft=1.4), GOOD))
    found = lost(case)
    assert found is not None
    assert (found.confidence, found.detail) == (Confidence.LIKELY, "switched-off")


def test_one_sender_that_lost_everything_and_explains_the_fall() -> None:
    now = against(caching(0.45, 0.9), GOOD)
    log = usage(("agent", 10, 3000, 40), ("chat", 15, 2000, 1800))
    verdict = first(situation(now, logs=(log,)))
    assert (verdict.kind, verdict.confidence, verdict.detail) == (
        Kind.CACHE_MISS_REGRESSION, Confidence.LIKELY, "prompt-start",
    )  # fmt: skip


def test_two_bodies_that_part_early_confirm_it() -> None:
    now = against(caching(0.45, 0.9), GOOD)
    log = usage(("agent", 10, 3000, 40), ("chat", 15, 2000, 1800))
    assert first(situation(now, logs=(log,), prompt_pairs=(PAIR,))).confidence is Confidence.CONFIRMED


def test_a_conversation_whose_reuse_stands_still_needs_no_past() -> None:
    turns = tuple(Reuse("", prompt, 18_577, turn) for turn, prompt in enumerate((32_821, 41_377, 50_102, 61_044)))
    verdict = first(situation(reuse=turns))
    assert (verdict.kind, verdict.confidence, verdict.detail) == (
        Kind.CACHE_MISS_REGRESSION, Confidence.LIKELY, "prompt-start",
    )  # fmt: skip


# ---- falls without a mechanism


def test_traffic_that_became_unique_is_no_regression() -> None:
    """The same lengths, the same process, and prompts that nobody has sent before."""
    for case in (situation(caching(0.1, 0.9)), situation(against(caching(0.1, 0.9), GOOD))):
        assert (first(case).kind, first(case).confidence) == (Kind.HEALTHY, Confidence.POSSIBLE)
        found = lost(case)
        assert found is not None
        assert found.confidence is Confidence.POSSIBLE


def test_longer_prompts_after_a_restart_are_other_traffic() -> None:
    now = caching(0.0, 0.0, started=9000.0, asked=120_000, requests=20, length=6000)
    assert not surely_lost(situation(against(now, GOOD)))


def test_a_sender_that_came_anew_is_more_traffic() -> None:
    """Half of the tokens are a new client's own: the others find what they found before."""
    now = against(caching(0.45, 0.9, asked=120_000, requests=60), GOOD)
    assert not surely_lost(situation(now, logs=(usage(("new", 10, 3000, 0), ("chat", 15, 2000, 1800)),)))


def test_a_sender_that_does_not_explain_the_fall() -> None:
    now = against(caching(0.1, 0.9), GOOD)
    assert not surely_lost(situation(now, logs=(usage(("agent", 3, 400, 0), ("chat", 60, 2000, 1800)),)))


def test_all_senders_alike_say_nothing() -> None:
    now = against(caching(0.1, 0.9), GOOD)
    assert not surely_lost(situation(now, logs=(usage(("agent", 10, 2000, 10), ("chat", 10, 2000, 20)),)))


def test_lengths_that_are_not_known_leave_it_possible() -> None:
    now = caching(0.0, 0.0, started=9000.0, requests=2, asked=4000)
    assert not surely_lost(situation(against(now, GOOD)))


def test_a_baseline_of_two_requests_has_no_usual_length() -> None:
    short = caching(0.9, 0.9, requests=2, asked=4000)
    found = lost(situation(against(caching(0.0, 0.0, started=9000.0), short)))
    assert found is not None
    assert (found.confidence, found.detail) == (Confidence.POSSIBLE, "restart")


def test_a_full_cache_that_gives_up_prefixes_is_only_possible() -> None:
    found = lost(situation(against(caching(0.3, 0.9, kv=0.97), GOOD)))
    assert found is not None
    assert (found.confidence, found.detail) == (Confidence.POSSIBLE, "eviction")


def test_of_several_replicas_nobody_knows_whose_requests_were_kept() -> None:
    low = against(caching(0.2, 0.9, name="b"), GOOD)
    log = usage(("agent", 10, 3000, 40), ("chat", 15, 2000, 1800))
    assert not surely_lost(situation(caching(0.9, 0.9), low, logs=(log,), prompt_pairs=(PAIR,)))


def test_bodies_that_part_early_without_a_fall_are_no_regression() -> None:
    assert lost(situation(caching(0.9, 0.9), prompt_pairs=(PAIR,))) is None
    assert first(situation(caching(0.9, 0.9), prompt_pairs=(PAIR,))).kind is Kind.HEALTHY


@pytest.mark.parametrize(
    "pair",
    [
        PromptPair("a", "b", length=9000, shared=8000, changed=5, rest=990),  # the last question differs
        PromptPair("a", "b", length=9000, shared=60, changed=500, rest=40),  # other work
        PromptPair("a", "b", length=9000, shared=9000, changed=0, rest=0),  # one goes on where the other ended
    ],
)
def test_bodies_that_part_where_they_should(pair: PromptPair) -> None:
    assert not surely_lost(situation(against(caching(0.1, 0.9), GOOD), prompt_pairs=(pair,)))


# ---- no fall at all


def test_prefix_caching_that_was_always_off() -> None:
    off = caching(0.0, 0.0, asked=0, asked_before=0)
    assert lost(situation(off)) is None
    assert lost(situation(against(off, off))) is None
    assert lost(situation(against(caching(0.0, 0.0, asked=0, asked_before=0, started=9000.0), off))) is None


def test_a_gauge_that_says_off_is_no_hit_rate() -> None:
    gauge = msgspec.structs.replace(serving().window.last, not_applicable=frozenset({Q.HIT_RATE}))
    assert lost(situation(replica(gauge, gauge))) is None


def test_hits_that_were_never_there() -> None:
    assert lost(situation(caching(0.0, 0.0))) is None
    assert lost(situation(caching(0.02, 0.15))) is None


def test_hits_that_rose() -> None:
    assert lost(situation(against(caching(0.9, 0.5), caching(0.5, 0.5)))) is None


def test_a_prompt_or_two_decide_nothing() -> None:
    assert lost(situation(caching(0.0, 0.9, asked=800, requests=1, length=800))) is None


def test_a_restart_inside_the_window_is_not_judged() -> None:
    before, after = caching(0.9, 0.9, started=1000.0).window.last, caching(0.0, 0.0, asked_before=0, started=9000.0)
    assert lost(situation(replica(before, after.window.first))) is None


def test_single_prompts_behind_one_beginning_are_no_conversation() -> None:
    """A slot of llama.cpp takes prompts of many users: the common system text is found again and again."""
    records = tuple(Reuse("3", prompt, 1800) for prompt in (2000, 2400, 2900, 3500))
    log = LogReading("engine.log", "a", LogKind.ENGINE, "llama.cpp", 9, reuse=records)
    assert not surely_lost(situation(serving(), logs=(log,)))
    assert not surely_lost(situation(reuse=records))


@pytest.mark.parametrize(
    "turns",
    [
        [(1, 1000, 0), (2, 2000, 0), (3, 3000, 0)],  # nothing is ever found: no cache, or none that reports
        [(1, 1000, 900), (2, 2000, 1900), (3, 3000, 2900)],  # it follows
        [(1, 1000, 900), (2, 1050, 900), (3, 1100, 900)],  # hardly anything new to find
        [(1, 3000, 900), (2, 2000, 900), (3, 3000, 900)],  # not one conversation
        [(1, 1000, 900), (2, 2000, 900)],
        [(1, 1000, 900), (1, 2000, 900), (1, 3000, 900)],  # first turns of three conversations
    ],
)
def test_conversations_whose_reuse_is_as_it_should_be(turns: list[tuple[int, int, int]]) -> None:
    assert lost(situation(reuse=tuple(Reuse("", prompt, cached, turn) for turn, prompt, cached in turns))) is None


# ---- a cold cache


def test_a_cache_that_is_still_being_filled_is_a_cold_start() -> None:
    young = caching(0.2, 0.1, started=9000.0, asked=20_000, asked_before=4000, requests=10, ttft=1.6)
    verdict = first(situation(against(young, GOOD)))
    assert (verdict.kind, verdict.confidence, verdict.detail) == (Kind.COLD_START, Confidence.LIKELY, "cache-empty")
    assert not surely_lost(situation(against(young, GOOD)))


# ---- the time it costs


def test_slow_prefill_yields_to_what_makes_it_slow() -> None:
    base = caching(0.0, 0.0, started=9000.0, ttft=6.0)
    late = histogram(5.5, 30)
    first_reading = msgspec.structs.replace(
        base.window.first, histograms=dict(base.window.first.histograms) | {Q.PREFILL_TIME: histogram(0.2, 1000)}
    )
    last = dict(base.window.last.histograms) | {Q.PREFILL_TIME: histogram(0.2, 1000).plus(late)}
    now = replica(first_reading, msgspec.structs.replace(base.window.last, histograms=last))
    verdicts = diagnose(situation(against(now, GOOD))).verdicts
    assert verdicts[0].kind is Kind.CACHE_MISS_REGRESSION
    assert verdicts[0].share is not None
    assert verdicts[0].share.value > 0.9
    assert [v.confidence for v in verdicts if v.kind is Kind.SLOW_PREFILL] == [Confidence.POSSIBLE]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_a_fall_by_counters_alone_is_never_sure_without_a_restart(
    share: float, before: float, good: float, baseline: bool
) -> None:
    now = caching(share, before)
    assert not surely_lost(situation(against(now, caching(good, good)) if baseline else now))
