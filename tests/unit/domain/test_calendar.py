"""Times without a year."""

from hypothesis import given
from hypothesis import strategies as st

from triage.domain.calendar import second_of_year, seconds_between

DAY = 86400.0


def test_the_same_day_of_two_years_is_the_same_second() -> None:
    assert second_of_year(1768471221.0) == second_of_year(1768471221.0 + 365 * DAY)


def test_a_time_that_no_calendar_has() -> None:
    assert second_of_year(1e30) is None
    assert second_of_year(float("nan")) is None


def test_new_year_lies_between() -> None:
    last, first = second_of_year(1767225570.0), second_of_year(1767225630.0)  # 30 s before and after
    assert last is not None
    assert first is not None
    assert seconds_between(last, first) == 60.0
    assert seconds_between(first, last) == -60.0


@given(st.floats(0, 366 * DAY), st.floats(0, 366 * DAY))
def test_the_shorter_way_around(one: float, other: float) -> None:
    assert abs(seconds_between(one, other)) <= 183 * DAY
