"""From one replica's window to the cells of its row."""

import math
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from triage.domain.absence import Number, known
from triage.domain.derived import hit_share, last, per_token, speed
from triage.domain.quantity import Quantity
from triage.domain.window import Window
from triage.tui import numbers


class Column(StrEnum):
    """The value is the heading."""

    REPLICA = "replica"
    MODEL = "model"
    STATE = "state"
    RUNNING = "run"
    WAITING = "wait"
    KV = "kv%"
    TTFT = "ttft p50/p95"
    TTFT95 = "ttft95"
    TOKEN_TIME = "ms/tok"  # noqa: S105 - a heading, no secret
    SPEED = "tok/s"
    HITS = "hit%"
    AGE = "age"


class Cell(msgspec.Struct, frozen=True):
    """text: what is shown, a dash when unknown. value: what it sorts by. mark: one character or ""."""

    text: str
    value: float | None = None
    mark: str = ""


def cells(window: Window, age_s: float | None, marks: Mapping[Column, str]) -> dict[Column, Cell]:
    """All numeric cells of one replica; `marks` go behind the values they belong to."""
    run, queue, kv = last(window, Quantity.RUNNING), last(window, Quantity.WAITING), last(window, Quantity.KV_USAGE)
    token, rate, hit = per_token(window), speed(window), hit_share(window)
    ttft = window.histograms.get(Quantity.TTFT)
    middle, high = (ttft.quantile(0.5), ttft.quantile(0.95)) if ttft else (None, None)
    place = high.low if high else None
    both = f"{numbers.interval(middle)} / {numbers.interval(high)}" if middle or high else numbers.DASH
    assumed = "~" if window.assumed and known(rate) else ""
    found = {
        Column.RUNNING: Cell(numbers.count(run), _value(run)),
        Column.WAITING: Cell(numbers.count(queue), _value(queue)),
        Column.KV: Cell(numbers.percent(kv), _value(kv)),
        Column.TTFT: Cell(both, place),
        Column.TTFT95: Cell(numbers.interval(high), place),
        Column.TOKEN_TIME: Cell(numbers.milliseconds(token), _value(token)),
        Column.SPEED: Cell(assumed + numbers.count(rate), _value(rate)),
        Column.HITS: Cell(numbers.percent(hit), _value(hit)),
        Column.AGE: Cell(numbers.age(age_s), age_s),
    }
    for column, mark in marks.items():
        found[column] = Cell(found[column].text, found[column].value, mark)
    return found


def _value(number: Number) -> float | None:
    return number if known(number) and not math.isnan(number) else None
