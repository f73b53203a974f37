"""Columns for a width, and the order of rows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.factory import busy, observe, queueing, status
from triage.domain.target import FailureReason, TargetState
from triage.tui.arrange import SORT_KEYS, WIDE, arranged, chosen, places
from triage.tui.cells import Cell, Column
from triage.tui.fleet import FleetRow, Level, fleet_rows


def row(name: str, level: Level = Level.WELL, waiting: float = 0.0, value: float | None = None) -> FleetRow:
    return FleetRow(name, name, "m", name, TargetState.OK, level, {Column.RUNNING: Cell("", value)}, waiting)


@given(st.integers(30, 300))
def test_columns_fill_the_width_exactly(width: int) -> None:
    assert sum(place.width for place in places(width)) + 2 == width


def test_eighty_columns_have_every_number() -> None:
    narrow = [place.column for place in places(80)]
    assert narrow == [
        Column.REPLICA,
        Column.STATE,
        Column.RUNNING,
        Column.WAITING,
        Column.KV,
        Column.TTFT95,
        Column.TOKEN_TIME,
        Column.SPEED,
        Column.HITS,
        Column.AGE,
    ]
    assert Column.MODEL in [place.column for place in places(WIDE)]
    assert Column.TTFT in [place.column for place in places(WIDE)]


def test_worst_first_then_longest_queue_then_name() -> None:
    rows = [
        row("b"),
        row("a-10"),
        row("a-9"),
        row("gone", Level.GONE),
        row("named", Level.NAMED),
        row("queue", waiting=40),
        row("over", Level.OVER_LIMIT),
    ]
    assert [item.name for item in arranged(rows)] == ["named", "gone", "over", "queue", "a-9", "a-10", "b"]


def test_one_request_more_or_less_moves_no_row() -> None:
    before = arranged([row("a", waiting=40), row("b", waiting=41)])
    after = arranged([row("a", waiting=42), row("b", waiting=41)])
    assert [item.name for item in before] == [item.name for item in after] == ["a", "b"]


@pytest.mark.parametrize("reverse", [False, True])
def test_unknown_values_come_last_both_ways(reverse: bool) -> None:
    rows = [row("none"), row("low", value=1.0), row("high", value=9.0), row("zero", value=0.0)]
    names = [item.name for item in arranged(rows, Column.RUNNING, reverse=reverse)]
    assert names == (["zero", "low", "high", "none"] if reverse else ["high", "low", "zero", "none"])


@pytest.mark.parametrize("by", list(SORT_KEYS.values()))
def test_every_sort_keeps_every_row(by: Column | None) -> None:
    observation = queueing()
    rows = fleet_rows(observation.situation, observation.diagnosis)
    for reverse in (False, True):
        assert sorted(item.key for item in arranged(rows, by, reverse=reverse)) == sorted(item.key for item in rows)


@given(st.lists(st.floats(allow_nan=True), max_size=12))
def test_odd_queue_lengths_do_not_break_the_order(waits: list[float]) -> None:
    rows = [row(f"r{index}", waiting=wait) for index, wait in enumerate(waits)]
    assert len(arranged(rows)) == len(rows)
    assert math.isfinite(len(arranged(rows, reverse=True)))


def test_filter_finds_name_model_state_and_reason() -> None:
    observation = observe(
        (),
        replicas=(busy("pod-a"), busy("pod-b", model="qwen")),
        targets=(
            status("pod-a"),
            status("pod-b"),
            status("pod-c", TargetState.DARK, reason=FailureReason.TLS, detail="certificate expired"),
        ),
    )
    rows = fleet_rows(observation.situation, observation.diagnosis)

    def found(needle: str) -> list[str]:
        return [item.target for item in chosen(rows, needle, faults_only=False)]

    assert found("POD-A") == ["pod-a"]
    assert found("qwen") == ["pod-b"]
    assert found("dark") == ["pod-c"]
    assert found("expired") == ["pod-c"]
    assert found("") == ["pod-a", "pod-b", "pod-c"]
    assert found("nothing") == []
    assert [item.target for item in chosen(rows, "", faults_only=True)] == ["pod-c"]
