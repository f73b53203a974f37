"""Each cause on a hand-made situation, its neighbours that must not be named, and the honest refusals."""

import msgspec
import pytest

from tests.factory import reading, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.limits import Limits
from triage.domain.logs import LogEvent, LogKind, LogMark, LogReading
from triage.domain.quantity import Quantity as Q
from triage.domain.situation import (
    ContainerCpu,
    DashboardQuery,
    MonitoredTarget,
    NotSeen,
    QueriedMetric,
    Situation,
    TargetStatus,
)
from triage.domain.stream import Completeness, ProbeReading, StreamReading
from triage.domain.target import Failure, FailureReason, Target, TargetState
from triage.domain.verdict import Confidence, Direction, Kind, Verdict


def first(case: Situation) -> Verdict:
    return diagnose(case).verdicts[0]


def probe(target: str = "a", **fields: object) -> ProbeReading:
    base = {"source": "probes.json", "target": target, "method": "POST", "path": "/v1/completions", "status": 200}
    return ProbeReading(**(base | fields))  # type: ignore[arg-type]


ANSWERED = probe(first_token_s=0.1, total_s=0.2, output_tokens=1)
HUNG = probe(status=None, total_s=20.0, error="no byte within 20s")


# ---- healthy


def test_a_busy_replica_within_its_limits_is_healthy() -> None:
    verdict = first(situation(serving()))
    assert (verdict.kind, verdict.confidence) == (Kind.HEALTHY, Confidence.LIKELY)


def test_an_answered_probe_confirms_health() -> None:
    verdict = first(situation(serving(), probes=(ANSWERED,)))
    assert (verdict.kind, verdict.confidence) == (Kind.HEALTHY, Confidence.CONFIRMED)


def test_an_idle_page_alone_is_only_possibly_healthy() -> None:
    verdict = first(situation(serving(running=0, tokens=0, prompt=0, finished=0)))
    assert (verdict.kind, verdict.confidence) == (Kind.HEALTHY, Confidence.POSSIBLE)


def test_a_larger_batch_with_slightly_slower_tokens_is_healthy() -> None:
    assert first(situation(serving(running=31, itl=0.028, itl_before=0.025))).kind is Kind.HEALTHY


def test_something_unread_stops_health_from_being_said() -> None:
    unread = NotSeen("gateway.log", "not read", ("retry-storm",), expected=True)
    verdict = first(situation(serving(), not_seen=(unread,)))
    assert verdict.kind is Kind.INSUFFICIENT_DATA
    assert "gateway.log" in verdict.next_test


def test_clients_that_leave_are_not_healthy_and_not_explained() -> None:
    """60 first tokens, 10 finished, none more running: 50 requests left without a trace."""
    base = serving()
    last = base.window.last
    values = dict(last.values) | {Q.FINISHED: 5e3 + 10}
    changed = msgspec.structs.replace(last, values=values)
    verdict = first(situation(replica(base.window.first, changed)))
    assert verdict.kind is Kind.INSUFFICIENT_DATA
    assert "access log" in verdict.next_test


# ---- waiting


def test_a_flat_batch_with_a_queue_is_queueing() -> None:
    verdict = first(situation(serving(waiting=24, ttft=9.0, queue=8.5)))
    assert (verdict.kind, verdict.confidence, verdict.detail) == (Kind.QUEUEING, Confidence.LIKELY, "sequence-limit")
    assert verdict.share is not None
    assert verdict.share.low <= verdict.share.value <= verdict.share.high
    assert verdict.share.value > 0.9


def test_a_short_wait_within_the_limit_is_no_fault() -> None:
    assert first(situation(serving(waiting=1, ttft=0.5, queue=0.2))).kind is Kind.HEALTHY


def test_a_queue_behind_a_full_cache_is_kv_pressure() -> None:
    verdict = first(situation(serving(waiting=6, kv=0.97, preemptions=9, ttft=9.0, queue=5.0, itl=0.08)))
    assert (verdict.kind, verdict.detail) == (Kind.KV_PRESSURE, "preemption")
    assert verdict.confidence is Confidence.LIKELY


