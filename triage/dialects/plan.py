"""What each line of a page of one shape means: compiled once per shape, applied at every scrape."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from triage.dialects.exposition import Series
from triage.dialects.table import Metric, Table, VersionMark
from triage.domain.histogram import Histogram
from triage.domain.quantity import TAKE_MAXIMUM, Form, Quantity, form_of
from triage.domain.reading import EngineReading, RankReading, Role
from triage.domain.text import clean

# Bytes read from memory at 10 TB/s for a thousand years are 3e23; nothing that engines count is larger.
_LARGEST = 1e24
_ROLES = {"prefill": Role.PREFILL, "decode": Role.DECODE}


class _Scalar(NamedTuple):
    """groups: indices into the page's values; copies inside a group, the groups are added or maximised."""

    quantity: Quantity
    groups: tuple[tuple[int, ...], ...]
    scale: float
    not_applicable: tuple[float, ...]


class _Info(NamedTuple):
    """A number in a label: (index of the series' value, number); the series with the largest value counts."""

    quantity: Quantity
    choices: tuple[tuple[int, float], ...]


class _Buckets(NamedTuple):
    """Finite upper edges, and the places of the cumulative counts, the sum and the count."""

    edges: tuple[float, ...]
    buckets: tuple[int, ...]
    sum_place: int
    count_place: int


class _Histogram(NamedTuple):
    quantity: Quantity
    parts: tuple[_Buckets, ...]
    scale: float


class EnginePlan(NamedTuple):
    """How to make one EngineReading out of the values of a page."""

    engine: str
    dialect: str
    version: str
    model: str
    role: Role
    scalars: tuple[_Scalar, ...]
    infos: tuple[_Info, ...]
    histograms: tuple[_Histogram, ...]
    finished: tuple[tuple[str, _Scalar], ...]
    ranks: tuple[tuple[str, tuple[_Scalar, ...]], ...]
    names: dict[Quantity, str]
    late: frozenset[Quantity]

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
        )


def _sane(value: float) -> bool:
    """A number that an engine can mean: no NaN, no infinity, and not so large that sums of such overflow."""
    return -_LARGEST <= value <= _LARGEST


def _number(scalar: _Scalar, values: Sequence[float]) -> float | None:
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


def _histogram(plan: _Histogram, values: Sequence[float]) -> Histogram:
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


class _Placed(NamedTuple):
    """One series of a page: its labels and its place among the values."""

    labels: dict[str, str]
    place: int


class PageIndex:
    """The series of one page by name."""

    def __init__(self, series: Iterable[Series]) -> None:
        self.by_name: dict[str, dict[tuple[tuple[str, str], ...], _Placed]] = defaultdict(dict)
        for place, (name, labels) in enumerate(series):
            # A series that stands twice is the last one's value, not the sum of both.
            self.by_name[name][tuple(sorted(labels.items()))] = _Placed(labels, place)
        self.families = frozenset(self.by_name) | frozenset(map(base_name, self.by_name))
        self.respelled = ("", "")

    def under(self, prefixes: tuple[str, ...]) -> "PageIndex":
        """The same page with names that begin with another of the prefixes spelled with the first one."""
        used = next((prefix for prefix in prefixes if any(name.startswith(prefix) for name in self.by_name)), "")
        if not used or used == prefixes[0]:
            return self
        spelled = PageIndex(())
        for name, series in self.by_name.items():
            spelled.by_name[prefixes[0] + name[len(used) :] if name.startswith(used) else name] = series
        spelled.families = frozenset(spelled.by_name) | frozenset(map(base_name, spelled.by_name))
        spelled.respelled = (prefixes[0], used)
        return spelled

    def divided(self, label: str, models: Iterable[str]) -> dict[str, "PageIndex"]:
        """For each model the series that name it, and those that name none.

        In one pass: looking through the whole page for each of its models took 2.5 s for 100 of them.
        """
        parts = {model: PageIndex(()) for model in models}
        for name, series in self.by_name.items():
            for identity, placed in series.items():
                named = placed.labels.get(label)
                for model in parts if named is None else (named,):
                    if model in parts:
                        parts[model].by_name[name][identity] = placed
        for part in parts.values():
            part.families, part.respelled = self.families, self.respelled
        return parts

    def as_exported(self, name: str) -> str:
        """The name as the page has it."""
        here, there = self.respelled
        return there + name[len(here) :] if here and name.startswith(here) else name

    def series(self, name: str) -> list[_Placed]:
        return list(self.by_name[name].values()) if name in self.by_name else []

    def has(self, name: str) -> bool:
        return name in self.families


