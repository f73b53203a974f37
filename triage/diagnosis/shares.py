"""Shares of time with an interval no narrower than what was counted."""

from collections.abc import Iterable, Sequence

from triage.domain.verdict import Share
from triage.domain.window import Track


def share_between(value: float, bounds: Iterable[float], requests: float, of: str) -> Share:
    """A share and the estimates around it, at least one request's share wide on either side.

    requests: how many it was counted over. One that came a moment later would have moved it by its own part.
    """
    step = 1.0 / max(requests, 1.0)
    bounds = (value, *bounds)
    return Share(value, max(min(*bounds, value - step), 0.0), min(max(*bounds, value + step), 1.0), of)


def gauge_bounds(part: Track, others: Sequence[Track | None]) -> tuple[float, float]:
    """Least and largest share of a gauge in its sum with others, over the readings: their extremes may coincide."""
    seen = [track for track in others if track is not None]
    return (
        _of(part.low, sum(track.high for track in seen)),
        _of(part.high, sum(track.low for track in seen)),
    )


def _of(part: float, others: float) -> float:
    return part / (part + others) if part > 0 else 0.0