def test_a_full_cache_with_a_flat_batch_is_not_said_for_sure() -> None:
    verdicts = diagnose(situation(serving(waiting=41, running=64, kv=0.93, ttft=9.0, queue=8.0))).verdicts
    assert verdicts[0].confidence is Confidence.POSSIBLE
    assert {verdict.kind for verdict in verdicts} >= {Kind.KV_PRESSURE, Kind.QUEUEING}


def test_long_prompts_are_slow_prefill_not_slow_decode() -> None:
    """Token gaps are long too, but only because the steps are full of other requests' prompts."""
    verdicts = diagnose(
        situation(serving(running=3, tokens=40, prompt=40000, finished=20, ttft=8.0, queue=2.0, prefill=5.5, itl=2.0))
    ).verdicts
    assert (verdicts[0].kind, verdicts[0].confidence) == (Kind.SLOW_PREFILL, Confidence.LIKELY)
    assert all(v.confidence is Confidence.POSSIBLE for v in verdicts if v.kind is Kind.SLOW_DECODE)


def test_an_unread_gateway_log_keeps_queueing_only_possible() -> None:
    unread = NotSeen("gateway.log", "not read", ("retry-storm",), expected=True)
    verdict = first(situation(serving(waiting=24, ttft=9.0, queue=8.5), not_seen=(unread,)))
    assert (verdict.kind, verdict.confidence) == (Kind.QUEUEING, Confidence.POSSIBLE)


def test_one_hot_replica_beside_an_idle_one_is_imbalance() -> None:
    hot, cold = serving("hot", waiting=12, ttft=9.0, queue=8.0), serving("cold", running=1)
    verdict = first(situation(hot, cold))
    assert (verdict.kind, verdict.scope.replica, verdict.detail) == (Kind.LOAD_IMBALANCE, "hot", "replicas")


def test_two_queueing_replicas_are_one_verdict_about_the_model() -> None:
    verdicts = diagnose(situation(*(serving(n, waiting=20, ttft=9.0, queue=8.0) for n in ("a", "b")))).verdicts
    queueing = [verdict for verdict in verdicts if verdict.kind is Kind.QUEUEING]
    assert len(queueing) == 1
    assert queueing[0].scope.replica is None
    assert "2 of 2 replicas" in queueing[0].summary


# ---- decode


def test_tokens_slower_than_their_own_past_are_slow_decode() -> None:
    verdict = first(situation(serving(itl=0.1, itl_before=0.025)))
    assert (verdict.kind, verdict.confidence) == (Kind.SLOW_DECODE, Confidence.LIKELY)
    assert "own mean since start" in verdict.summary


def test_a_declared_limit_comes_before_the_past() -> None:
    limits = Limits(time_per_token_mean_s=0.5, declared=frozenset({"time_per_token_mean_s"}))
    assert first(situation(serving(itl=0.1, itl_before=0.025), limits=limits)).kind is Kind.HEALTHY


def test_a_baseline_window_comes_before_the_past_and_its_batch_can_explain() -> None:
    good = serving(running=2, itl=0.02)
    now = serving(running=40, itl=0.035, itl_before=0.01)
    compared = msgspec.structs.replace(now, baseline=good.window)
    verdicts = diagnose(situation(compared)).verdicts
    assert all(v.confidence is Confidence.POSSIBLE for v in verdicts if v.kind is Kind.SLOW_DECODE)


def test_cpu_throttling_is_the_second_witness() -> None:
    cpu = ContainerCpu("container.json", "pod", limit_cores=1.0, throttled_periods=280, periods=300)
    verdict = first(situation(serving(itl=0.1, itl_before=0.025), containers=(cpu,)))
    assert (verdict.confidence, verdict.detail) == (Confidence.CONFIRMED, "cpu-starvation")


