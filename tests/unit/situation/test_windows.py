"""Rates and means: reset-aware, gap-aware, never invented."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import histogram, reading
from triage.domain.absence import Absent, Missing, known
from triage.domain.quantity import Quantity as Q
from triage.situation.windows import build_window, moments_of

steps = st.lists(st.integers(-5, 50), min_size=1, max_size=12)


@given(st.integers(0, 1000), steps)
def test_a_counter_never_loses_and_a_reset_is_never_counted(start: int, changes: list[int]) -> None:
    """A drop is a reset: its interval contributes nothing; every other interval contributes its rise."""
    values = [float(start)]
    for change in changes:
        values.append(max(values[-1] + change, 0.0))
    window = build_window(moments_of([(5.0 * i, reading({Q.PROMPT_TOKENS: v})) for i, v in enumerate(values)]))
    pairs = list(pairwise(values))
    rises = [b - a for a, b in pairs if b >= a]
    assert window.resets == sum(b < a for a, b in pairs)
    assert window.seconds == 5.0 * len(rises)
    delta = window.delta(Q.PROMPT_TOKENS)
    if rises:
        assert delta == sum(rises)
    else:
        assert delta == Absent(Missing.RESET, "the process restarted inside the window")


def test_a_rate_is_not_computed_over_a_gap() -> None:
    readings = [
        (t, reading({Q.PROMPT_TOKENS: v})) for t, v in ((0.0, 0.0), (5.0, 50.0), (65.0, 5000.0), (70.0, 5100.0))
    ]
    window = build_window(moments_of(readings), interval_s=5.0)
    assert (window.gaps, window.seconds) == (1, 10.0)
    assert window.rate(Q.PROMPT_TOKENS) == 15.0


def test_one_reading_has_gauges_and_no_rates() -> None:
    window = build_window(moments_of([(0.0, reading({Q.RUNNING: 3, Q.PROMPT_TOKENS: 10}))]))
    assert window.single
    assert window.gauges[Q.RUNNING].last == 3
    assert window.delta(Q.PROMPT_TOKENS) == Absent(Missing.NO_WINDOW)
    assert window.delta(Q.DRAFTS) == Absent(Missing.NOT_EXPORTED)


def test_a_counter_that_appears_counts_from_zero() -> None:
    """SGLang exports several counters only after their first use."""
    window = build_window(moments_of([(0.0, reading({Q.RUNNING: 1})), (30.0, reading({Q.RUNNING: 1, Q.ABORTED: 4}))]))
    assert window.delta(Q.ABORTED) == 4


def test_a_new_process_is_a_restart_even_when_counters_grew() -> None:
    old = reading({Q.PROMPT_TOKENS: 5, Q.PROCESS_START: 100.0})
    new = reading({Q.PROMPT_TOKENS: 9, Q.PROCESS_START: 160.0})
    window = build_window(moments_of([(0.0, old), (30.0, new)]))
    assert (window.resets, window.restarted) == (1, True)
    assert not known(window.delta(Q.PROMPT_TOKENS))


def test_counters_that_go_back_in_the_same_process_are_no_restart() -> None:
    """Each scrape answered by another worker process behind one port."""
    one, other = reading({Q.FINISHED: 9, Q.PROCESS_START: 1.0}), reading({Q.FINISHED: 4, Q.PROCESS_START: 1.0})
    window = build_window(moments_of([(0.0, one), (30.0, other)]))
    assert (window.resets, window.restarted) == (1, False)


def test_histogram_means_are_of_the_window_and_of_before() -> None:
    before = histogram(0.2, 100)
    after = before.plus(histogram(4.0, 50))
    window = build_window(
        moments_of([(0.0, reading({}, histograms={Q.TTFT: before})), (30.0, reading({}, histograms={Q.TTFT: after}))])
    )
    assert window.mean(Q.TTFT) == pytest.approx(4.0)
    assert window.lifetime_mean(Q.TTFT) == pytest.approx(0.2)
    assert window.delta(Q.TTFT) == 50


def test_ranks_have_their_own_tracks() -> None:
    first = reading({Q.RUNNING: 3}, ranks={"engine=0": {Q.RUNNING: 1}, "engine=1": {Q.RUNNING: 2}})
    last = reading({Q.RUNNING: 9}, ranks={"engine=0": {Q.RUNNING: 1}, "engine=1": {Q.RUNNING: 8}})
    window = build_window(moments_of([(0.0, first), (30.0, last)]))
    track = window.rank_gauges["engine=1"][Q.RUNNING]
    assert (track.first, track.last, track.low, track.high, track.n) == (2, 8, 2, 8, 2)
