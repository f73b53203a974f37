"""What is usual for a replica: earlier windows, and which of them the present is compared with."""

from array import array
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from triage.domain.absence import known, value_or
from triage.domain.derived import generated, per_token
from triage.domain.histogram import Histogram
from triage.domain.monitoring import Past
from triage.domain.quantity import Quantity
from triage.domain.reading import EngineReading
from triage.domain.window import Track, Window
from triage.situation.windows import build_window, moments_of

# Own windows of ten minutes hold enough requests to be no accident; six of them, in which a replica needs 20 KB.
_OWN_S = 600.0
_OWN_KEPT = 6
OWN_NAME = "the last hour of watching"
# Half an hour of watching: with less, the means since the process started know more.
_OWN_LEAST = 3
# Of its own windows the one a quarter from the best: an incident must fill three quarters of them to look usual, and
# one lucky window does not set the measure.
_OWN_RANK = 4
# Fewer tokens or first tokens than these in a window, and its means are an accident.
_LEAST_TOKENS = 100.0
_LEAST_FIRST = 20.0
# A past that was itself this many times slower than the mean of all time is no measure: it was an incident too.
_ITSELF_SLOW = 1.5

# The speed of tokens and the batch it was measured at. First tokens and cache hits follow the load and the mix of
# requests, which change within an hour without anything being wrong: of these the same hour of another day tells.
_COUNTERS = (
    Quantity.GENERATION_TOKENS,
    Quantity.GENERATION_TOKENS_LIVE,
    Quantity.GENERATION_SECONDS,
    Quantity.ENGINE_STEPS,
    Quantity.DRAFTS,
    Quantity.ACCEPTED_TOKENS,
    Quantity.PROCESS_START,
)
_TIMES = (Quantity.ITL, Quantity.REQUEST_TPOT)


class Usual(NamedTuple):
    """An earlier window. name: where it comes from, as evidence says it."""

    window: Window
    name: str


class OwnPast:
    """Ten-minute windows of one replica's token speed, from what was scraped in this process; a few KB each."""

    def __init__(self) -> None:
        self._windows: deque[Window] = deque(maxlen=_OWN_KEPT)
        self._start: EngineReading | None = None
        self._at = 0.0
        self._running = array("d")

    def add(self, at: float, reading: EngineReading) -> None:
        """at: unix seconds, rising."""
        running = reading.values.get(Quantity.RUNNING)
        if self._start is None or at < self._at:
            self._begin(at, _slim(reading))
            return
        if running is not None:
            self._running.append(running)
        if at - self._at < _OWN_S:
            return
        slim = _slim(reading)
        window = build_window(moments_of([(self._at, self._start), (at, slim)]))
        self._windows.append(msgspec.structs.replace(window, gauges=_load(self._running)))
        self._begin(at, slim)

    def usual(self) -> Usual | None:
        """None before half an hour of windows with work in them."""
        worked = sorted(
            (value_or(per_token(window), 0.0), place) for place, window in enumerate(self._windows) if enough(window)
        )
        if len(worked) < _OWN_LEAST:
            return None
        return Usual(self._windows[worked[len(worked) // _OWN_RANK][1]], OWN_NAME)

    def _begin(self, at: float, reading: EngineReading) -> None:
        self._start, self._at, self._running = reading, at, array("d")


def _slim(reading: EngineReading) -> EngineReading:
    values = {quantity: reading.values[quantity] for quantity in _COUNTERS if quantity in reading.values}
    times = {
        quantity: Histogram((), (), found.total, found.count)
        for quantity in _TIMES
        if (found := reading.histograms.get(quantity)) is not None
    }
    return msgspec.structs.replace(
        reading, values=values, histograms=times, finished={}, ranks=(), not_applicable=frozenset()
    )


def _load(running: "array[float]") -> Mapping[Quantity, Track]:
    if not running:
        return {}
    mean = sum(running) / len(running)
    track = Track(running[0], running[-1], min(running), max(running), mean, len(running), running.count(0.0))
    return {Quantity.RUNNING: track}


class Pasts:
    """Windows that a monitoring server kept, by the replica they are of."""

    def __init__(self, pasts: Iterable[Past]) -> None:
        self._own: dict[tuple[str, str, str], list[Usual]] = {}
        for past in pasts:
            series: dict[tuple[str, str], list[EngineReading]] = {}
            for reading in past.readings:
                series.setdefault((reading.engine, reading.model), []).append(reading)
            for (engine, model), readings in series.items():
                window = build_window(moments_of([(reading.at or 0.0, reading) for reading in readings]))
                if enough(window):
                    self._own.setdefault((past.target, engine, model), []).append(Usual(window, past.name))

    def usual(self, target: str, engine: str, model: str) -> Usual | None:
        """The faster one of its own windows, so that yesterday's incident is not the measure.

        A replica that was not there then is compared with the middle one of its model's.
        """
        own = self._own.get((target, engine, model), [])
        if own:
            return min(own, key=_speed)
        others = sorted(
            [usual for key, kept in self._own.items() if key[1:] == (engine, model) for usual in kept], key=_speed
        )
        if not others:
            return None
        middle = others[(len(others) - 1) // 2]
        return Usual(middle.window, f"{middle.name}, other replicas of the model")


def choose(now: Window, candidates: Iterable[Usual | None]) -> Usual | None:
    """The first that can be compared with; candidates in the order of trust."""
    lifetime = now.lifetime_mean(Quantity.ITL)
    for usual in candidates:
        if usual is None:
            continue
        then = per_token(usual.window)
        if known(then) and known(lifetime) and then > _ITSELF_SLOW * lifetime:
            continue
        return usual
    return None


def enough(window: Window) -> bool:
    """There was so much work in it that its means mean something."""
    tokens, first = generated(window), window.delta(Quantity.TTFT)
    busy = known(tokens) and tokens >= _LEAST_TOKENS and known(per_token(window))
    return busy and (not known(first) or first >= _LEAST_FIRST)


def _speed(usual: Usual) -> float:
    return value_or(per_token(usual.window), float("inf"))
