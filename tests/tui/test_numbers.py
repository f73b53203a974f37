"""How numbers are written."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.domain.absence import NOT_EXPORTED
from triage.domain.histogram import Interval
from triage.domain.verdict import Share
from triage.tui import numbers

INF = math.inf


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (64.0, "64"), (1480.4, "1480"), (99_999.0, "99999"), (123_456.0, "123k"), (1.234e9, "1.23G")],
)
def test_count(value: float, text: str) -> None:
    assert numbers.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0312, "0.0312"), (9.4, "9.4"), (24.36, "24.4"), (1480.2, "1480"), (0.0, "0"), (-0.5, "-0.5"), (INF, "∞")],
)
def test_plain(value: float, text: str) -> None:
    assert numbers.plain(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (5.0, 10.0, "5–10"),
        (60.0, INF, "≥60"),
        (0.0, 0.3, "≤0.3"),
        (0.25, 0.5, "0.25–0.5"),
        (0.001, 0.005, "1–5ms"),
        (0.0, 0.01, "≤10ms"),
        (640.0, 2560.0, "640–2560"),
    ],
)
def test_an_interval_is_the_bucket_it_lies_in(low: float, high: float, text: str) -> None:
    assert numbers.interval(Interval(low, high)) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.62, "0.6s"), (12.4, "12s"), (119.0, "119s"), (300.0, "5m"), (9000.0, "2h"), (1e6, "12d")]
)
def test_age(seconds: float, text: str) -> None:
    assert numbers.age(seconds) == text


def test_absent_is_a_dash_and_zero_is_zero() -> None:
    for write in (numbers.count, numbers.plain, numbers.percent, numbers.milliseconds, numbers.age):
        assert write(NOT_EXPORTED) == "–"
        assert write(None) == "–"
        assert write(math.nan) == "–"
        assert write(0.0).startswith("0")
    assert numbers.interval(None) == "–"


def test_share_has_its_interval() -> None:
    assert numbers.share(Share(0.61, 0.53, 0.68)) == "61 % (53–68)"


def test_times_of_day_are_utc() -> None:
    assert numbers.clock_time(1_796_094_245.0) == "03:04:05 UTC"
    assert numbers.clock_time(None) == "–"
    assert numbers.clock_time(1e300) == "–"


@given(st.floats())
def test_no_number_is_too_odd_to_be_written(value: float) -> None:
    for write in (numbers.count, numbers.plain, numbers.short, numbers.percent, numbers.milliseconds, numbers.age):
        assert 0 < len(write(value)) <= 24
    assert numbers.clock_time(value)


@given(st.floats(min_value=1e-4, max_value=1e5))
def test_plain_keeps_three_digits(value: float) -> None:
    text = numbers.plain(value)
    if text[-1] not in "kM":
        assert float(text) == pytest.approx(value, rel=0.006)
