"""The table says what was measured, and the exit code follows it."""

import pytest

from tests.bench.measure import growth
from tests.bench.row import against, duration, failed, grows, not_measured, table, within


def test_a_ratio_is_held_up_to_its_budget() -> None:
    assert against("a", 1.5, "b", 1.0, budget=1.5).held
    assert not against("a", 1.51, "b", 1.0, budget=1.5).held


def test_a_time_is_held_up_to_its_budget() -> None:
    assert within("a", 0.1, budget_s=0.1).held
    assert not within("a", 0.101, budget_s=0.1).held


def test_one_budget_that_is_not_held_fails_the_run_and_one_without_reference_does_not() -> None:
    held, broken = within("a", 1, budget_s=2), within("b", 3, budget_s=2)
    absent = not_measured("c", "≤ 1 ×", "some-package")
    assert not failed([held, absent])
    assert failed([held, absent, broken])


def test_a_missing_reference_is_named() -> None:
    row = table([not_measured("c", "≤ 1 ×", "some-package")]).splitlines()[2]
    assert "some-package is not installed" in row
    assert row.count("N/A") == 4


def test_every_row_has_a_cell_for_every_heading() -> None:
    lines = table([within("a", 1, budget_s=2), against("a", 1, "b", 2, budget=1)]).splitlines()
    assert {line.count("|") for line in lines} == {7}


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_growth_finds_the_power(power: float) -> None:
    sizes = (10, 100, 1000)
    assert growth(sizes, [3 * size**power for size in sizes]) == pytest.approx(power)


def test_quadratic_growth_is_not_held() -> None:
    assert grows("a", "lines", (1, 10, 100), (0.01, 0.1, 1.0)).held
    assert not grows("a", "lines", (1, 10, 100), (0.0001, 0.01, 1.0)).held


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.000212, "0.21 ms"), (0.084, "84 ms"), (0.9999, "1000 ms"), (1.3, "1.30 s")]
)
def test_durations_are_said_with_what_they_are_worth(seconds: float, said: str) -> None:
    assert duration(seconds) == said
