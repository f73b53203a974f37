"""From one replica's window to the cells of its row."""

import math
from collections.abc import Callable, Iterator, Mapping
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


class Cells(Mapping[Column, Cell]):
    """The numeric cells of one replica, each made when it is looked at: of a thousand rows forty are in sight.

    `marks` go behind the values they belong to.
    """

    def __init__(self, window: Window, age_s: float | None, marks: Mapping[Column, str]) -> None:
        self._window = window
        self._age_s = age_s
        self._marks = marks

    def __getitem__(self, column: Column) -> Cell:
        text, value = _MAKERS[column](self._window, self._age_s)
        return Cell(text, value, self._marks.get(column, ""))

    def __iter__(self) -> Iterator[Column]:
        return iter(_MAKERS)

    def __len__(self) -> int:
        return len(_MAKERS)


_Maker = Callable[[Window, float | None], tuple[str, float | None]]


def _gauge(quantity: Quantity, text: Callable[[Number], str]) -> _Maker:
    def maker(window: Window, _: float | None) -> tuple[str, float | None]:
        number = last(window, quantity)
        return text(number), _value(number)

    return maker


def _ttft(window: Window, _: float | None) -> tuple[str, float | None]:
    found = window.histograms.get(Quantity.TTFT)
    middle, high = (found.quantile(0.5), found.quantile(0.95)) if found else (None, None)
    both = f"{numbers.interval(middle)} / {numbers.interval(high)}" if middle or high else numbers.DASH
    return both, high.low if high else None


def _ttft95(window: Window, _: float | None) -> tuple[str, float | None]:
    found = window.histograms.get(Quantity.TTFT)
    high = found.quantile(0.95) if found else None
    return numbers.interval(high), high.low if high else None


def _token_time(window: Window, _: float | None) -> tuple[str, float | None]:
    seconds = per_token(window)
    return numbers.milliseconds(seconds), _value(seconds)


def _speed(window: Window, _: float | None) -> tuple[str, float | None]:
    rate = speed(window)
    assumed = "~" if window.assumed and known(rate) else ""
    return assumed + numbers.count(rate), _value(rate)


def _hits(window: Window, _: float | None) -> tuple[str, float | None]:
    share = hit_share(window)
    return numbers.percent(share), _value(share)


def _age(_: Window, age_s: float | None) -> tuple[str, float | None]:
    return numbers.age(age_s), age_s


_MAKERS: dict[Column, _Maker] = {
    Column.RUNNING: _gauge(Quantity.RUNNING, numbers.count),
    Column.WAITING: _gauge(Quantity.WAITING, numbers.count),
    Column.KV: _gauge(Quantity.KV_USAGE, numbers.percent),
    Column.TTFT: _ttft,
    Column.TTFT95: _ttft95,
    Column.TOKEN_TIME: _token_time,
    Column.SPEED: _speed,
    Column.HITS: _hits,
    Column.AGE: _age,
}


def _value(number: Number) -> float | None:
    return number if known(number) and not math.isnan(number) else None
