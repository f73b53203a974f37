"""Waits, prompts and tokens: what is slow for another reason than it seems, and what is not slow at all."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import EDGES, histogram, reading, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.diagnosis.interference import frozen_share
from triage.domain.histogram import Histogram
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading, Role
from triage.domain.situation import NotSeen, Replica, Situation
from triage.domain.stream import ProbeReading
from triage.domain.verdict import Confidence, Kind, Verdict


def first(case: Situation) -> Verdict:
    return diagnose(case).verdicts[0]


def kinds(case: Situation) -> set[Kind]:
    return {verdict.kind for verdict in diagnose(case).verdicts}


def with_gauges(base: Replica, gauges: dict[Q, float]) -> Replica:
    """The same replica with more gauges, equal in both readings."""

    def more(one: EngineReading) -> EngineReading:
        return msgspec.structs.replace(one, values=dict(one.values) | gauges)

    return replica(more(base.window.first), more(base.window.last))


# ---- waits that are no lack of room


@pytest.mark.parametrize(
    ("gauges", "detail"),
    [
        (
            {Q.WAITING_CAPACITY: 0.0, Q.WAITING_DEFERRED: 22.0, Q.ADAPTER_SLOTS: 2.0, Q.ADAPTERS_WAITING: 3.0},
            "adapter-slots",
        ),
        ({Q.GRAMMAR_QUEUE: 15.0}, "grammar-queue"),
        ({Q.HANDOFF_QUEUE: 40.0}, "handoff-queue"),
        ({Q.WAITING_CAPACITY: 0.0, Q.WAITING_DEFERRED: 22.0}, None),
    ],
)
def test_a_wait_in_a_side_queue_is_a_queue_with_its_own_name(gauges: dict[Q, float], detail: str | None) -> None:
    verdict = first(situation(with_gauges(serving(ttft=9.0, queue=8.5), gauges)))
    assert (verdict.kind, verdict.confidence, verdict.detail) == (Kind.QUEUEING, Confidence.LIKELY, detail)


def test_a_few_requests_on_purpose_in_a_side_queue_are_no_fault() -> None:
    assert first(situation(with_gauges(serving(ttft=0.4), {Q.GRAMMAR_QUEUE: 1.0}))).kind is Kind.HEALTHY


def test_time_lost_in_front_of_the_scheduler_is_not_called_a_queue() -> None:
    """Nine seconds to the first token: 0.1 queued, 0.5 prefill, and one request waiting, which is two tenths more."""
    case = situation(serving(running=12, waiting=1, ttft=9.0, queue=0.1, prefill=0.5, finished=150))
    assert first(case).kind is Kind.INSUFFICIENT_DATA
    assert Kind.QUEUEING not in kinds(case)


# ---- preemptions


def test_preemptions_that_nobody_feels_are_no_verdict_to_act_on() -> None:
    case = situation(serving(kv=0.95, preemptions=2, finished=110, tokens=60000))
    assert first(case).kind is Kind.HEALTHY
    assert all(v.confidence is Confidence.POSSIBLE for v in diagnose(case).verdicts if v.kind is Kind.KV_PRESSURE)


def test_preemptions_with_slow_tokens_are() -> None:
    case = situation(serving(kv=0.99, waiting=2, preemptions=90, finished=12, tokens=6000, itl=0.19, ttft=1.2))
    assert (first(case).kind, first(case).confidence) == (Kind.KV_PRESSURE, Confidence.LIKELY)


# ---- engines that are not asked for tokens


def pooling(e2e: float) -> Situation:
    def at(finished: float) -> EngineReading:
        values = {Q.RUNNING: 5.0, Q.WAITING: 0.0, Q.GENERATION_TOKENS: 0.0, Q.ENGINE_STEPS: finished}
        values |= {Q.PROMPT_TOKENS: 200 * finished, Q.FINISHED: finished}
        return reading(values, histograms={Q.E2E: histogram(e2e, finished)})

    return situation(replica(at(40000.0), at(41400.0)))


def test_an_embedding_server_at_work_is_healthy_and_no_endless_prefill() -> None:
    assert (first(pooling(0.07)).kind, first(pooling(0.07)).confidence) == (Kind.HEALTHY, Confidence.LIKELY)
    assert Kind.SLOW_PREFILL not in kinds(pooling(0.07))
    assert first(pooling(9.0)).kind is not Kind.HEALTHY


def test_a_prefill_worker_makes_no_tokens_and_is_not_slow_for_that() -> None:
    def at(prompt: float) -> EngineReading:
        values = {Q.RUNNING: 2.0, Q.WAITING: 0.0, Q.GENERATION_TOKENS_LIVE: 0.0, Q.PROMPT_TOKENS_COMPUTED: prompt}
        return reading(values, role=Role.PREFILL, engine="sglang")

    assert first(situation(replica(at(1e6), at(1.3e6)))).kind is Kind.HEALTHY


def test_prompts_without_a_single_token_are_slow_prefill_where_tokens_were_asked_for() -> None:
    values = {Q.RUNNING: 3.0, Q.WAITING: 0.0, Q.GENERATION_TOKENS: 9e5, Q.FINISHED: 7e3}
    case = situation(replica(reading(values | {Q.PROMPT_TOKENS: 1e6}), reading(values | {Q.PROMPT_TOKENS: 1.4e6})))
    assert (first(case).kind, first(case).confidence) == (Kind.SLOW_PREFILL, Confidence.LIKELY)


# ---- the first requests


def test_the_first_requests_of_a_process_do_not_prove_slow_prefill() -> None:
    """Kernels are compiled on first use: 22 s to the first token, all of it in the prefill interval."""
    cold = {Q.TTFT: histogram(22.0, 8), Q.PREFILL_TIME: histogram(21.5, 8), Q.QUEUE_TIME: histogram(0.0, 8)}
    zero = {quantity: histogram(1.0, 0) for quantity in cold}
    before = reading({Q.RUNNING: 0.0, Q.WAITING: 0.0, Q.GENERATION_TOKENS: 0.0, Q.PROMPT_TOKENS: 0.0}, histograms=zero)
    after = reading(
        {Q.RUNNING: 2.0, Q.WAITING: 0.0, Q.GENERATION_TOKENS: 900.0, Q.PROMPT_TOKENS: 5200.0}, histograms=cold
    )
    verdicts = diagnose(situation(replica(before, after))).verdicts
    assert all(v.confidence is Confidence.POSSIBLE for v in verdicts if v.kind is Kind.SLOW_PREFILL)


# ---- a baseline


def test_first_tokens_far_above_the_baseline_are_slow_below_the_built_in_limit() -> None:
    now = msgspec.structs.replace(serving(ttft=2.6, prefill=2.4), baseline=serving(ttft=0.25).window)
    assert (first(situation(now)).kind, first(situation(now)).confidence) == (Kind.SLOW_PREFILL, Confidence.LIKELY)


def test_half_a_second_is_no_complaint_whatever_the_baseline() -> None:
    now = msgspec.structs.replace(serving(ttft=0.5), baseline=serving(ttft=0.1).window)
    assert first(situation(now)).kind is Kind.HEALTHY


def test_a_declared_limit_outranks_the_baseline() -> None:
    limits = Limits(first_visible_p95_s=5.0, declared=frozenset({"first_visible_p95_s"}))
    now = msgspec.structs.replace(serving(ttft=2.6, prefill=2.4), baseline=serving(ttft=0.25).window)
    assert first(situation(now, limits=limits)).kind is Kind.HEALTHY


# ---- the batch


def without_steps(base: Replica) -> Replica:
    def fewer(one: EngineReading) -> EngineReading:
        values = {quantity: value for quantity, value in one.values.items() if quantity is not Q.ENGINE_STEPS}
        return msgspec.structs.replace(one, values=values)

    return replica(fewer(base.window.first), fewer(base.window.last))


def test_slower_tokens_of_a_large_batch_whose_past_is_unknown_are_neither_slow_nor_healthy() -> None:
    case = situation(without_steps(serving(running=48, itl=0.024, itl_before=0.011, tokens=58000)))
    assert first(case).kind is Kind.INSUFFICIENT_DATA
    assert all(v.confidence is Confidence.POSSIBLE for v in diagnose(case).verdicts if v.kind is Kind.SLOW_DECODE)


def test_steps_since_start_tell_the_batch_of_the_past() -> None:
    """Ten tokens a step until now (factory: 1e6 tokens in 1e5 steps): 48 running explain twice the time."""
    assert first(situation(serving(running=48, itl=0.024, itl_before=0.011, tokens=58000))).kind is Kind.HEALTHY
    slow = first(situation(serving(running=10, itl=0.024, itl_before=0.011)))
    assert (slow.kind, slow.confidence) == (Kind.SLOW_DECODE, Confidence.LIKELY)


def test_no_batch_explains_five_times_the_time() -> None:
    slow = first(situation(without_steps(serving(running=48, itl=0.125, itl_before=0.025))))
    assert (slow.kind, slow.confidence) == (Kind.SLOW_DECODE, Confidence.LIKELY)


def test_a_step_that_brings_three_tokens_may_take_three_times_the_limit() -> None:
    limits = Limits(time_per_token_mean_s=0.02, declared=frozenset({"time_per_token_mean_s"}))

    def drafting(accepted: float) -> Situation:
        base = serving(running=4, itl=0.04)
        before = msgspec.structs.replace(
            base.window.first, values=dict(base.window.first.values) | {Q.DRAFTS: 0.0, Q.ACCEPTED_TOKENS: 0.0}
        )
        after = msgspec.structs.replace(
            base.window.last, values=dict(base.window.last.values) | {Q.DRAFTS: 3000.0, Q.ACCEPTED_TOKENS: accepted}
        )
        return situation(replica(before, after), limits=limits)

    assert first(drafting(6000.0)).kind is Kind.HEALTHY
    assert first(drafting(300.0)).kind is Kind.SLOW_DECODE


# ---- prompts inside other requests' steps


def test_tokens_that_slow_down_with_a_heavier_prompt_mix_are_prefill() -> None:
    verdict = first(situation(serving(running=10, itl=0.058, tokens=6000, prompt=180000, ttft=2.2, prefill=2.0)))
    assert (verdict.kind, verdict.detail) == (Kind.SLOW_PREFILL, "blocks-decode")


def test_a_queue_is_not_hidden_by_prompts_that_slow_tokens() -> None:
    case = situation(
        serving(running=10, waiting=30, itl=0.058, tokens=6000, prompt=180000, ttft=9.0, queue=8.0, prefill=0.5)
    )
    assert Kind.QUEUEING in kinds(case)


def gaps(short: float, long: float) -> Histogram:
    """Token gaps of 24 ms, and some of 4 s."""
    return histogram(0.024, short).plus(histogram(4.0, long))


def test_long_freezes_are_seen_behind_a_good_mean() -> None:
    assert frozen_share(gaps(8000, 0)) == 0
    assert frozen_share(gaps(100, 20)) == 0  # too few observations
    assert frozen_share(gaps(8000, 100)) >= 0.4
    assert frozen_share(Histogram((), (), 50.0, 8000.0)) == 0


@given(
    counts=st.lists(st.integers(0, 2000), min_size=len(EDGES) + 1, max_size=len(EDGES) + 1),
    total=st.floats(0, 1e6),
)
def test_the_frozen_share_is_a_share(counts: list[int], total: float) -> None:
    cumulative = tuple(float(sum(counts[: n + 1])) for n in range(len(counts)))
    assert frozen_share(Histogram(EDGES, cumulative, total, cumulative[-1])) >= 0.0


def test_freezes_are_not_healthy() -> None:
    base = serving()
    late = dict(base.window.last.histograms)
    late[Q.ITL] = base.window.first.histograms[Q.ITL].plus(gaps(8900, 60))
    case = situation(replica(base.window.first, msgspec.structs.replace(base.window.last, histograms=late)))
    assert Kind.HEALTHY not in kinds(case)


# ---- nothing wrong


@given(
    running=st.integers(1, 200),
    kv=st.floats(0.0, 0.98),
    slower=st.floats(0.7, 1.3),
    ttft=st.floats(0.01, 2.5),
    queue=st.floats(0.0, 0.25),
    finished=st.integers(5, 400),
    answer=st.integers(20, 2000),
)
def test_within_every_limit_nothing_is_said_for_sure_but_health(
    running: int, kv: float, slower: float, ttft: float, queue: float, finished: int, answer: int
) -> None:
    calm = serving(
        running=running,
        kv=kv,
        itl=0.025 * slower,
        ttft=ttft,
        queue=queue,
        prefill=min(ttft, 0.2),
        finished=finished,
        tokens=finished * answer,
        prompt=finished * 300,
    )
    for verdict in diagnose(situation(calm)).verdicts:
        assert verdict.kind is Kind.HEALTHY or verdict.confidence in (None, Confidence.POSSIBLE), verdict.summary


def test_an_unmeasured_queue_beside_an_unread_gateway_log_is_not_the_headline() -> None:
    """Four admissions say nothing about first tokens; retries behind the gateway could be the whole queue."""
    unread = NotSeen("gateway.log", "not read", ("retry-storm", "gateway-timeout"), expected=True)
    case = situation(serving(waiting=84, running=4, finished=4, tokens=4000), not_seen=(unread,))
    verdicts = diagnose(case).verdicts
    assert [verdict.kind for verdict in verdicts[:2]] == [Kind.INSUFFICIENT_DATA, Kind.QUEUEING]


def test_one_look_at_the_gauges_asks_for_a_second_before_it_names_a_cause() -> None:
    full = serving(running=35, waiting=139, kv=0.99)
    window = msgspec.structs.replace(full.window, readings=1, seconds=0.0, deltas={}, histograms={})
    hung = ProbeReading("probes.json", "a", "POST", "/v1/completions", None, 30.0, error="no byte within 30 s")
    case = situation(msgspec.structs.replace(full, window=window), probes=(hung,))
    assert first(case).kind is Kind.INSUFFICIENT_DATA
    assert "second scrape" in first(case).next_test


def test_prefix_hits_that_fell_and_cost_nobody_time_are_no_more_than_possibly_healthy() -> None:
    def caching(hits: float) -> Situation:
        base = serving()
        before = msgspec.structs.replace(
            base.window.first, values=dict(base.window.first.values) | {Q.PREFIX_QUERIES: 1e6, Q.PREFIX_HITS: 9e5}
        )
        after = msgspec.structs.replace(
            base.window.last,
            values=dict(base.window.last.values) | {Q.PREFIX_QUERIES: 1.02e6, Q.PREFIX_HITS: 9e5 + 20000 * hits},
        )
        return situation(replica(before, after))

    assert first(caching(0.85)).kind is Kind.HEALTHY
    assert (first(caching(0.1)).kind, first(caching(0.1)).confidence) == (Kind.HEALTHY, Confidence.POSSIBLE)
    assert "10 %" in first(caching(0.1)).summary


def test_clients_that_leave_come_before_a_cause_that_is_only_possible() -> None:
    base = serving(waiting=41, running=64, kv=0.93, ttft=9.0, queue=8.0, finished=60)
    ended = {Q.FINISHED: 5e3 + 60, Q.ABORTED: 58.0}
    before = msgspec.structs.replace(base.window.first, values=dict(base.window.first.values) | {Q.ABORTED: 0.0})
    after = msgspec.structs.replace(base.window.last, values=dict(base.window.last.values) | ended)
    assert first(situation(base)).kind in (Kind.KV_PRESSURE, Kind.QUEUEING)
    assert first(situation(replica(before, after))).kind is Kind.INSUFFICIENT_DATA
