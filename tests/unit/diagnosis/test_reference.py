"""Slow against what: which reference counts, that the evidence names it, and what no reference can tell."""

import msgspec
import pytest

from tests.factory import histogram, reading, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity as Q
from triage.domain.situation import Replica
from triage.domain.verdict import Confidence, Kind, Verdict

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)


def young(name: str, itl: float, *, before: float = 0.0, age_s: float = 60.0) -> Replica:
    """A replica that started `age_s` before the window. before: requests that it had answered by then."""
    level = {Q.RUNNING: 8.0, Q.WAITING: 0.0, Q.KV_USAGE: 0.3, Q.PROCESS_START: 1000.0 - age_s}
    tokens = 200 * before
    past = {Q.TTFT: histogram(0.3, before), Q.ITL: histogram(itl, tokens)}
    start = {Q.GENERATION_TOKENS: tokens, Q.PROMPT_TOKENS: 400 * before, Q.FINISHED: before, Q.ENGINE_STEPS: tokens}
    end = {Q.GENERATION_TOKENS: tokens + 4000, Q.PROMPT_TOKENS: 400 * before + 8000, Q.FINISHED: before + 20}
    end[Q.ENGINE_STEPS] = tokens + 500
    now = {Q.TTFT: past[Q.TTFT].plus(histogram(0.3, 20)), Q.ITL: past[Q.ITL].plus(histogram(itl, 3980))}
    one = replica(reading(level | start, histograms=past, name=name), reading(level | end, histograms=now, name=name))
    first, last = (
        msgspec.structs.replace(r, at=at) for r, at in ((one.window.first, 1000.0), (one.window.last, 1030.0))
    )
    return msgspec.structs.replace(one, window=msgspec.structs.replace(one.window, first=first, last=last))


def said(*replicas: Replica, limits: Limits | None = None) -> Verdict:
    return diagnose(situation(*replicas, limits=limits)).verdicts[0]


@pytest.mark.parametrize("before", [0.0, 50.0])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_fleet_that_has_just_started_and_is_slow_everywhere_is_not_healthy(count: int, before: float) -> None:
    """Neither the peers nor the minute since the start can say that all of them are well."""
    verdict = said(*[young(f"r{n}", 0.3, before=before) for n in range(count)])
    assert verdict.kind is Kind.SLOW_DECODE
    assert verdict.confidence in SURE
    assert "the built-in default" in verdict.summary


def test_peers_still_tell_an_odd_one_in_a_slow_fleet() -> None:
    verdict = said(young("a", 0.2), young("b", 0.2), young("odd", 0.9))
    assert verdict.kind is Kind.SLOW_DECODE
    slow = diagnose(situation(young("a", 0.02), young("b", 0.02), young("odd", 0.06))).verdicts
    assert slow[0].kind is Kind.SLOW_DECODE
    assert slow[0].scope.replica == "odd"
    assert "its peers' median" in slow[0].summary


def test_a_fleet_that_has_just_started_and_is_fast_is_healthy() -> None:
    assert said(young("a", 0.03), young("b", 0.03), young("c", 0.031)).kind is Kind.HEALTHY


def test_an_engine_that_has_always_been_that_slow_is_as_usual() -> None:
    """A large model on little hardware: the past, where there is one, stands before the built-in default."""
    assert said(young("a", 0.15, before=5000.0, age_s=86_400.0)).kind is Kind.HEALTHY


def test_the_evidence_names_the_baseline_that_was_used() -> None:
    usual = serving(itl=0.025)
    now = serving(itl=0.06, itl_before=0.06)
    with_past = msgspec.structs.replace(
        now, baseline=usual.window, baseline_name="the same time a week ago, other replicas of the model"
    )
    verdict = said(with_past)
    assert verdict.kind is Kind.SLOW_DECODE
    assert "the same time a week ago, other replicas of the model" in verdict.summary
    assert any("the same time a week ago" in item.text for item in verdict.evidence)
    assert said(now).kind is Kind.HEALTHY, "against its own mean since start it is as usual"


def test_a_declared_limit_stands_before_every_past() -> None:
    usual = serving(itl=0.06)
    now = msgspec.structs.replace(serving(itl=0.06, itl_before=0.06), baseline=usual.window)
    limits = Limits(time_per_token_mean_s=0.05, declared=frozenset({"time_per_token_mean_s"}))
    verdict = said(now, limits=limits)
    assert verdict.kind is Kind.SLOW_DECODE
    assert "the declared limit" in verdict.summary


@pytest.mark.parametrize(("itl", "explained"), [(0.05, True), (0.2, False)])
def test_a_batch_explains_a_token_in_proportion_and_not_more(itl: float, explained: bool) -> None:
    """Twice the batch, and a token of twice or of eight times the time."""
    usual = serving(itl=0.025, running=8)
    now = serving(itl=itl, itl_before=itl, running=16)
    verdict = said(msgspec.structs.replace(now, baseline=usual.window))
    assert (verdict.kind is Kind.HEALTHY) == explained
    assert (verdict.kind is Kind.SLOW_DECODE) != explained
