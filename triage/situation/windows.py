"""Rates and means between readings: reset-aware, gap-aware, never invented."""

from collections.abc import Mapping, Sequence

import msgspec

from triage.domain.histogram import Histogram
from triage.domain.quantity import COUNTERS, PROGRESS, Quantity
from triage.domain.reading import EngineReading, RankReading
from triage.domain.window import Track, Window

# An interval this many times longer than the usual one is a hole in the readings (lost scrapes).
GAP_FACTOR = 2.5
# A process start time that moves by less is rounding of the exporter.
_START_TOLERANCE_S = 1.5


class Moment(msgspec.Struct, frozen=True, gc=False):
    """A reading with the time it stands for. at: unix seconds, or seconds on an assumed axis.

    reset, restarted: whether it does not continue the reading before it; worked out once, by `follow`.
    """

    at: float
    reading: EngineReading
    reset: bool = False
    restarted: bool = False


def follow(before: Moment | None, at: float, reading: EngineReading) -> Moment:
    """The next moment of a series."""
    if before is None:
        return Moment(at, reading)
    reset, restarted = reset_between(before.reading, reading)
    return Moment(at, reading, reset, restarted)


def moments_of(timed: Sequence[tuple[float, EngineReading]]) -> list[Moment]:
    """A whole series at once, oldest first."""
    series: list[Moment] = []
    for at, reading in timed:
        series.append(follow(series[-1] if series else None, at, reading))
    return series


def build_window(moments: Sequence[Moment], *, assumed: bool = False, interval_s: float | None = None) -> Window:
    """The window over one replica's readings, oldest first, at least one.

    interval_s: the usual distance of readings, to tell a gap; None when every distance is meant.
    """
    first, last = moments[0], moments[-1]
    breaks, resets, restarted, gaps = _breaks(moments, interval_s)
    pieces = [
        (moments[a], moments[b])
        for a, b in zip([0, *breaks], [*(i - 1 for i in breaks), len(moments) - 1], strict=True)
        if b > a
    ]
    seconds = sum(end.at - start.at for start, end in pieces)
    deltas: dict[Quantity, float] = {}
    histograms: dict[Quantity, Histogram] = {}
    finished: dict[str, float] = {}
    ranks: dict[str, dict[Quantity, float]] = {}
    for start, end in pieces:
        _add_deltas(deltas, start.reading.values, end.reading.values)
        _add_histograms(histograms, start.reading, end.reading)
        for reason, value in end.reading.finished.items():
            # A labelled counter appears on first use: before that it was 0.
            finished[reason] = finished.get(reason, 0.0) + value - start.reading.finished.get(reason, 0.0)
        earlier = {rank.label: rank.values for rank in start.reading.ranks}
        for rank in end.reading.ranks:
            if rank.label in earlier:
                _add_deltas(ranks.setdefault(rank.label, {}), earlier[rank.label], rank.values)
    return Window(
        first=first.reading,
        last=last.reading,
        seconds=seconds,
        assumed=assumed,
        readings=len(moments),
        resets=resets,
        restarted=restarted,
        gaps=gaps,
        deltas=deltas,
        histograms=histograms,
        gauges=_tracks([moment.reading.values for moment in moments]),
        finished=finished,
        rank_gauges=_rank_tracks([moment.reading.ranks for moment in moments]),
        rank_deltas=ranks,
        quiet=_quiet(moments[breaks[-1] if breaks else 0 :]),
    )


def _breaks(moments: Sequence[Moment], interval_s: float | None) -> tuple[list[int], int, bool, int]:
    """Indices of readings that do not continue the one before, and how many for which reason."""
    breaks: list[int] = []
    resets = gaps = 0
    restarted = False
    for place in range(1, len(moments)):
        before, now = moments[place - 1], moments[place]
        gap = interval_s is not None and now.at - before.at > GAP_FACTOR * interval_s
        if now.reset or gap or now.at <= before.at:
            breaks.append(place)
            resets += now.reset
            gaps += gap and not now.reset
            restarted = restarted or now.restarted
    return breaks, resets, restarted, gaps


def reset_between(before: EngineReading, now: EngineReading) -> tuple[bool, bool]:
    """(some counter went back, the process is another one)."""
    old, new = before.values, now.values
    start_before, start_now = old.get(Quantity.PROCESS_START), new.get(Quantity.PROCESS_START)
    moved = start_before is not None and start_now is not None and start_now - start_before > _START_TOLERANCE_S
    back = any(new.get(q, value) < value for q, value in old.items() if q in COUNTERS) or any(
        q in now.histograms and now.histograms[q].count < histogram.count for q, histogram in before.histograms.items()
    )
    unknown = start_before is None or start_now is None
    return moved or back, moved or (back and unknown)


def _add_deltas(into: dict[Quantity, float], before: Mapping[Quantity, float], now: Mapping[Quantity, float]) -> None:
    for quantity, value in now.items():
        if quantity in COUNTERS:
            # Some counters do not exist until first used (SGLang): absent before means 0 before.
            into[quantity] = into.get(quantity, 0.0) + value - before.get(quantity, 0.0)


def _add_histograms(into: dict[Quantity, Histogram], before: EngineReading, now: EngineReading) -> None:
    for quantity, histogram in now.histograms.items():
        earlier = before.histograms.get(quantity)
        change = histogram if earlier is None else histogram.minus(earlier)
        if change is not None:
            known = into.get(quantity)
            into[quantity] = change if known is None else known.plus(change)


def _quiet(moments: Sequence[Moment]) -> dict[Quantity, float]:
    """Of readings without a break between them."""
    last = moments[-1]
    quiet: dict[Quantity, float] = {}
    for quantity in _WATCHED:
        value = _amount(last.reading, quantity)
        if value is None:
            continue
        since = moments[0].at
        for place in range(len(moments) - 2, -1, -1):
            before, after = [_amount(moment.reading, quantity) or 0.0 for moment in moments[place : place + 2]]
            # Memory is given back when clients leave, too; that more is taken is work.
            if after > before or (after != before and quantity is not Quantity.KV_USAGE):
                since = moments[place + 1].at
                break
        quiet[quantity] = last.at - since
    return quiet


# A long prompt moves no counter until its first token, but it takes KV blocks chunk by chunk (vLLM, SGLang).
_WATCHED = (*PROGRESS, Quantity.ENGINE_CPU, Quantity.KV_USAGE)


def _amount(reading: EngineReading, quantity: Quantity) -> float | None:
    """A counter, or how often a histogram was observed."""
    value = reading.values.get(quantity)
    if value is not None:
        return value
    histogram = reading.histograms.get(quantity)
    return histogram.count if histogram is not None else None


def _tracks(readings: Sequence[Mapping[Quantity, float]]) -> dict[Quantity, Track]:
    tracks: dict[Quantity, Track] = {}
    for quantity in readings[-1]:
        if quantity in COUNTERS:
            continue
        values = [values[quantity] for values in readings if quantity in values]
        tracks[quantity] = Track(
            first=values[0],
            last=values[-1],
            low=min(values),
            high=max(values),
            mean=sum(values) / len(values),
            n=len(values),
            zeros=values.count(0.0),
        )
    return tracks


def _rank_tracks(readings: Sequence[tuple[RankReading, ...]]) -> dict[str, dict[Quantity, Track]]:
    series: dict[str, list[Mapping[Quantity, float]]] = {}
    for ranks in readings:
        for rank in ranks:
            series.setdefault(rank.label, []).append(rank.values)
    return {label: _tracks(values) for label, values in series.items()}
