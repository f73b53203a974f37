"""What each line of a page of one shape means, applied at every scrape."""

from collections.abc import Sequence
from typing import NamedTuple

from triage.domain.histogram import Histogram
from triage.domain.quantity import TAKE_MAXIMUM, Quantity
from triage.domain.reading import EngineReading, RankReading, Role

# Bytes read from memory at 10 TB/s for a thousand years are 3e23; nothing that engines count is larger.
_LARGEST = 1e24


class ScalarPlan(NamedTuple):
    """groups: indices into the page's values; copies inside a group, the groups are added or maximised."""

    quantity: Quantity
    groups: tuple[tuple[int, ...], ...]
    scale: float
    not_applicable: tuple[float, ...]


class InfoPlan(NamedTuple):
    """A number in a label: (index of the series' value, number); the series with the largest value counts."""

    quantity: Quantity
    choices: tuple[tuple[int, float], ...]


class BucketPlan(NamedTuple):
    """Finite upper edges, and the places of the cumulative counts, the sum and the count.

    Without edges and counts it is a mean alone: two plain counters.
    """

    edges: tuple[float, ...]
    buckets: tuple[int, ...]
    sum_place: int
    count_place: int


class HistogramPlan(NamedTuple):
    quantity: Quantity
    parts: tuple[BucketPlan, ...]
    scale: float


class EnginePlan(NamedTuple):
    """How to make one EngineReading out of the values of a page."""

    engine: str
    dialect: str
    version: str
    model: str
    role: Role
    scalars: tuple[ScalarPlan, ...]
    infos: tuple[InfoPlan, ...]
    histograms: tuple[HistogramPlan, ...]
    finished: tuple[tuple[str, ScalarPlan], ...]
    ranks: tuple[tuple[str, tuple[ScalarPlan, ...]], ...]
    names: dict[Quantity, str]
    late: frozenset[Quantity]
    lingering: frozenset[Quantity]
    via: str
    worker: str

    def joined(self, other: "EnginePlan") -> "EnginePlan":
        """This engine, completed by what another program on the same page says of it."""
        own = {s.quantity for s in self.scalars} | {i.quantity for i in self.infos}
        own |= {h.quantity for h in self.histograms}
        return self._replace(
            scalars=self.scalars + tuple(plan for plan in other.scalars if plan.quantity not in own),
            infos=self.infos + tuple(plan for plan in other.infos if plan.quantity not in own),
            histograms=self.histograms + tuple(plan for plan in other.histograms if plan.quantity not in own),
            names={**other.names, **self.names},
            late=self.late | (other.late - own),
            lingering=self.lingering | (other.lingering - own),
            via=self.via or other.via,
            worker=self.worker or other.worker,
        )

    def read(self, values: Sequence[float], target: str, source: str, at: float | None) -> EngineReading:
        numbers: dict[Quantity, float] = {}
        not_applicable: set[Quantity] = set()
        for scalar in self.scalars:
            value = _number(scalar, values)
            if value is None:
                not_applicable.add(scalar.quantity)
            else:
                numbers[scalar.quantity] = value
        for info in self.infos:
            numbers[info.quantity] = max((values[place], number) for place, number in info.choices)[1]
        histograms = {plan.quantity: _histogram(plan, values) for plan in self.histograms}
        finished = {reason: _number(scalar, values) or 0.0 for reason, scalar in self.finished}
        ranks = tuple(
            RankReading(label, {s.quantity: v for s in scalars if (v := _number(s, values)) is not None})
            for label, scalars in self.ranks
        )
        return EngineReading(
            target=target,
            source=source,
            at=at,
            engine=self.engine,
            dialect=self.dialect,
            version=self.version,
            model=self.model,
            role=self.role,
            values=numbers,
            histograms=histograms,
            finished=finished,
            ranks=ranks,
            not_applicable=frozenset(not_applicable),
            names=self.names,
            late=self.late,
            lingering=self.lingering,
            via=self.via,
            worker=self.worker,
        )


def _sane(value: float) -> bool:
    """A number that an engine can mean: no NaN, no infinity, and not so large that sums of such overflow."""
    return -_LARGEST <= value <= _LARGEST


def _number(scalar: ScalarPlan, values: Sequence[float]) -> float | None:
    groups = scalar.groups
    if len(groups) == 1 and len(groups[0]) == 1:
        value = values[groups[0][0]]
        return None if not _sane(value) or value in scalar.not_applicable else value * scalar.scale
    found = []
    for group in groups:
        usable = [v for v in (values[i] for i in group) if _sane(v) and v not in scalar.not_applicable]
        if usable:
            found.append(max(usable))
    if not found:
        return None
    return (max(found) if scalar.quantity in TAKE_MAXIMUM else sum(found)) * scalar.scale


def _histogram(plan: HistogramPlan, values: Sequence[float]) -> Histogram:
    scale = plan.scale
    whole: Histogram | None = None
    for part in plan.parts:
        count = values[part.count_place]
        total = values[part.sum_place] * scale
        counts = tuple([values[i] for i in part.buckets])
        # A broken exporter may drop the +Inf bucket or write NaN: then only sum and count are usable.
        usable = len(counts) == len(part.edges) + 1 and all(map(_sane, counts))
        edges = part.edges if scale == 1.0 else tuple(edge * scale for edge in part.edges)
        one = Histogram(
            edges if usable else (),
            counts if usable else (),
            total if _sane(total) else 0.0,
            count if _sane(count) else 0.0,
        )
        whole = one if whole is None else whole.plus(one)
    assert whole is not None
    return whole