def base_name(name: str) -> str:
    """The family behind a series: without the suffix that the text format adds."""
    for suffix in ("_bucket", "_count", "_sum", "_total", "_created"):
        if name.endswith(suffix):
            return name[: -len(suffix)]
    return name


def recognised(table: Table, index: PageIndex) -> bool:
    """Whether the page speaks this dialect: names decide, never a label's value or a flag."""
    rule, index = table.recognise, index.under(table.prefixes)
    present = [name for name in rule.any if index.has(name)]
    if not present or not all(map(index.has, rule.all)) or any(map(index.has, rule.none)):
        return False
    if not rule.label:
        return True
    label = rule.label.lstrip("!")
    carried = any(
        label in placed.labels
        for name in present
        for spelling in (name, f"{name}_total", f"{name}_count")
        for placed in index.series(spelling)
    )
    return carried != rule.label.startswith("!")


def compile_engine(table: Table, index: PageIndex) -> tuple[EnginePlan, ...]:
    """One plan for each model on the page."""
    index = index.under(table.prefixes)
    models: dict[str, None] = {}
    if table.model_label:
        for name, metric in ((n, m) for m in table.metrics.values() for n in m.names):
            for spelling in _spellings(name, metric):
                for placed in index.series(spelling):
                    if table.model_label in placed.labels:
                        models.setdefault(placed.labels[table.model_label])
    version = version_of(table.versions, index)
    parts = index.divided(table.model_label, models) if models else {"": index}
    return tuple(_compile_model(table, part, model, version) for model, part in parts.items())


def _spellings(name: str, metric: Metric) -> tuple[str, ...]:
    if metric.take == "count":
        return (f"{name}_count",)
    if metric.take == "sum":
        return (f"{name}_sum",)
    return (name, f"{name}_total", f"{name}_bucket", f"{name}_sum", f"{name}_count")


def _compile_model(table: Table, index: PageIndex, model: str, version: str) -> EnginePlan:
    def kept(placed: _Placed, metric: Metric) -> bool:
        labels = placed.labels
        if any(label in labels and labels[label] != value for label, value in table.drop.items()):
            return False
        return all(labels.get(label) == value for label, value in metric.where.items())

    scalars: list[_Scalar] = []
    infos: list[_Info] = []
    histograms: list[_Histogram] = []
    finished: list[tuple[str, _Scalar]] = []
    by_rank: dict[str, list[_Scalar]] = defaultdict(list)
    names: dict[Quantity, str] = {}
    role = table.role
    for quantity, metric in table.metrics.items():
        for name in metric.names:
            chosen, exported = _chosen(index, name, metric, lambda p, m=metric: kept(p, m))  # type: ignore[misc]
            if not exported:
                continue
            if metric.every:
                chosen = _all_of(index, metric, lambda p, m=metric: kept(p, m))  # type: ignore[misc]
            if form_of(quantity) is Form.HISTOGRAM:
                parts = _bucket_sets(index, name, table, lambda p, m=metric: kept(p, m))  # type: ignore[misc]
                if not parts:
                    continue
                histograms.append(_Histogram(quantity, parts, metric.scale))
            elif metric.label:
                choices = tuple((p.place, _label_number(p.labels.get(metric.label, ""))) for p in chosen)
                infos.append(_Info(quantity, choices))
            else:
                scalars.append(_scalar(quantity, metric, table, chosen))
                for reason, part in _split(chosen, metric.by):
                    finished.append((clean(reason, 60), _scalar(quantity, metric, table, part)))
                for label, part in _split_ranks(chosen, table):
                    by_rank[label].append(_scalar(quantity, metric, table, part))
                if table.role_label and role is Role.MIXED:
                    role = _ROLES.get(chosen[0].labels.get(table.role_label, ""), Role.MIXED)
            names[quantity] = index.as_exported(exported)
            break
    ranks = tuple((label, tuple(parts)) for label, parts in by_rank.items()) if len(by_rank) > 1 else ()
    return EnginePlan(
        table.engine,
        table.dialect,
        version,
        clean(model, 200),
        role,
        tuple(scalars),
        tuple(infos),
        tuple(histograms),
        tuple(finished),
        ranks,
        names,
        table.late,
    )