# ---- standstill


def stuck(*, waiting: tuple[float, float] = (0, 0), steps: float = 0, late: bool = False, cpu: float = 1) -> Situation:
    values = {Q.RUNNING: 4.0, Q.GENERATION_TOKENS: 100.0, Q.PROCESS_CPU: 10.0}
    if not late:
        values[Q.ENGINE_STEPS] = 100.0
    before = reading(values | {Q.WAITING: waiting[0]}, late=frozenset({Q.GENERATION_TOKENS}) if late else frozenset())
    after = reading(
        values | {Q.WAITING: waiting[1], Q.PROCESS_CPU: 10.0 + cpu} | ({} if late else {Q.ENGINE_STEPS: 100.0 + steps}),
        late=before.late,
    )
    return situation(replica(before, after))


def test_work_without_progress_and_a_hung_probe_is_a_stall() -> None:
    verdict = first(msgspec.structs.replace(stuck(), probes=(HUNG,)))
    assert (verdict.kind, verdict.confidence) == (Kind.ENGINE_STALLED, Confidence.CONFIRMED)


def test_a_growing_queue_without_progress_is_a_likely_stall() -> None:
    verdict = first(stuck(waiting=(3, 9)))
    assert (verdict.kind, verdict.confidence) == (Kind.ENGINE_STALLED, Confidence.LIKELY)


def test_gauges_alone_that_stand_still_are_a_possible_stall_and_never_healthy() -> None:
    verdict = first(stuck())
    assert (verdict.kind, verdict.confidence) == (Kind.ENGINE_STALLED, Confidence.POSSIBLE)
    assert "probe" in verdict.summary


def test_an_answered_probe_beside_still_counters_is_frozen_metrics() -> None:
    verdict = first(msgspec.structs.replace(stuck(), probes=(ANSWERED,)))
    assert (verdict.kind, verdict.detail) == (Kind.METRICS_FROZEN, "stale-gauges")


def test_a_page_that_repeats_even_the_cpu_time_is_an_old_page() -> None:
    verdict = first(stuck(cpu=0))
    assert (verdict.kind, verdict.detail, verdict.confidence) == (
        Kind.METRICS_FROZEN,
        "stale-page",
        Confidence.LIKELY,
    )


def test_moving_steps_are_no_stall() -> None:
    assert all(v.kind is not Kind.ENGINE_STALLED for v in diagnose(stuck(steps=50)).verdicts)


def test_counters_that_move_only_at_finish_prove_no_stall() -> None:
    assert first(stuck(late=True)).kind is Kind.INSUFFICIENT_DATA


def test_a_sleeping_engine_is_named_so() -> None:
    values = {Q.RUNNING: 0.0, Q.WAITING: 0.0, Q.AWAKE: 0.0}
    verdict = first(situation(replica(reading(values), reading(values))))
    assert (verdict.kind, verdict.detail) == (Kind.ENGINE_STALLED, "asleep")


# ---- dead


def fatal_log(*, then_progress: bool = False) -> LogReading:
    event = LogEvent(LogMark.FATAL, 40, "EngineCore encountered a fatal error")
    return LogReading(
        "engine.log",
        "default",
        LogKind.ENGINE,
        "vllm",
        100,
        (event,),
        {LogMark.FATAL: 1},
        last_progress_line=90 if then_progress else 30,
    )


def test_a_fatal_line_is_a_dead_engine() -> None:
    verdict = first(msgspec.structs.replace(stuck(), logs=(fatal_log(),)))
    assert (verdict.kind, verdict.confidence) == (Kind.ENGINE_DEAD, Confidence.LIKELY)


def test_a_fatal_line_of_an_earlier_life_is_not() -> None:
    case = msgspec.structs.replace(situation(serving()), logs=(fatal_log(then_progress=True),))
    assert first(case).kind is not Kind.ENGINE_DEAD


