"""The Prometheus text format, as the Python client library writes it for the real engines."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache

# One sample: its labels as `labels()` wrote them, and its value.
Sample = tuple[str, float]


def labels(**pairs: str) -> str:
    """Label pairs in alphabetical order, as they stand between the braces."""
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in sorted(pairs.items())])


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def number(value: float) -> str:
    """A float as Go prints it: the exponent starts at a million."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    text = repr(float(value))
    if value < _LARGE or "e" in text:
        return text
    whole, _, fraction = text.partition(".")
    digits = (whole[1:] + fraction).rstrip("0")
    return f"{whole[0]}{'.' if digits else ''}{digits}e+{len(whole) - 1:02d}"


# From here on a number is printed with an exponent.
_LARGE = 1e6


def processor_seconds(age_s: float, tokens: int) -> float:
    """CPU time of an engine's front-end process, in the kernel's hundredths of a second.

    6.7 s of imports and 0.1 s in 30 s of being scraped are vLLM 0.32.0's; 60 us for a token sent is our assumption.
    """
    return round(6.7 + 0.0033 * max(age_s, 0.0) + 6.0e-5 * tokens, 2)


@lru_cache(maxsize=2048)
def _bucket_heads(name: str, where: str, edges: tuple[float, ...]) -> tuple[str, ...]:
    return tuple([f'{name}_bucket{{{where},le="{edge}"}} ' for edge in [*map(number, edges), "+Inf"]])


class LiveHistogram:
    """Observations by bucket. edges: finite upper bounds, ascending; a value equal to one lies below it."""

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = tuple(edges)
        self.counts = [0] * (len(self.edges) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.edges, value)] += times
        self.total += value * times

    def observe_even(self, first: float, last: float, values: int, times: int) -> None:
        """So many values from `first` to `last` at even distances, each so many times."""
        low, high = min(first, last), max(first, last)
        place, end = bisect_left(self.edges, low), bisect_left(self.edges, high)
        self.total += 0.5 * (first + last) * values * times
        done = 0
        apart = (high - low) / (values - 1) if values > 1 else 0.0
        while place < end:
            below = min(int((self.edges[place] - low) / apart) + 1, values)
            self.counts[place] += (below - done) * times
            done = below
            place += 1
        self.counts[end] += (values - done) * times

    def cumulative(self) -> list[int]:
        """One count per edge and a last one for +Inf."""
        running = 0
        sums = []
        for count in self.counts:
            running += count
            sums.append(running)
        return sums


class Page:
    """One metrics page under construction.

    created: unix seconds for the `_created` series that the client library adds to counters and
    histograms of a single process, or None where they are switched off (several processes).
    """

    def __init__(self, created: float | None) -> None:
        self._created = created
        self._lines: list[str] = []

    def gauge(self, name: str, about: str, samples: Iterable[Sample]) -> None:
        self._family(name, about, "gauge", samples)

    def counter(self, name: str, about: str, samples: Sequence[Sample], *, births: bool = True) -> None:
        """`name` without `_total`. A counter without samples has not been used and is left out.

        births: False for what the client library tells of the process itself.
        """
        if not samples:
            return
        self._family(f"{name}_total", about, "counter", samples)
        if births:
            self._births(name, about, [where for where, _ in samples])

    def histogram(self, name: str, about: str, series: Sequence[tuple[str, LiveHistogram]]) -> None:
        if not series:
            return
        self._head(name, about, "histogram")
        for where, histogram in series:
            counts = histogram.cumulative()
            heads = _bucket_heads(name, where, histogram.edges)
            if counts[-1] < _LARGE:
                self._lines += [f"{head}{count}.0" for head, count in zip(heads, counts, strict=True)]
            else:
                self._lines += [head + number(count) for head, count in zip(heads, counts, strict=True)]
            self._lines.append(f"{name}_count{{{where}}} {number(counts[-1])}")
            self._lines.append(f"{name}_sum{{{where}}} {number(histogram.total)}")
        self._births(name, about, [where for where, _ in series])

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def _head(self, name: str, about: str, kind: str) -> None:
        self._lines.append(f"# HELP {name} {about}")
        self._lines.append(f"# TYPE {name} {kind}")

    def _family(self, name: str, about: str, kind: str, samples: Iterable[Sample]) -> None:
        self._head(name, about, kind)
        self._lines += [
            f"{name}{{{where}}} {number(value)}" if where else f"{name} {number(value)}" for where, value in samples
        ]

    def _births(self, name: str, about: str, places: Iterable[str]) -> None:
        if self._created is not None:
            self._family(f"{name}_created", about, "gauge", [(where, self._created) for where in places])
