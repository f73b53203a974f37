"""What one model's part of a page holds of a table: series to plans."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeAlias

from triage.dialects.plan import BucketPlan, HistogramPlan, InfoPlan, ScalarPlan
from triage.dialects.series import PageIndex, Placed
from triage.dialects.table import Metric, Table
from triage.domain.quantity import Form, Quantity, form_of
from triage.domain.reading import Role
from triage.domain.text import clean

_ROLES = {"prefill": Role.PREFILL, "decode": Role.DECODE}
_Identity: TypeAlias = tuple[tuple[str, str], ...]


class Found:
    """Collects plans, one quantity at a time."""

    def __init__(self, table: Table, index: PageIndex) -> None:
        self.table = table
        self.index = index
        self.scalars: list[ScalarPlan] = []
        self.infos: list[InfoPlan] = []
        self.histograms: list[HistogramPlan] = []
        self.finished: list[tuple[str, ScalarPlan]] = []
        self.by_rank: dict[str, list[ScalarPlan]] = defaultdict(list)
        self.names: dict[Quantity, str] = {}
        self.role = table.role
        self.worker = ""

    def take(self, quantity: Quantity, metric: Metric, name: str) -> bool:
        """Whether the page has the quantity under this name; then it is taken."""
        chosen, exported = self._chosen(name, metric)
        if not exported:
            return False
        if metric.every:
            chosen = self._all_of(metric)
        if form_of(quantity) is Form.HISTOGRAM:
            parts = self._pair(chosen, metric) if metric.count else self._bucket_sets(name, metric)
            if not parts:
                return False
            self.histograms.append(HistogramPlan(quantity, parts, metric.scale))
        elif metric.label:
            choices = [(p.place, _label_number(p.labels[metric.label])) for p in chosen if metric.label in p.labels]
            usable = tuple((place, number) for place, number in choices if number is not None)
            if not usable:
                return False
            self.infos.append(InfoPlan(quantity, usable))
        else:
            self._take_scalar(quantity, metric, chosen)
        self.names[quantity] = self.index.as_exported(exported)
        if self.table.worker_label and not self.worker:
            self.worker = clean(chosen[0].labels.get(self.table.worker_label, ""), 60)
        return True

    def _take_scalar(self, quantity: Quantity, metric: Metric, chosen: list[Placed]) -> None:
        table = self.table
        self.scalars.append(_scalar(quantity, metric, table, chosen))
        if metric.by:
            for reason, part in _split(chosen, lambda labels: labels.get(metric.by, "")):
                self.finished.append((clean(reason, 60), _scalar(quantity, metric, table, part)))
        for label, part in _split(chosen, lambda labels: _rank(labels, table.rank_labels)):
            if label:
                self.by_rank[clean(label, 60)].append(_scalar(quantity, metric, table, part))
        if table.role_label and self.role is Role.MIXED:
            self.role = _ROLES.get(chosen[0].labels.get(table.role_label, ""), Role.MIXED)

    def _kept(self, placed: Placed, metric: Metric) -> bool:
        labels = placed.labels
        if any(label in labels and labels[label] != value for label, value in self.table.drop.items()):
            return False
        return all(labels.get(label) == value for label, value in metric.where.items())

    def _chosen(self, name: str, metric: Metric) -> tuple[list[Placed], str]:
        """The series behind a name and the name as exported; the first spelling with a series counts."""
        if not self.index.has(name):
            return [], ""
        for spelling in _spellings(name, metric):
            found = [placed for placed in self.index.series(spelling) if self._kept(placed, metric)]
            if found:
                return found, spelling.removesuffix("_bucket")
        return [], ""

    def _all_of(self, metric: Metric) -> list[Placed]:
        """The series of every name, each marked with its name: equal labels under two names are no copies."""
        return [
            Placed({**placed.labels, "__name__": name}, placed.place)
            for name in metric.names
            for placed in self._chosen(name, metric)[0]
        ]

    def _pair(self, sums: list[Placed], metric: Metric) -> tuple[BucketPlan, ...]:
        """A sum and a count that the page has as two counters, for each label set that has both."""
        counts = {_identity(placed.labels): placed.place for placed in self._chosen(metric.count, metric)[0]}
        return tuple(
            BucketPlan((), (), placed.place, counts[key])
            for placed in sums
            if (key := _identity(placed.labels)) in counts
        )

    def _bucket_sets(self, name: str, metric: Metric) -> tuple[BucketPlan, ...]:
        """One set of buckets per label set; of copies (see Table.copy_labels) only the first."""
        buckets: dict[_Identity, list[tuple[float, int]]] = defaultdict(list)
        for placed in self.index.series(f"{name}_bucket"):
            if self._kept(placed, metric):
                try:
                    buckets[_identity(placed.labels)].append((float(placed.labels.get("le", "nan")), placed.place))
                except ValueError:
                    continue
        totals = {_identity(p.labels): p.place for p in self.index.series(f"{name}_sum") if self._kept(p, metric)}
        parts: dict[_Identity, BucketPlan] = {}
        for placed in sorted(self.index.series(f"{name}_count"), key=lambda p: sorted(p.labels.items())):
            key = _identity(placed.labels)
            if not self._kept(placed, metric) or key not in totals:
                continue
            own = sorted(pair for pair in buckets.get(key, []) if not math.isnan(pair[0]))
            edges = tuple(edge for edge, _ in own if edge != math.inf)
            part = BucketPlan(edges, tuple(place for _, place in own), totals[key], placed.place)
            parts.setdefault(tuple((k, v) for k, v in key if k not in self.table.copy_labels), part)
        return tuple(parts.values())


def _spellings(name: str, metric: Metric) -> tuple[str, ...]:
    if metric.take == "count":
        return (f"{name}_count",)
    if metric.take == "sum":
        return (f"{name}_sum",)
    return every_spelling(name)


def every_spelling(name: str) -> tuple[str, ...]:
    """How the series behind a name may be called in the text format."""
    return (name, f"{name}_total", f"{name}_bucket", f"{name}_sum", f"{name}_count")


def _scalar(quantity: Quantity, metric: Metric, table: Table, chosen: list[Placed]) -> ScalarPlan:
    groups: dict[_Identity, list[int]] = defaultdict(list)
    for placed in chosen:
        groups[tuple(sorted((k, v) for k, v in placed.labels.items() if k not in table.copy_labels))].append(
            placed.place
        )
    return ScalarPlan(quantity, tuple(map(tuple, groups.values())), metric.scale, metric.not_applicable)


def _identity(labels: dict[str, str]) -> _Identity:
    return tuple(sorted((k, v) for k, v in labels.items() if k != "le"))


def _split(chosen: list[Placed], key: Callable[[dict[str, str]], str]) -> Iterable[tuple[str, list[Placed]]]:
    parts: dict[str, list[Placed]] = defaultdict(list)
    for placed in chosen:
        parts[key(placed.labels)].append(placed)
    return parts.items()


def _rank(labels: dict[str, str], rank_labels: tuple[str, ...]) -> str:
    return ",".join(f"{label}={labels[label]}" for label in rank_labels if label in labels)


def _label_number(text: str) -> float | None:
    """The number in a label, or how many names a list in it has; None where it says that there is none."""
    if text == "None":
        return None
    try:
        number = float(text)
    except ValueError:
        return float(len([name for name in text.split(",") if name.strip()]))
    return number if math.isfinite(number) else None
