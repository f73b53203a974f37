"""Two or more moments of one target, and what changed between them."""

from collections.abc import Mapping

import msgspec

from triage.domain.absence import NO_WINDOW, NOT_EXPORTED, Absent, Missing, Number, known
from triage.domain.histogram import MINIMUM_FOR_MEAN, Histogram
from triage.domain.quantity import Quantity
from triage.domain.reading import EngineReading


class Track(msgspec.Struct, frozen=True, gc=False):
    """A gauge over the window: first and last value, extremes, plain mean, number of readings, of these at zero."""

    first: float
    last: float
    low: float
    high: float
    mean: float
    n: int
    zeros: int = 0


class Window(msgspec.Struct, frozen=True, gc=False):
    """What one replica did between `first` and `last`.

    seconds: time covered by usable intervals; intervals with a counter reset or a gap are left
    out of it and of every delta. assumed: the interval is not in the evidence but the default.
    readings: how many scrapes. deltas: counter increases. histograms: what was observed inside.
    resets: counters went back; restarted: the process start time changed as well.
    quiet: seconds between the last increase and the last reading, for counters of work, CPU time and KV use.
    """

    first: EngineReading
    last: EngineReading
    seconds: float
    assumed: bool
    readings: int
    resets: int
    restarted: bool
    gaps: int
    deltas: Mapping[Quantity, float]
    histograms: Mapping[Quantity, Histogram]
    gauges: Mapping[Quantity, Track]
    finished: Mapping[str, float]
    rank_gauges: Mapping[str, Mapping[Quantity, Track]]
    rank_deltas: Mapping[str, Mapping[Quantity, float]]
    quiet: Mapping[Quantity, float] = {}

    @property
    def single(self) -> bool:
        """Only one reading: gauges are known, nothing can be said about change."""
        return self.readings < 2

    def delta(self, quantity: Quantity) -> Number:
        """Increase of a counter, or of a histogram's count."""
        value = self.deltas.get(quantity)
        if value is not None:
            return value
        histogram = self.histograms.get(quantity)
        if histogram is not None:
            return histogram.count
        return self._why(quantity)

    def rate(self, quantity: Quantity) -> Number:
        """Increase per second over the usable part of the window."""
        value = self.delta(quantity)
        if not known(value):
            return value
        return value / self.seconds if self.seconds > 0 else NO_WINDOW

    def mean(self, quantity: Quantity, minimum: int = MINIMUM_FOR_MEAN) -> Number:
        """Mean of a histogram over the window, in the quantity's unit."""
        histogram = self.histograms.get(quantity)
        return self._why(quantity) if histogram is None else histogram.mean(minimum)

    def lifetime_mean(self, quantity: Quantity, minimum: int = 60) -> Number:
        """Mean since the process started up to the window's first reading: what was normal before."""
        histogram = self.first.histograms.get(quantity)
        return NOT_EXPORTED if histogram is None else histogram.mean(minimum)

    def gauge(self, quantity: Quantity) -> Track | None:
        return self.gauges.get(quantity)

    def _why(self, quantity: Quantity) -> Absent:
        exported = quantity in self.last.values or quantity in self.last.histograms
        if not exported:
            return NOT_EXPORTED
        if self.single:
            return NO_WINDOW
        if self.resets:
            return Absent(Missing.RESET, "the process restarted inside the window")
        return Absent(Missing.GAP) if self.gaps else NO_WINDOW