def test_log_and_api_together_confirm_a_death() -> None:
    gone = probe(status=500, total_s=0.01, body="EngineCore encountered an issue")
    verdict = first(msgspec.structs.replace(stuck(), logs=(fatal_log(),), probes=(gone,)))
    assert verdict.confidence is Confidence.CONFIRMED


def test_a_dark_target_is_not_called_dead() -> None:
    status = TargetStatus(Target("b", "http://b"), TargetState.NEVER, Failure(FailureReason.TIMEOUT, "5 s"))
    verdict = first(situation(targets=(status,)))
    assert verdict.kind is Kind.INSUFFICIENT_DATA
    assert "b" in verdict.next_test


def test_a_port_that_closed_after_it_answered_is_a_dead_process() -> None:
    status = TargetStatus(Target("b", "http://b"), TargetState.DARK, Failure(FailureReason.REFUSED), answered_at=1.0)
    verdict = first(situation(targets=(status,)))
    assert (verdict.kind, verdict.detail, verdict.scope.replica) == (Kind.ENGINE_DEAD, "process-gone", "b")


# ---- reasoning


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


def test_reasoning_before_the_first_visible_token_is_hidden() -> None:
    thinking = stream(first_reasoning_s=0.2, first_visible_s=12.0, reasoning_chars=900, visible_chars=50)
    verdict = first(situation(serving(), streams=(thinking,)))
    assert (verdict.kind, verdict.confidence) == (Kind.HIDDEN_REASONING, Confidence.CONFIRMED)
    assert verdict.share is not None
    assert verdict.share.value == pytest.approx(11.8 / 12.0)


def test_one_answer_a_little_late_is_only_possible() -> None:
    thinking = stream(first_reasoning_s=0.1, first_visible_s=3.4, reasoning_chars=900, visible_chars=50)
    verdict = diagnose(situation(serving(), streams=(thinking,))).verdicts[0]
    assert (verdict.kind, verdict.confidence) == (Kind.HIDDEN_REASONING, Confidence.POSSIBLE)


def test_our_own_probe_running_out_of_tokens_in_time_is_no_fault() -> None:
    """A fast engine spends the probe's 400 tokens on thinking in two seconds: nobody waited too long yet."""
    spent = stream(
        source="probe",
        completeness=Completeness.REASONING_ATE_BUDGET,
        first_reasoning_s=0.1,
        last_reasoning_s=2.0,
        reasoning_chars=900,
        finish_reason="length",
    )
    assert all(v.kind is not Kind.HIDDEN_REASONING for v in diagnose(situation(serving(), streams=(spent,))).verdicts)
    users = msgspec.structs.replace(spent, source="stream.sse")
    assert first(situation(serving(), streams=(users,))).kind is Kind.HIDDEN_REASONING
    # It answered, so it lives; when a user would have seen text, nobody knows.
    ended = msgspec.structs.replace(spent, last_token_s=2.0)
    alive = first(situation(serving(), streams=(ended,), probes=(probe(first_token_s=0.1, output_tokens=400),)))
    assert (alive.kind, alive.confidence) == (Kind.HEALTHY, Confidence.LIKELY)
    assert "when text comes is not known" in alive.summary


def test_reasoning_that_is_long_only_because_tokens_are_slow_is_slow_decode() -> None:
    """Forty tokens of thinking: one second as usual, ten seconds at ten times the time per token."""
    thinking = stream(first_reasoning_s=0.1, first_visible_s=10.0, reasoning_chars=160, visible_chars=50)
    verdicts = diagnose(situation(serving(itl=0.25, itl_before=0.025), streams=(thinking,))).verdicts
    assert (verdicts[0].kind, verdicts[0].confidence) == (Kind.SLOW_DECODE, Confidence.LIKELY)
    assert all(v.confidence is Confidence.POSSIBLE for v in verdicts if v.kind is Kind.HIDDEN_REASONING)


