"""A share is no surer than what was counted."""

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.factory import serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.diagnosis.shares import gauge_bounds, share_between
from triage.domain.verdict import Kind
from triage.domain.window import Track

level = st.integers(0, 300).map(float)


def track(values: list[float]) -> Track:
    return Track(values[0], values[-1], min(values), max(values), sum(values) / len(values), len(values))


@given(st.lists(st.tuples(level, level), min_size=1, max_size=6))
def test_no_reading_lies_outside_the_interval(readings: list[tuple[float, float]]) -> None:
    waiting, running = track([w for w, _ in readings]), track([r for _, r in readings])
    inside = waiting.mean + running.mean
    assume(inside > 0)
    value = waiting.mean / inside
    share = share_between(value, gauge_bounds(waiting, [running]), inside, "x")
    assert 0 <= share.low <= value <= share.high <= 1
    assert share.high - share.low >= min(1.0, 1 / max(inside, 1)) - 1e-9
    for w, r in readings:
        if w + r:
            assert share.low - 1e-9 <= w / (w + r) <= share.high + 1e-9


def test_steady_gauges_are_as_sure_as_one_request() -> None:
    share = share_between(10 / 12, gauge_bounds(track([10, 10]), [track([2, 2])]), 12, "x")
    assert (round(share.low, 2), round(share.high, 2)) == (0.75, 0.92)


def test_a_queue_read_from_gauges_says_how_far_they_swing() -> None:
    verdict = next(v for v in diagnose(situation(serving(waiting=40, ttft=9.0))).verdicts if v.kind is Kind.QUEUEING)
    assert verdict.share is not None
    assert verdict.share.low < verdict.share.value < verdict.share.high
