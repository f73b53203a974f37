"""From one replica's window to the cells of its row. Every derived number of the table is here."""

import math
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from triage.domain.absence import NO_WINDOW, NOT_EXPORTED, Number, known
from triage.domain.histogram import MINIMUM_FOR_MEAN
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


def last(window: Window, quantity: Quantity) -> Number:
    """A gauge at the last reading."""
    track = window.gauge(quantity)
    return NOT_EXPORTED if track is None else track.last


def waiting(window: Window) -> Number:
    """Requests in the engine's own queue at the last reading."""
    return last(window, Quantity.WAITING)


def first_token(window: Window) -> Number:
    """Mean seconds to the first token, as the engine counts it (hidden reasoning included)."""
    return window.mean(Quantity.TTFT)


def token_time(window: Window) -> Number:
    """Mean seconds per output token: from the inter-token histogram, else per request, else from counters."""
    inter_token = window.mean(Quantity.ITL)
    if known(inter_token):
        return inter_token
    per_request = window.mean(Quantity.REQUEST_TPOT)
    if known(per_request):
        return per_request
    seconds, tokens = window.delta(Quantity.GENERATION_SECONDS), window.delta(Quantity.GENERATION_TOKENS)
    if known(seconds) and known(tokens) and tokens >= MINIMUM_FOR_MEAN:
        return seconds / tokens
    return inter_token


def speed(window: Window) -> Number:
    """Output tokens per second; a counter that moves per step wins over one that moves at finish."""
    live = window.rate(Quantity.GENERATION_TOKENS_LIVE)
    return live if known(live) else window.rate(Quantity.GENERATION_TOKENS)


def hit_share(window: Window) -> Number:
    """Prefix cache hits over queries inside the window, else the engine's own gauge; 0..1."""
    queries, hits = window.delta(Quantity.PREFIX_QUERIES), window.delta(Quantity.PREFIX_HITS)
    if known(queries) and known(hits):
        return hits / queries if queries > 0 else NO_WINDOW
    return last(window, Quantity.HIT_RATE)


def cells(window: Window, age_s: float | None, marks: Mapping[Column, str]) -> dict[Column, Cell]:
    """All numeric cells of one replica; `marks` go behind the values they belong to."""
    run, queue, kv = last(window, Quantity.RUNNING), waiting(window), last(window, Quantity.KV_USAGE)
    token, rate, hit = token_time(window), speed(window), hit_share(window)
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