def _chosen(index: PageIndex, name: str, metric: Metric, kept: Callable[[_Placed], bool]) -> tuple[list[_Placed], str]:
    """The series behind a name and the name as exported; the first spelling with a series counts."""
    for spelling in _spellings(name, metric):
        found = [placed for placed in index.series(spelling) if kept(placed)]
        if found:
            return found, spelling.removesuffix("_bucket")
    return [], ""


def _all_of(index: PageIndex, metric: Metric, kept: Callable[[_Placed], bool]) -> list[_Placed]:
    """The series of every name, each marked with its name: equal labels under two names are no copies."""
    return [
        _Placed({**placed.labels, "__name__": name}, placed.place)
        for name in metric.names
        for placed in _chosen(index, name, metric, kept)[0]
    ]


def _scalar(quantity: Quantity, metric: Metric, table: Table, chosen: list[_Placed]) -> _Scalar:
    groups: dict[tuple[tuple[str, str], ...], list[int]] = defaultdict(list)
    for placed in chosen:
        identity = tuple(sorted((k, v) for k, v in placed.labels.items() if k not in table.copy_labels))
        groups[identity].append(placed.place)
    return _Scalar(quantity, tuple(map(tuple, groups.values())), metric.scale, metric.not_applicable)


def _split(chosen: list[_Placed], label: str) -> list[tuple[str, list[_Placed]]]:
    if not label:
        return []
    parts: dict[str, list[_Placed]] = defaultdict(list)
    for placed in chosen:
        parts[placed.labels.get(label, "")].append(placed)
    return list(parts.items())


def _split_ranks(chosen: list[_Placed], table: Table) -> list[tuple[str, list[_Placed]]]:
    parts: dict[str, list[_Placed]] = defaultdict(list)
    for placed in chosen:
        rank = [f"{label}={placed.labels[label]}" for label in table.rank_labels if label in placed.labels]
        if rank:
            parts[clean(",".join(rank), 60)].append(placed)
    return list(parts.items())


def _label_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(len([name for name in text.split(",") if name.strip()]))


def _bucket_sets(index: PageIndex, name: str, table: Table, kept: Callable[[_Placed], bool]) -> tuple[_Buckets, ...]:
    """One set of buckets per label set; of copies (see Table.copy_labels) only the first."""

    def identity(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
        return tuple(sorted((k, v) for k, v in labels.items() if k != "le"))

    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, int]]] = defaultdict(list)
    for placed in index.series(f"{name}_bucket"):
        if kept(placed):
            try:
                buckets[identity(placed.labels)].append((float(placed.labels.get("le", "nan")), placed.place))
            except ValueError:
                continue
    totals = {identity(p.labels): p.place for p in index.series(f"{name}_sum") if kept(p)}
    parts: dict[tuple[tuple[str, str], ...], _Buckets] = {}
    for placed in sorted(index.series(f"{name}_count"), key=lambda p: sorted(p.labels.items())):
        key = identity(placed.labels)
        if not kept(placed) or key not in totals:
            continue
        own = sorted(pair for pair in buckets.get(key, []) if not math.isnan(pair[0]))
        edges = tuple(edge for edge, _ in own if edge != math.inf)
        part = _Buckets(edges, tuple(place for _, place in own), totals[key], placed.place)
        parts.setdefault(tuple((k, v) for k, v in key if k not in table.copy_labels), part)
    return tuple(parts.values())


def version_of(marks: tuple[VersionMark, ...], index: PageIndex) -> str:
    """The bracket of releases that export what is on this page, such as '≥ 0.22.1'; '' when nothing tells."""
    since: list[str] = []
    before: list[str] = []
    for mark in marks:
        if not index.has(mark.name):
            continue
        if mark.label and not any(mark.label in placed.labels for placed in index.series(mark.name)):
            continue
        if mark.since:
            since.append(mark.since)
        if mark.before:
            before.append(mark.before)
    low = max(since, key=_version_key, default="")
    high = min(before, key=_version_key, default="")
    return ", ".join([f"≥ {low}"] * bool(low) + [f"< {high}"] * bool(high))


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
