"""Log-normal numbers, by what surveys report of them."""

import math
import random
from statistics import NormalDist

import msgspec

_P90 = NormalDist().inv_cdf(0.9)


class Spread(msgspec.Struct, frozen=True):
    """A log-normal number: its median, the sigma of its logarithm, and hard limits."""

    median: float
    sigma: float
    low: float
    high: float

    def draw(self, rng: random.Random) -> float:
        return min(max(rng.lognormvariate(math.log(self.median), self.sigma), self.low), self.high)

    def tokens(self, rng: random.Random) -> int:
        return round(self.draw(rng))

    def times(self, factor: float) -> "Spread":
        """The same spread around another median; limits move along."""
        return Spread(self.median * factor, self.sigma, self.low * factor, self.high * factor)


def by_p90(median: float, p90: float, low: float, high: float) -> Spread:
    """A spread with this median and this 90th percentile."""
    return Spread(median, math.log(p90 / median) / _P90, low, high)
