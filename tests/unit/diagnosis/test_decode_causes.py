"""Sub-causes of slow decode: rejected drafts, grown contexts, a host that does not keep up; and their doubles."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import histogram, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.histogram import Histogram
from triage.domain.logs import LogKind, LogReading, ThroughputLine
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading, GpuReading
from triage.domain.situation import ContainerCpu, GpuWindow, Replica, Situation
from triage.domain.verdict import Confidence, Kind, Verdict
from triage.domain.window import Window

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)


def more(
    one: EngineReading, values: Mapping[Q, float], histograms: Mapping[Q, Histogram] | None = None
) -> EngineReading:
    return msgspec.structs.replace(
        one, values={**one.values, **values}, histograms={**one.histograms, **(histograms or {})}
    )


def rebuilt(base: Replica, first: EngineReading, last: EngineReading) -> Replica:
    made = replica(first, last)
    return msgspec.structs.replace(made, baseline=base.baseline)


def speculating(
    now: float, before: float, *, itl: float = 0.025, itl_before: float = 0.025, tokens: float = 9000, **rest: float
) -> Replica:
    """now, before: accepted tokens a draft, in the window and since start. Gaps are counted per token."""
    base = serving(itl=itl, itl_before=itl_before, tokens=tokens, **rest)  # type: ignore[arg-type]
    past = {Q.DRAFTS: 1e5, Q.ACCEPTED_TOKENS: before * 1e5}
    drafts = tokens / (1 + now)
    present = {Q.DRAFTS: 1e5 + drafts, Q.ACCEPTED_TOKENS: before * 1e5 + now * drafts}
    return rebuilt(base, more(base.window.first, past), more(base.window.last, present))


def per_step(now: float, before: float, *, step: float = 0.03, tokens: float = 9000, running: float = 8) -> Replica:
    """The same with gaps counted per step, as vLLM does: the gap stays, what it brings falls."""
    base = serving(tokens=tokens, running=running)
    steps_before, steps = (1e6 - 5000) / (1 + before), (tokens - 60) / (1 + now)
    drafts_past = {Q.DRAFTS: steps_before, Q.ACCEPTED_TOKENS: before * steps_before}
    drafts_now = {Q.DRAFTS: steps_before + steps, Q.ACCEPTED_TOKENS: before * steps_before + now * steps}
    past = histogram(step, steps_before)
    return rebuilt(
        base,
        more(base.window.first, drafts_past, {Q.ITL: past}),
        more(base.window.last, drafts_now, {Q.ITL: past.plus(histogram(step, steps))}),
    )


def slow(case: Situation) -> Verdict | None:
    return next((v for v in diagnose(case).verdicts if v.kind is Kind.SLOW_DECODE), None)


def surely_slow(case: Situation) -> bool:
    return (found := slow(case)) is not None and found.confidence in SURE


def detail(case: Situation) -> str | None:
    found = slow(case)
    assert found is not None
    return found.detail


# ---- speculation


def test_drafts_that_are_rejected_make_slow_tokens() -> None:
    case = situation(speculating(0.4, 2.4, itl=0.06))
    assert surely_slow(case)
    assert detail(case) == "speculation"


def test_acceptance_that_was_low_from_the_start_is_not_what_changed() -> None:
    assert detail(situation(speculating(0.4, 0.4, itl=0.06))) is None
    assert slow(situation(speculating(0.4, 0.4))) is None


def test_acceptance_that_fell_and_costs_nothing_is_no_fault() -> None:
    case = situation(speculating(1.0, 2.4))
    assert not surely_slow(case)
    assert diagnose(case).verdicts[0].kind is Kind.HEALTHY


def test_a_few_drafts_say_nothing() -> None:
    found = slow(situation(speculating(0.1, 2.4, itl=0.06, tokens=40, finished=6)))
    assert found is None or found.detail is None


def test_gaps_of_steps_hide_rejected_drafts_and_the_tokens_show_them() -> None:
    case = situation(per_step(0.2, 2.4))
    verdict = diagnose(case).verdicts[0]
    assert (verdict.kind, verdict.confidence, verdict.detail) == (Kind.SLOW_DECODE, Confidence.LIKELY, "speculation")
    assert any(item.id == "engine.per-token-made" for item in verdict.evidence)


def test_a_small_fall_behind_steps_is_only_possible() -> None:
    case = situation(per_step(1.5, 2.4, running=4))
    assert diagnose(case).verdicts[0].kind is Kind.HEALTHY
    assert not surely_slow(case)


def test_gaps_of_steps_at_the_usual_acceptance_are_healthy() -> None:
    case = situation(per_step(2.4, 2.4))
    assert slow(case) is None
    assert diagnose(case).verdicts[0].kind is Kind.HEALTHY


def test_a_baseline_is_asked_before_the_life_of_the_process() -> None:
    """Acceptance has been sinking for hours: the lifetime mean has sunk with it, the good window has not."""
    good = speculating(2.4, 2.4)
    now = msgspec.structs.replace(speculating(0.9, 1.2, itl=0.05, itl_before=0.04), baseline=good.window)
    found = slow(situation(now))
    assert found is not None
    assert found.detail == "speculation"
    assert any("3.40 in the baseline window" in item.text for item in found.evidence)


@given(st.floats(0, 4), st.floats(0, 4))
def test_acceptance_within_a_fifth_of_its_past_is_never_named(now: float, before: float) -> None:
    case = situation(speculating(now, before, itl=0.06))
    found = slow(case)
    if found is not None and 1 + now >= 0.81 * (1 + before):
        assert found.detail != "speculation"


# ---- contexts


def with_kv(base: Replica, kv: float, *, earlier: Replica | None = None) -> Replica:
    made = rebuilt(base, more(base.window.first, {Q.KV_USAGE: kv}), more(base.window.last, {Q.KV_USAGE: kv}))
    window: Window | None = earlier.window if earlier is not None else None
    return msgspec.structs.replace(made, baseline=window)


def test_contexts_that_grew_as_much_as_the_token_slowed() -> None:
    case = situation(with_kv(serving(itl=0.05), 0.6, earlier=with_kv(serving(), 0.2)))
    assert detail(case) == "long-context"


def test_contexts_that_grew_too_little_to_explain_it() -> None:
    case = situation(with_kv(serving(itl=0.15), 0.4, earlier=with_kv(serving(), 0.2)))
    assert detail(case) is None
    assert surely_slow(case)


def test_contexts_that_grew_and_tokens_that_did_not_slow_are_healthy() -> None:
    case = situation(with_kv(serving(), 0.6, earlier=with_kv(serving(), 0.2)))
    assert diagnose(case).verdicts[0].kind is Kind.HEALTHY


def test_a_log_shows_contexts_growing() -> None:
    lines = tuple(ThroughputLine(n, running=4, kv_usage=0.1 * n) for n in range(1, 8))
    log = LogReading("engine.log", "a", LogKind.ENGINE, "sglang", 9, throughput=lines)
    assert detail(situation(serving(running=4, itl=0.05), logs=(log,))) == "long-context"


def test_a_full_batch_is_not_a_long_context() -> None:
    """Ten times the KV use of ten times the requests."""
    now = with_kv(serving(running=40, itl=0.05), 0.5, earlier=with_kv(serving(running=4), 0.05))
    found = slow(situation(now))
    assert found is None or found.detail != "long-context"


# ---- the host


def gpus(*active: float, field: str = "PROF_SM_ACTIVE") -> tuple[GpuWindow, ...]:
    found = []
    for place, value in enumerate(active):
        one = GpuReading(
            "dcgm", "dcgm.prom", None, "n", str(place), f"u{place}", "", {field: value, "DEV_GPU_UTIL": 99.0}
        )
        found.append(GpuWindow(one, one))
    return tuple(found)


def test_gpus_that_hardly_compute_wait_for_their_host() -> None:
    case = situation(serving(itl=0.06), gpus=gpus(0.12, 0.15))
    assert detail(case) == "host-bound"
    assert surely_slow(case)


def test_a_starved_container_is_named_before_what_it_does_to_the_gpu() -> None:
    cpu = ContainerCpu("container.json", "c", limit_cores=1, throttled_periods=280, periods=300)
    case = situation(serving(itl=0.06), gpus=gpus(0.12), containers=(cpu,))
    assert detail(case) == "cpu-starvation"


@pytest.mark.parametrize(
    "cards",
    [
        gpus(0.9, 0.1),  # one member waits for the other
        gpus(0.95),
        (*gpus(0.1), *gpus(99.0, field="DEV_POWER_USAGE")),  # a card without the field
        (),
    ],
)
def test_gpus_that_say_nothing_of_the_host(cards: tuple[GpuWindow, ...]) -> None:
    assert detail(situation(serving(itl=0.06), gpus=cards)) is None


def test_idle_cards_of_a_fleet_belong_to_nobody_known() -> None:
    case = situation(serving("a", itl=0.06), serving("b", itl=0.06), gpus=gpus(0.1, 0.1))
    assert detail(case) is None


def test_calm_gpus_of_a_replica_that_keeps_its_pace_are_healthy() -> None:
    assert diagnose(situation(serving(), gpus=gpus(0.1))).verdicts[0].kind is Kind.HEALTHY