def test_a_queue_that_is_over_is_not_said_for_sure() -> None:
    verdicts = diagnose(situation(serving(waiting=0, ttft=9.0, queue=8.5))).verdicts
    assert all(v.confidence is Confidence.POSSIBLE for v in verdicts if v.kind is Kind.QUEUEING)


def test_short_reasoning_is_no_fault() -> None:
    thinking = stream(first_reasoning_s=0.2, first_visible_s=1.5, reasoning_chars=90, visible_chars=50)
    assert first(situation(serving(), streams=(thinking,))).kind is Kind.HEALTHY


def test_visible_text_at_once_is_no_hidden_reasoning() -> None:
    plain = stream(first_visible_s=0.2, visible_chars=500)
    assert first(situation(serving(), streams=(plain,))).kind is Kind.HEALTHY


def test_a_truncated_stream_is_not_healthy() -> None:
    cut = stream(completeness=Completeness.TRUNCATED, first_visible_s=0.2, visible_chars=500)
    assert first(situation(serving(), streams=(cut,))).kind is Kind.TRUNCATED_STREAM


# ---- the watcher


def test_an_endpoint_without_metrics_beside_an_answer_is_missing_metrics() -> None:
    status = TargetStatus(
        Target("a", "http://a/metrics"),
        TargetState.NO_METRICS,
        Failure(FailureReason.SERVER_ERROR, "start with --metrics", 501),
    )
    verdict = first(situation(targets=(status,), probes=(ANSWERED,)))
    assert (verdict.kind, verdict.confidence, verdict.detail) == (
        Kind.METRICS_MISSING,
        Confidence.CONFIRMED,
        "endpoint-off",
    )


def test_a_target_that_monitoring_calls_down_while_it_answers() -> None:
    down = MonitoredTarget("targets.json", "llm", "http://a/metrics", "down", "HTTP status 500")
    verdict = first(situation(monitored=(down,), probes=(ANSWERED,)))
    assert verdict.kind is Kind.METRICS_MISSING
    silent = diagnose(situation(monitored=(down,))).verdicts[0]
    assert silent.kind is Kind.INSUFFICIENT_DATA


def test_a_query_for_an_old_name_is_a_rename() -> None:
    metric = QueriedMetric("vllm:gpu_cache_usage_perc", False, ("vllm:kv_cache_usage_perc",))
    query = DashboardQuery("queries.json", "vllm:gpu_cache_usage_perc", (metric,))
    assert first(situation(serving(), queries=(query,))).kind is Kind.METRICS_RENAMED


def test_a_query_for_a_name_nobody_knows_is_no_rename() -> None:
    query = DashboardQuery("queries.json", "my_own_metric", (QueriedMetric("my_own_metric", False),))
    assert first(situation(serving(), queries=(query,))).kind is Kind.HEALTHY


# ---- not enough


def test_nothing_at_all_is_insufficient() -> None:
    verdict = first(situation())
    assert (verdict.kind, verdict.confidence) == (Kind.INSUFFICIENT_DATA, None)
    assert "two scrapes" in verdict.next_test


def test_one_scrape_asks_for_a_second() -> None:
    one = serving()
    single = msgspec.structs.replace(
        one, window=msgspec.structs.replace(one.window, readings=1, seconds=0.0, deltas={}, histograms={})
    )
    verdict = first(situation(single))
    assert verdict.kind is Kind.INSUFFICIENT_DATA
    assert "second scrape" in verdict.next_test


def test_a_mean_of_four_observations_carries_nothing() -> None:
    """Four slow first tokens say nothing about the engine."""
    assert first(situation(serving(finished=4, ttft=30.0, tokens=5000))).kind is Kind.HEALTHY


# ---- form


