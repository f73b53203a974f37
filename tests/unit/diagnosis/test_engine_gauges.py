"""Paused requests, block counts, the device timer, hand-overs, and gauges that show the last work of an idle engine."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import histogram, reading, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.diagnosis.hits import hits_in
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known
from triage.domain.derived import hit_share
from triage.domain.histogram import Histogram
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import GpuReading
from triage.domain.situation import GpuWindow, Replica
from triage.domain.verdict import Confidence, Diagnosis, Kind, Verdict
from triage.domain.window import Track


def with_gauges(
    base: Replica, levels: Mapping[Q, tuple[float, float]], lingering: frozenset[Q] = frozenset()
) -> Replica:
    """The same replica, with more gauges: (first, last) of each."""
    gauges = dict(base.window.gauges)
    for quantity, (one, two) in levels.items():
        zeros = [one, two].count(0)
        gauges[quantity] = Track(one, two, min(one, two), max(one, two), (one + two) / 2, 2, zeros)
    last = msgspec.structs.replace(base.window.last, lingering=lingering)
    return msgspec.structs.replace(base, window=msgspec.structs.replace(base.window, gauges=gauges, last=last))


def of(diagnosis: Diagnosis, kind: Kind) -> list[Verdict]:
    return [verdict for verdict in diagnosis.verdicts if verdict.kind is kind]


# ---- requests taken out of the batch


def test_requests_that_stay_out_of_the_batch_prove_that_room_is_short() -> None:
    engine = with_gauges(serving(kv=0.96, itl=0.15), {Q.SWAPPED: (5, 7)})
    (verdict,) = of(diagnose(situation(engine)), Kind.KV_PRESSURE)
    assert (verdict.confidence, verdict.detail) == (Confidence.LIKELY, "preemption")
    assert "7 requests are taken out of the batch" in verdict.summary


def test_paused_once_while_everything_is_in_time_is_a_hint() -> None:
    engine = with_gauges(serving(), {Q.SWAPPED: (0, 1)})
    diagnosis = diagnose(situation(engine))
    assert all(verdict.confidence is Confidence.POSSIBLE for verdict in of(diagnosis, Kind.KV_PRESSURE))
    assert Kind.KV_PRESSURE not in {out.kind for out in diagnosis.ruled_out}


def test_nobody_paused_is_no_evidence() -> None:
    assert not of(diagnose(situation(with_gauges(serving(), {Q.SWAPPED: (0, 0)}))), Kind.KV_PRESSURE)


# ---- the device timer


def gpu(active: float) -> GpuWindow:
    one = GpuReading("g", "dcgm.prom", None, "n", "0", "u", "H100", {"PROF_SM_ACTIVE": active})
    return GpuWindow(one, one)


def test_an_engine_whose_forward_passes_leave_the_device_idle_waits_for_its_host() -> None:
    (verdict,) = of(diagnose(situation(with_gauges(serving(itl=0.15), {Q.DEVICE_BUSY: (0.2, 0.25)}))), Kind.SLOW_DECODE)
    assert verdict.detail == "host-bound"
    assert any(item.id == "engine.waits-for-host" for item in verdict.evidence)


@pytest.mark.parametrize("busy", [(0.2, 0.9), (0.95, 0.97), (0.45, 0.45)])
def test_a_device_that_is_busy_at_times_is_not_held_up(busy: tuple[float, float]) -> None:
    (verdict,) = of(diagnose(situation(with_gauges(serving(itl=0.15), {Q.DEVICE_BUSY: busy}))), Kind.SLOW_DECODE)
    assert verdict.detail is None


def test_an_idle_device_without_slow_tokens_is_nothing() -> None:
    assert not of(diagnose(situation(with_gauges(serving(), {Q.DEVICE_BUSY: (0.1, 0.1)}))), Kind.SLOW_DECODE)


def test_a_timer_that_the_devices_exporter_contradicts_says_nothing() -> None:
    engine = with_gauges(serving(itl=0.15), {Q.DEVICE_BUSY: (0.2, 0.2)})
    (verdict,) = of(diagnose(situation(engine, gpus=(gpu(0.9),))), Kind.SLOW_DECODE)
    assert verdict.detail is None


def test_timer_and_exporter_together_confirm_it() -> None:
    engine = with_gauges(serving(itl=0.15), {Q.DEVICE_BUSY: (0.2, 0.2)})
    (verdict,) = of(diagnose(situation(engine, gpus=(gpu(0.2),))), Kind.SLOW_DECODE)
    assert (verdict.detail, verdict.confidence) == ("host-bound", Confidence.CONFIRMED)


# ---- prefix hits in blocks


def blocks(before: tuple[float, float], after: tuple[float, float]) -> Replica:
    """(hits, misses) at both ends."""
    base = serving("a")
    found, missed = after[0] - before[0], after[1] - before[1]
    first = {**base.window.first.values, Q.PREFIX_BLOCK_HITS: before[0], Q.PREFIX_BLOCK_MISSES: before[1]}
    last = {**base.window.last.values, Q.PREFIX_BLOCK_HITS: after[0], Q.PREFIX_BLOCK_MISSES: after[1]}
    return msgspec.structs.replace(
        base,
        window=msgspec.structs.replace(
            base.window,
            first=msgspec.structs.replace(base.window.first, values=first),
            last=msgspec.structs.replace(base.window.last, values=last),
            deltas={**base.window.deltas, Q.PREFIX_BLOCK_HITS: found, Q.PREFIX_BLOCK_MISSES: missed},
        ),
    )


def test_hits_in_blocks_are_a_ratio_and_no_number_of_tokens() -> None:
    window = blocks((9000, 1000), (9400, 1600)).window
    assert hit_share(window) == pytest.approx(0.4)
    hits = hits_in(window)
    assert hits is not None
    assert hits.blocks
    assert hits.share == pytest.approx(0.4)


def test_a_fall_of_hits_in_blocks_is_possible_and_health_no_more() -> None:
    diagnosis = diagnose(situation(blocks((9000, 1000), (9100, 2000))))
    (verdict,) = of(diagnosis, Kind.CACHE_MISS_REGRESSION)
    assert verdict.confidence is Confidence.POSSIBLE
    assert "9 % of the prompts' blocks, 90 %" in verdict.summary
    assert diagnosis.verdicts[0].kind is Kind.HEALTHY
    assert diagnosis.verdicts[0].confidence is Confidence.POSSIBLE


def test_a_few_blocks_do_not_decide() -> None:
    assert not of(diagnose(situation(blocks((9000, 1000), (9000, 1040)))), Kind.CACHE_MISS_REGRESSION)


@given(st.tuples(*[st.integers(0, 10**6).map(float)] * 4))
def test_a_ratio_of_blocks_is_a_share_or_absent(counts: tuple[float, float, float, float]) -> None:
    hits, misses, more_hits, more_misses = counts
    share = hit_share(blocks((hits, misses), (hits + more_hits, misses + more_misses)).window)
    assert known(share) is (more_hits + more_misses > 0)
    assert not known(share) or 0 <= share <= 1


# ---- gauges that linger

SGLANG = frozenset({Q.KV_USAGE, Q.HIT_RATE, Q.DEVICE_BUSY})
TRTLLM = frozenset({Q.RUNNING, Q.WAITING, Q.KV_USAGE, Q.HIT_RATE, Q.SWAPPED})


def test_levels_of_an_idle_engine_are_those_of_its_last_work() -> None:
    idle = with_gauges(serving(running=0, tokens=0, prompt=0, finished=0), {Q.KV_USAGE: (0.97, 0.97)}, SGLANG)
    view = ReplicaView(idle)
    assert view.idle
    assert view.kv is None
    window = with_gauges(idle, {Q.HIT_RATE: (0.8, 0.8)}, SGLANG).window
    assert not known(hit_share(window))


def test_levels_of_a_working_engine_count() -> None:
    view = ReplicaView(with_gauges(serving(running=3), {Q.KV_USAGE: (0.97, 0.97), Q.HIT_RATE: (0.8, 0.8)}, SGLANG))
    assert view.kv is not None
    assert hit_share(view.window) == 0.8


def test_levels_beside_numbers_that_linger_as_well_do_not_count_while_nothing_moves() -> None:
    late = frozenset({Q.GENERATION_TOKENS, Q.FINISHED, Q.TTFT})
    values = {Q.RUNNING: 3.0, Q.WAITING: 2.0, Q.KV_USAGE: 0.97, Q.GENERATION_TOKENS: 500.0, Q.FINISHED: 9.0}
    one = msgspec.structs.replace(reading(values, late=late), lingering=TRTLLM)
    still = replica(one, one)
    assert ReplicaView(still).kv is None
    assert ReplicaView(still).running is not None  # a stall looks the same
    assert not of(diagnose(situation(still)), Kind.KV_PRESSURE)
    other = msgspec.structs.replace(one, values={**values, Q.WAITING: 4.0})
    assert ReplicaView(replica(one, other)).kv is not None


# ---- hand-overs


def decode_side(*, transfer: float, transfers: float, deferred: float) -> Replica:
    base = with_gauges(
        serving(running=4, waiting=deferred, ttft=8.0, queue=6.0),
        {Q.WAITING_DEFERRED: (deferred, deferred), Q.WAITING_CAPACITY: (0, 0)},
    )
    times: dict[Q, Histogram] = {**base.window.histograms, Q.KV_TRANSFER_TIME: histogram(transfer, transfers)}
    return msgspec.structs.replace(base, window=msgspec.structs.replace(base.window, histograms=times))


def test_transfers_that_take_most_of_the_first_token_name_the_hand_over() -> None:
    (verdict,) = of(diagnose(situation(decode_side(transfer=5.0, transfers=60, deferred=12))), Kind.QUEUEING)
    assert verdict.detail == "handoff-queue"
    assert any(item.id == "engine.kv-transfer" for item in verdict.evidence)


@pytest.mark.parametrize(("transfer", "transfers"), [(0.02, 60), (5.0, 10)])
def test_quick_or_rare_transfers_do_not(transfer: float, transfers: float) -> None:
    case = situation(decode_side(transfer=transfer, transfers=transfers, deferred=12))
    (verdict,) = of(diagnose(case), Kind.QUEUEING)
    assert verdict.detail is None


def test_trouble_of_the_hand_over_stands_beside_its_queue() -> None:
    engine = with_gauges(
        serving(running=4, waiting=0, ttft=8.0, queue=6.0), {Q.HANDOFF_QUEUE: (12, 14), Q.HANDOFF_SENDING: (3, 5)}
    )
    deltas = {**engine.window.deltas, Q.HANDOFF_FAILED: 9.0}
    engine = msgspec.structs.replace(engine, window=msgspec.structs.replace(engine.window, deltas=deltas))
    (verdict,) = of(diagnose(situation(engine)), Kind.QUEUEING)
    assert verdict.detail == "handoff-queue"
    said = {item.id for item in verdict.evidence}
    assert {"engine.handoff-queue", "engine.handoff-sending", "engine.handoff-failed"} <= said
