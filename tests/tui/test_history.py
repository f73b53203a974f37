"""Trails become points, and points become braille."""

from hypothesis import given
from hypothesis import strategies as st

from tests.tui.factory import trails
from triage.domain.quantity import Quantity
from triage.tui.braille import plot
from triage.tui.charts import chart_lines
from triage.tui.history import rates, resample

FLOATS = st.floats(allow_nan=True, allow_infinity=True)


def test_a_rising_line() -> None:
    assert plot([0.0, 1.0, 2.0, 3.0], 1, 0.0, 3.0) == ["⡠⠊"]


def test_a_jump_is_joined_and_a_hole_is_not() -> None:
    assert plot([0.0, 3.0], 1, 0.0, 3.0) == ["⡸"]
    assert plot([3.0, None, None, 0.0], 1, 0.0, 3.0) == ["⠁⢀"]


def test_two_rows_share_the_height() -> None:
    assert plot([0.0, 0.0, 7.0, 7.0], 2, 0.0, 7.0) == [" ⡏", "⣀⠇"]


def test_a_flat_line_at_zero_lies_on_the_ground() -> None:
    assert plot([0.0] * 4, 2, 0.0, 0.0) == ["  ", "⣀⣀"]


@given(st.lists(st.none() | FLOATS, max_size=40), st.integers(1, 3), FLOATS, FLOATS)
def test_plot_has_its_size_whatever_the_points(points: list[float | None], rows: int, low: float, high: float) -> None:
    drawn = plot(points, rows, low, high)
    assert len(drawn) == rows
    assert {len(row) for row in drawn} == {(len(points) + 1) // 2}


def test_rates_leave_out_a_counter_that_went_back() -> None:
    assert rates([(0.0, 10.0), (5.0, 20.0), (10.0, 3.0), (15.0, 8.0)]) == [(5.0, 2.0), (15.0, 1.0)]


def test_the_highest_reading_of_a_column_is_kept() -> None:
    assert resample([(0.0, 1.0), (1.0, 9.0), (2.0, 1.0), (100.0, 1.0)], 2) == [9.0, 1.0]


def test_a_reading_holds_until_the_next_but_not_over_a_hole() -> None:
    even = [(0.0, 1.0), (10.0, 2.0), (20.0, 3.0)]
    assert resample(even, 5) == [1.0, 1.0, 2.0, 2.0, 3.0]
    holed = [(float(at), 1.0) for at in (0, 1, 2, 3, 10)]
    assert resample(holed, 11) == [1.0, 1.0, 1.0, 1.0, *[None] * 6, 1.0]


@given(st.lists(st.tuples(FLOATS, FLOATS), max_size=30), st.integers(0, 60))
def test_resample_takes_any_trail(trail: list[tuple[float, float]], columns: int) -> None:
    assert len(resample(trail, columns)) == columns


def test_charts_need_two_readings() -> None:
    assert chart_lines(lambda _: (), 80) == []
    assert chart_lines(lambda _: ((0.0, 1.0),), 80) == []


def test_charts_show_the_last_value_and_stay_inside() -> None:
    kept = trails()
    lines = [line.plain for line in chart_lines(lambda quantity: kept.get(quantity, ()), 80)]
    assert lines[0].startswith(" History of 5m")
    assert lines[3].split()[:2] == ["waiting", "40"]
    assert max(len(line) for line in lines) <= 80
    assert any("⠤" in line or "⠒" in line for line in lines)


def test_tokens_counted_per_step_win_in_the_chart() -> None:
    kept = {
        Quantity.GENERATION_TOKENS: ((0.0, 0.0), (1.0, 5.0)),
        Quantity.GENERATION_TOKENS_LIVE: ((0.0, 0.0), (1.0, 7.0), (2.0, 14.0)),
    }
    speeds = [line.plain for line in chart_lines(lambda quantity: kept.get(quantity, ()), 80) if "tok/s" in line.plain]
    assert speeds[0].split()[:2] == ["tok/s", "7"]
