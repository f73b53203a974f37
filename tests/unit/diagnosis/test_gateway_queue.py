"""Requests held in front of the engines: whose queue it is, how sure, and what part of the time."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import histogram, reading, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.histogram import Histogram
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import Role
from triage.domain.situation import NotSeen, Replica
from triage.domain.stream import ProbeReading
from triage.domain.verdict import Confidence, Diagnosis, Direction, Family, Kind, Verdict

EDGES = (0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


def front(
    held: tuple[float, float] | None = (20, 22),
    *,
    inside: tuple[float, float] | None = (30, 30),
    held_for: float | None = 6.0,
    takes: float | None = 10.0,
    first: float | None = None,
    passed: float = 60,
    extra: Mapping[Q, tuple[float, float]] | None = None,
    name: str = "router",
    model: str = "m",
) -> Replica:
    """A front end that holds `held` of the `inside` requests back; (before, after) for each number."""
    levels: dict[Q, tuple[float, float]] = {Q.FINISHED: (500.0, 500.0 + passed), **(extra or {})}
    if held is not None:
        levels[Q.GATEWAY_QUEUE] = held
    if inside is not None:
        levels[Q.INFLIGHT] = inside
    times = {Q.GATEWAY_QUEUE_TIME: held_for, Q.E2E: takes, Q.TTFT: first}
    past: dict[Q, Histogram] = {q: histogram(0.2, 500, EDGES) for q, mean in times.items() if mean is not None}
    now = {q: old.plus(histogram(times[q] or 0.0, passed, EDGES)) for q, old in past.items()}
    before, after = (
        reading(
            {q: pair[i] for q, pair in levels.items()},
            histograms=(past, now)[i],
            name=name,
            model=model,
            engine="llm-d",
            role=Role.FRONTEND,
        )
        for i in (0, 1)
    )
    return replica(before, after)


def queued(diagnosis: Diagnosis) -> list[Verdict]:
    return [verdict for verdict in diagnosis.verdicts if verdict.kind is Kind.QUEUEING]


def in_front(diagnosis: Diagnosis) -> list[Verdict]:
    return [verdict for verdict in queued(diagnosis) if verdict.detail == "gateway-queue"]


def probed(target: str, first: float) -> ProbeReading:
    return ProbeReading(
        source="probes.json",
        target=target,
        method="POST",
        path="/v1/chat/completions",
        status=200,
        total_s=first + 1,
        first_token_s=first,
        output_tokens=20,
    )


# ---- held in front of engines that have room


def test_a_line_in_front_of_engines_without_a_queue_is_named_with_both_sides() -> None:
    (verdict,) = in_front(diagnose(situation(front(), serving("a"), serving("b"))))
    assert verdict.confidence is Confidence.LIKELY
    assert verdict.scope.hop == "router"
    assert verdict.scope.replica is None
    assert {item.family for item in verdict.evidence} == {Family.GATEWAY, Family.ENGINE}
    assert verdict.share is not None
    assert verdict.share.value == pytest.approx(0.6)  # 6 of 10 s; by the gauges 21 held and 16 in the engines
    assert verdict.share.low < 21 / 37
    assert "no request waits in 2 engines" in " ".join(item.text for item in verdict.evidence)


def test_the_time_held_counts_where_it_is_the_larger_part() -> None:
    (verdict,) = in_front(diagnose(situation(front(held_for=9.0, takes=10.0), serving("a"))))
    assert verdict.share is not None
    assert verdict.share.value == pytest.approx(0.9)


def test_a_first_token_at_the_front_end_is_what_the_wait_is_measured_against() -> None:
    (verdict,) = in_front(diagnose(situation(front(held_for=4.0, first=5.0, takes=40.0), serving("a"))))
    assert verdict.share is not None
    assert verdict.share.value == pytest.approx(0.8)
    assert verdict.share.of == "time to first token at the front end"
    assert verdict.summary.startswith("first token takes 5.0 s")


def test_asked_on_both_sides_it_is_confirmed() -> None:
    case = situation(front(), serving("a"), probes=(probed("a", 0.2), probed("gateway", 8.0)))
    (verdict,) = in_front(diagnose(case))
    assert verdict.confidence is Confidence.CONFIRMED


def test_an_engine_that_is_as_slow_directly_speaks_against_it() -> None:
    (verdict,) = in_front(diagnose(situation(front(), serving("a"), probes=(probed("a", 9.0),))))
    assert any(e.family is Family.PROBE and e.direction is Direction.AGAINST for e in verdict.evidence)
    assert verdict.confidence is not Confidence.CONFIRMED


def test_a_front_end_without_times_is_judged_by_its_gauges() -> None:
    (verdict,) = in_front(diagnose(situation(front(held_for=None, takes=None), serving("a"))))
    assert verdict.confidence is Confidence.LIKELY
    assert verdict.share is not None
    assert verdict.share.low < verdict.share.value < verdict.share.high


def test_engines_whose_slots_are_all_used_are_said_to_be_full() -> None:
    engine = serving("a")
    gauges = {**engine.window.gauges, Q.SEQUENCE_LIMIT: engine.window.gauges[Q.RUNNING]}
    engine = msgspec.structs.replace(engine, window=msgspec.structs.replace(engine.window, gauges=gauges))
    (verdict,) = in_front(diagnose(situation(front(extra={Q.GATEWAY_SATURATION: (1.1, 1.2)}), engine)))
    assert "no slot is free" in verdict.summary
    assert verdict.next_test.startswith("add replicas")


def test_a_front_end_that_names_no_model_stands_in_front_of_all_engines() -> None:
    (verdict,) = in_front(diagnose(situation(front(model=""), serving("a"))))
    assert verdict.confidence is Confidence.LIKELY


def test_the_only_model_may_have_another_name_in_front() -> None:
    (verdict,) = in_front(diagnose(situation(front(model="alias"), serving("a"))))
    assert verdict.confidence is Confidence.LIKELY


# ---- not a line in front, or nobody feels it


def test_the_engines_own_queue_is_listed_once_and_the_line_goes_to_its_evidence() -> None:
    engine = serving("a", running=8, waiting=30, ttft=8.0, queue=7.5, finished=60)
    diagnosis = diagnose(situation(front(), engine))
    (verdict,) = queued(diagnosis)
    assert verdict.detail != "gateway-queue"
    assert verdict.scope.replica == "a"
    assert any(item.id == "gateway.held" for item in verdict.evidence)


def test_of_a_full_kv_cache_a_line_in_front_is_the_consequence() -> None:
    engine = serving("a", running=8, waiting=30, kv=0.97, ttft=8.0, queue=7.5, preemptions=40)
    diagnosis = diagnose(situation(front(), engine))
    assert diagnosis.verdicts[0].kind is Kind.KV_PRESSURE
    assert in_front(diagnosis) == []
    assert any(item.id == "gateway.held" for item in diagnosis.verdicts[0].evidence)


def test_a_full_kv_cache_behind_a_line_keeps_it_possible() -> None:
    (verdict,) = in_front(diagnose(situation(front(), serving("a", kv=0.95))))
    assert verdict.confidence is Confidence.POSSIBLE
    assert "KV cache behind it is full" in verdict.summary


def test_an_engine_that_stands_still_makes_a_line_by_itself() -> None:
    (verdict,) = in_front(diagnose(situation(front(), serving("a", tokens=0, prompt=0, finished=0), serving("b"))))
    assert verdict.confidence is Confidence.POSSIBLE
    assert "an engine behind it does not work" in verdict.summary


def test_a_wait_within_the_limit_is_nothing_to_name() -> None:
    quick = front((1, 2), inside=(30, 30), held_for=0.05, takes=9.0, first=0.4)
    assert queued(diagnose(situation(quick, serving("a")))) == []


def test_a_line_that_is_a_small_part_of_the_time_is_not_named() -> None:
    slow = front((2, 2), inside=(80, 80), held_for=0.4, takes=30.0)
    assert queued(diagnose(situation(slow, serving("a", running=78)))) == []


def test_a_line_that_is_over_is_not_named() -> None:
    assert in_front(diagnose(situation(front((20, 0)), serving("a")))) == []


def test_requests_that_wait_for_an_engine_to_come_are_no_queue() -> None:
    diagnosis = diagnose(situation(front(extra={Q.READY_ENDPOINTS: (0, 0)})))
    assert queued(diagnosis) == []
    assert diagnosis.verdicts[0].kind is Kind.INSUFFICIENT_DATA
    assert "no engine is ready behind it, and 30 requests inside" in diagnosis.verdicts[0].summary


def test_one_look_is_no_more_than_possible() -> None:
    both = front()
    window = msgspec.structs.replace(
        both.window,
        readings=1,
        gauges={q: msgspec.structs.replace(track, n=1) for q, track in both.window.gauges.items()},
    )
    single = msgspec.structs.replace(both, window=window)
    (verdict,) = in_front(diagnose(situation(single, serving("a"))))
    assert verdict.confidence is Confidence.POSSIBLE


def test_an_unread_gateway_log_may_hold_the_reason() -> None:
    unread = NotSeen("gateway.log", "not read", (Kind.RETRY_STORM.value,), expected=True)
    (verdict,) = in_front(diagnose(situation(front(), serving("a"), not_seen=(unread,))))
    assert verdict.confidence is Confidence.POSSIBLE


# ---- engines that were not read


def test_without_the_engines_pages_a_line_is_only_possible() -> None:
    (verdict,) = in_front(diagnose(situation(front())))
    assert verdict.confidence is Confidence.POSSIBLE
    assert "the engines behind it were not read" in verdict.summary


def test_the_front_ends_own_look_at_the_engines_makes_it_likely() -> None:
    (verdict,) = in_front(diagnose(situation(front(inside=(5, 5), extra={Q.POOL_WAITING: (0, 0)}))))
    assert verdict.confidence is Confidence.LIKELY


def test_a_look_that_fails_is_no_look() -> None:
    stale = front(inside=(5, 5), extra={Q.POOL_WAITING: (0, 0), Q.PICKER_ERRORS: (0, 90)})
    (verdict,) = in_front(diagnose(situation(stale)))
    assert verdict.confidence is Confidence.POSSIBLE


def test_queues_that_only_the_front_end_sees_are_possible_and_in_the_engines() -> None:
    (verdict,) = queued(diagnose(situation(front(None, held_for=None, extra={Q.POOL_WAITING: (40, 44)}))))
    assert verdict.detail is None
    assert verdict.confidence is Confidence.POSSIBLE


def test_one_idle_engine_does_not_stand_for_ten() -> None:
    ten = {Q.READY_ENDPOINTS: (10.0, 10.0)}
    (verdict,) = in_front(diagnose(situation(front(extra=ten), serving("a"))))
    assert verdict.confidence is Confidence.POSSIBLE
    assert "only 1 of 10 engines" in verdict.summary
    seen = {**ten, Q.POOL_WAITING: (0.0, 0.0)}
    (verdict,) = in_front(diagnose(situation(front(extra=seen), serving("a"))))
    assert verdict.confidence is Confidence.LIKELY


def test_a_front_end_from_which_nothing_comes_may_stand_before_a_dead_engine() -> None:
    gate = front(inside=(22, 22), passed=0, extra={Q.POOL_WAITING: (0, 0), Q.GENERATION_TOKENS: (9000, 9000)})
    diagnosis = diagnose(situation(gate))
    assert all(verdict.confidence is Confidence.POSSIBLE for verdict in in_front(diagnosis))
    assert Kind.ENGINE_STALLED in {verdict.kind for verdict in diagnosis.verdicts}


# ---- a gauge that counts requests without a first response


def dynamo(queued_: float, *, first: float = 9.0) -> Replica:
    levels = {Q.QUEUED: (queued_, queued_)}
    return front(None, inside=(queued_ + 4, queued_ + 4), held_for=None, first=first, extra=levels)


def test_what_the_engines_have_is_not_held_in_front_of_them() -> None:
    engine = serving("a", running=4, waiting=12, ttft=9.0, queue=8.5)
    (verdict,) = queued(diagnose(situation(dynamo(12), engine)))
    assert verdict.detail != "gateway-queue"
    assert verdict.scope.replica == "a"


def test_prefill_is_not_held_in_front() -> None:
    assert in_front(diagnose(situation(dynamo(8), serving("a", running=8, ttft=9.0, prefill=8.5)))) == []


def test_more_than_the_engines_can_have_is_held_but_one_may_be_unread() -> None:
    (verdict,) = in_front(diagnose(situation(dynamo(40), serving("a", running=4))))
    assert verdict.confidence is Confidence.POSSIBLE
    assert "not read" in verdict.summary


# ---- the server around one engine


def test_a_server_that_holds_requests_back_from_its_engine_is_named_at_the_replica() -> None:
    engine = serving("a", ttft=0.3)
    held = msgspec.structs.replace(engine.window.gauges[Q.RUNNING], first=40, last=44, low=40, high=44, mean=42)
    gauges = {**engine.window.gauges, Q.GATEWAY_QUEUE: held}
    engine = msgspec.structs.replace(engine, window=msgspec.structs.replace(engine.window, gauges=gauges))
    (verdict,) = in_front(diagnose(situation(engine)))
    assert verdict.scope.replica == "a"
    assert verdict.scope.hop is None
    assert verdict.confidence is Confidence.LIKELY
    assert "by the server around the engine" in verdict.summary


# ---- whatever the numbers are

numbers = st.integers(0, 500).map(float)
pairs = st.tuples(numbers, numbers)
seconds = st.one_of(st.none(), st.floats(0.001, 600))


@given(
    held=st.one_of(st.none(), pairs),
    inside=st.one_of(st.none(), pairs),
    held_for=seconds,
    takes=seconds,
    first=seconds,
    passed=st.integers(0, 400).map(float),
    extra=st.dictionaries(
        st.sampled_from([Q.QUEUED, Q.POOL_WAITING, Q.READY_ENDPOINTS, Q.GATEWAY_SATURATION, Q.POOL_KV_USAGE]), pairs
    ),
    engines=st.lists(st.tuples(numbers, numbers, st.floats(0, 1)), max_size=3),
)
def test_a_share_is_a_share_and_a_line_is_told_once(
    held: tuple[float, float] | None,
    inside: tuple[float, float] | None,
    held_for: float | None,
    takes: float | None,
    first: float | None,
    passed: float,
    extra: dict[Q, tuple[float, float]],
    engines: list[tuple[float, float, float]],
) -> None:
    gate = front(held, inside=inside, held_for=held_for, takes=takes, first=first, passed=passed, extra=extra)
    behind = [serving(str(i), running=r, waiting=w, kv=kv) for i, (r, w, kv) in enumerate(engines)]
    verdicts = diagnose(situation(gate, *behind)).verdicts
    lines = [verdict for verdict in verdicts if verdict.scope.hop == "router"]
    assert len(lines) <= 1
    for verdict in verdicts:
        if verdict.share is not None:
            assert 0 <= verdict.share.low <= verdict.share.value <= verdict.share.high <= 1
    if not behind and lines and Q.POOL_WAITING not in extra:
        assert lines[0].confidence is Confidence.POSSIBLE
    if engines and all(waiting > 0 for _, waiting, _ in engines):
        assert all(verdict.detail != "gateway-queue" for verdict in lines)