def test_every_verdict_has_what_a_person_needs() -> None:
    cases = [
        situation(serving(waiting=24, ttft=9.0, queue=8.5)),
        situation(serving(itl=0.1)),
        stuck(waiting=(1, 5)),
        situation(serving()),
    ]
    for case in cases:
        for verdict in diagnose(case).verdicts:
            assert verdict.summary
            assert verdict.runbook == verdict.kind.value
            assert verdict.next_test or verdict.kind is Kind.HEALTHY
            assert all(item.source for item in verdict.evidence if item.id != "engine.replicas")
            assert any(item.direction is Direction.FOR for item in verdict.evidence) or verdict.confidence is None


def test_evidence_rules_out_what_it_speaks_against() -> None:
    ruled = {out.kind for out in diagnose(situation(serving())).ruled_out}
    assert ruled == {Kind.ENGINE_STALLED, Kind.QUEUEING, Kind.SLOW_DECODE, Kind.KV_PRESSURE, Kind.SLOW_PREFILL}
    idle = serving(running=0, tokens=0, prompt=0, finished=0)
    assert not diagnose(situation(idle)).ruled_out


@pytest.mark.parametrize(
    ("ttft", "finished", "confidence"),
    [(9.0, 200, Confidence.LIKELY), (0.4, 200, Confidence.POSSIBLE), (9.0, 4, Confidence.POSSIBLE)],
    ids=["felt by many", "first tokens within the limit", "a handful of prompts"],
)
def test_an_uneven_queue_is_likely_only_where_it_is_felt_by_more_than_a_handful(
    ttft: float, finished: int, confidence: Confidence
) -> None:
    hot = serving("hot", waiting=3, ttft=ttft, queue=0.9 * ttft, finished=finished)
    case = situation(hot, serving("cold", running=1))
    found = [verdict for verdict in diagnose(case).verdicts if verdict.kind is Kind.LOAD_IMBALANCE]
    assert [verdict.confidence for verdict in found] == [confidence]


# ---- a load that nobody waits for any more


def _left(case: Situation, gone: float) -> Situation:
    """Of its requests so many were aborted."""
    (own,) = case.replicas
    window = own.window
    aborted = window.deltas | {Q.ABORTED: gone, Q.FINISHED: 60.0 + gone}
    own = msgspec.structs.replace(own, window=msgspec.structs.replace(window, deltas=aborted))
    return msgspec.structs.replace(case, replicas=(own,))


@pytest.mark.parametrize(("gone", "sure"), [(0.0, True), (20.0, True), (600.0, False)])
def test_a_slow_engine_whose_requests_leave_unanswered_is_at_most_possibly_slow_by_itself(
    gone: float, sure: bool
) -> None:
    unread = (NotSeen("gateway.log", "no reader", (Kind.RETRY_STORM.value,), expected=True),)
    slow = situation(serving(itl=0.4, itl_before=0.025))
    verdicts = diagnose(msgspec.structs.replace(_left(slow, gone), not_seen=unread)).verdicts
    decode = next(v for v in verdicts if v.kind is Kind.SLOW_DECODE)
    assert (decode.confidence is not Confidence.POSSIBLE) is sure
    if not sure:
        assert "retries can be the load" in decode.summary


def test_one_request_that_waits_now_and_then_for_room_is_no_pressure() -> None:
    """Long prompts: none began in this window, and the one that waited for room is in."""
    case = situation(serving(running=3, kv=0.99, finished=0))
    (own,) = case.replicas
    for last, named in ((0.0, False), (3.0, True)):
        waited = msgspec.structs.replace(own.window.gauges[Q.WAITING], first=1.0, last=last, high=3.0, mean=0.5 + last)
        window = msgspec.structs.replace(own.window, gauges=own.window.gauges | {Q.WAITING: waited})
        there = msgspec.structs.replace(case, replicas=(msgspec.structs.replace(own, window=window),))
        assert (Kind.KV_PRESSURE in {v.kind for v in diagnose(there).verdicts}) is named
    verdicts = diagnose(situation(serving(waiting=6, running=20, kv=0.99, ttft=9.0, queue=8.0))).verdicts
    assert Kind.KV_PRESSURE in {v.kind for v in verdicts}
