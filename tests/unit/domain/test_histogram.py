"""Quantiles are the bucket they lie in; differences are reset-aware."""

import math

from hypothesis import given
from hypothesis import strategies as st

from triage.domain.absence import TOO_FEW, known
from triage.domain.histogram import Histogram

EDGES = (0.1, 0.5, 1.0, 5.0)


def observed(values: list[float]) -> Histogram:
    counts = tuple(float(sum(v <= edge for v in values)) for edge in (*EDGES, math.inf))
    return Histogram(EDGES, counts, sum(values), float(len(values)))


samples = st.lists(st.floats(0, 10, allow_nan=False), min_size=1, max_size=80)


@given(samples, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_quantile_lies_in_its_interval(values: list[float], q: float) -> None:
    interval = observed(values).quantile(q, minimum=1)
    assert interval is not None
    true = sorted(values)[math.ceil(q * len(values)) - 1]
    assert interval.low <= true <= interval.high


@given(samples, samples)
def test_difference_is_what_came_later(before: list[float], later: list[float]) -> None:
    change = observed(before + later).minus(observed(before))
    assert change is not None
    assert change.counts == observed(later).counts
    assert math.isclose(change.total, sum(later), rel_tol=1e-9, abs_tol=1e-9)


def test_a_reset_gives_no_difference() -> None:
    assert observed([1.0]).minus(observed([1.0, 2.0])) is None


def test_other_buckets_keep_sum_and_count() -> None:
    other = Histogram((1.0,), (3.0, 4.0), 9.0, 4.0)
    change = other.minus(observed([1.0]))
    assert change is not None
    assert (change.edges, change.count, change.total) == ((), 3.0, 8.0)
    assert change.quantile(0.5, minimum=1) is None
    assert change.mean(1) == 8.0 / 3


def test_sample_minimums() -> None:
    few = observed([1.0] * 4)
    assert few.mean() == TOO_FEW
    assert known(observed([1.0] * 5).mean())
    assert observed([1.0] * 59).quantile(0.95) is None
    assert observed([1.0] * 60).quantile(0.95) is not None
    assert observed([1.0] * 299).quantile(0.99) is None


def test_above_the_top_bucket_is_open_ended() -> None:
    interval = observed([9.0] * 60).quantile(0.95)
    assert interval is not None
    assert interval.open_ended
    assert interval.low == 5.0
    assert observed([9.0] * 60).share_above_top() == 1.0
