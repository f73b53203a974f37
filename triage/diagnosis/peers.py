"""What is usual among the replicas of one model, seen from one of them."""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from triage.diagnosis.view import ReplicaView

Feature = Callable[[ReplicaView], float | None]


class Peers:
    """The replicas of one model.

    Each feature is sorted once, so that asking costs a look-up: every replica of a fleet that has just started asks
    what is usual among the others, and walking over them took 1 s for a thousand replicas and 100 s for ten thousand.
    """

    def __init__(self, views: Sequence[ReplicaView]) -> None:
        self._views = views
        self._ranked: dict[Feature, list[float]] = {}

    def usual(self, view: ReplicaView, feature: Feature) -> float | None:
        """Median of a feature over the others, or None when none of them has it. view: one of the replicas."""
        ranked = self._ranked.get(feature)
        if ranked is None:
            found = [value for other in self._views if (value := feature(other)) is not None]
            ranked = self._ranked[feature] = sorted(found)
        return _median_without(ranked, feature(view))


def _median_without(ranked: Sequence[float], left_out: float | None) -> float | None:
    """Median of ascending numbers, one of which is left out."""
    count = len(ranked) if left_out is None else len(ranked) - 1
    if count < 1:
        return None
    place = len(ranked) if left_out is None else bisect_left(ranked, left_out)
    low, high = (ranked[i + (i >= place)] for i in ((count - 1) // 2, count // 2))
    return (low + high) / 2
