"""Cumulative histograms, and quantiles as the bucket interval they really are."""

from bisect import bisect_left

import msgspec

from triage.domain.absence import NOT_APPLICABLE, TOO_FEW, Number

# A mean of fewer than 5 observations, a p95 of fewer than 60, a p99 of fewer than 300 says
# nothing (diagnosis.md 4, gate 0).
MINIMUM_FOR_MEAN = 5
_MINIMUM_FOR_QUANTILE = {0.5: 5, 0.9: 30, 0.95: 60, 0.99: 300}


class Interval(msgspec.Struct, frozen=True, gc=False):
    """Where a quantile lies. `high` is infinity when it lies above the top finite bucket."""

    low: float
    high: float

    @property
    def open_ended(self) -> bool:
        return self.high == float("inf")


class Histogram(msgspec.Struct, frozen=True, gc=False):
    """Buckets as the page has them.

    edges: finite upper bounds, ascending. counts: cumulative, one per edge and a last one for
    +Inf. total: sum of observations in the quantity's unit. count: number of observations.
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    total: float
    count: float

    def mean(self, minimum: int = MINIMUM_FOR_MEAN) -> Number:
        """Sum over count; absent below `minimum` observations."""
        if self.count < max(minimum, 1):
            return TOO_FEW
        return self.total / self.count

    def quantile(self, q: float, minimum: int | None = None) -> Interval | None:
        """The bucket that holds the q-quantile, or None below the sample minimum or without buckets."""
        least = _MINIMUM_FOR_QUANTILE.get(q, 60) if minimum is None else minimum
        if self.count < max(least, 1) or not self.edges:
            return None
        rank = q * self.counts[-1]
        place = bisect_left(self.counts, rank)
        low = 0.0 if place == 0 else self.edges[place - 1]
        high = self.edges[place] if place < len(self.edges) else float("inf")
        return Interval(low, high)

    def share_above_top(self) -> Number:
        """Share of observations above the top finite bucket: there a quantile is only "at least"."""
        if not self.edges or self.count <= 0:
            return NOT_APPLICABLE
        return 1.0 - self.counts[-2] / self.counts[-1] if self.counts[-1] else NOT_APPLICABLE

    def minus(self, earlier: "Histogram") -> "Histogram | None":
        """What was observed between two readings, or None after a reset or with other buckets."""
        if self.count < earlier.count or self.total < earlier.total - 1e-9 * abs(earlier.total):
            return None
        total = max(self.total - earlier.total, 0.0)
        if self.edges != earlier.edges:
            return Histogram((), (), total, self.count - earlier.count)
        counts = tuple([b - a for a, b in zip(earlier.counts, self.counts, strict=True)])
        if counts and min(counts) < 0:
            return None
        return Histogram(self.edges, counts, total, self.count - earlier.count)

    def plus(self, other: "Histogram") -> "Histogram":
        """Both together; on different buckets only sum and count survive."""
        if self.edges == other.edges:
            counts = tuple([a + b for a, b in zip(self.counts, other.counts, strict=True)])
            return Histogram(self.edges, counts, self.total + other.total, self.count + other.count)
        return Histogram((), (), self.total + other.total, self.count + other.count)
