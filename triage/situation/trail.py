"""An hour of one number, in few bytes."""

from array import array

# Points kept for the small history curves: an hour at 5 s is 720.
POINTS = 720
# Old points go in batches: moving the rest forward at every reading would cost more than these take.
_BATCH = 60


class Trail:
    """(unix seconds, value), oldest first.

    16 bytes a point. As tuples of floats they took a hundred, and each had to be visited by every full garbage
    collection: 270 MB for four quantities of 1,000 replicas.
    """

    def __init__(self) -> None:
        self._times = array("d")
        self._values = array("d")

    def add(self, at: float, value: float) -> None:
        if len(self._times) >= POINTS + _BATCH:
            del self._times[:_BATCH], self._values[:_BATCH]
        self._times.append(at)
        self._values.append(value)

    def points(self) -> tuple[tuple[float, float], ...]:
        """The newest ones, at most POINTS."""
        return tuple(zip(self._times[-POINTS:], self._values[-POINTS:], strict=True))
