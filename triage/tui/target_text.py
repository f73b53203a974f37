"""One target in full: every quantity with unit, source and age, and each histogram's intervals."""

from collections.abc import Iterable, Iterator, Sequence

from rich.style import Style
from rich.text import Text

from triage.domain.absence import NOT_APPLICABLE, NOT_EXPORTED, Absent, Number, known
from triage.domain.quantity import COUNTERS, HISTOGRAMS, UNITS, Quantity
from triage.domain.situation import Replica, TargetStatus
from triage.domain.window import Window
from triage.tui import look, numbers
from triage.tui.wording import fit, fold

_GAUGES = tuple(quantity for quantity in Quantity if quantity not in COUNTERS and quantity not in HISTOGRAMS)
_NAME, _VALUE, _UNIT = 24, 9, 11


def target_lines(replica: Replica | None, status: TargetStatus | None, width: int) -> list[Text]:
    """Facts about the target first, then gauges, counters and histograms of the replica, if it has any."""
    lines = list(_facts(replica, status, width))
    if replica is None:
        return lines
    lines.extend([Text(), *_table("Gauges", "now", _gauges(replica.window), replica, width)])
    lines.extend([Text(), *_table("Counters", "per s", _counters(replica.window), replica, width)])
    return [*lines, Text(), *_histograms(replica, width)]


def _facts(replica: Replica | None, status: TargetStatus | None, width: int) -> Iterator[Text]:
    if status is None and replica is None:
        yield Text("  no longer among the targets", style=look.NOTE)
        return
    target = status.target if status else replica.target if replica else None
    if target is not None and target.url:
        yield from _fact("address", target.url, width)
    if status is not None:
        answered = f", last answer {numbers.age(status.age_s)} ago" if status.age_s is not None else ""
        yield from _fact("state", f"{status.state.value}{answered}", width, look.STATE_STYLE[status.state])
        if status.failure is not None:
            yield from _fact("failure", str(status.failure), width, look.WARN)
        if status.unchanged_s is not None:
            yield from _fact("unchanged", f"page the same to the letter for {numbers.age(status.unchanged_s)}", width)
        for problem in status.problems:
            yield from _fact("problem", problem, width, look.NOTE)
        if replica is None and status.families:
            yield from _fact("page", f"{len(status.families)} metric families: {_some(status.families)}", width)
    if replica is not None:
        yield from _replica_facts(replica, width)


def _replica_facts(replica: Replica, width: int) -> Iterator[Text]:
    window = replica.window
    engine = " ".join(part for part in (window.last.engine, window.last.version) if part)
    yield from _fact("model", replica.model, width)
    yield from _fact("engine", f"{engine}, dialect {window.last.dialect}, role {window.last.role.value}", width)
    yield from _fact("source", window.last.source, width)
    parts = [f"{numbers.age(window.seconds)} of {window.readings} readings"]
    parts.append("interval assumed" if window.assumed else "")
    parts.append(f"{window.resets} counter resets" if window.resets else "")
    parts.append("process restarted inside" if window.restarted else "")
    parts.append(f"{window.gaps} gaps" if window.gaps else "")
    yield from _fact("window", ", ".join(part for part in parts if part), width)
    yield from _fact("age", numbers.age(replica.age_s), width)
    if window.finished:
        reasons = ", ".join(f"{reason} {numbers.count(number)}" for reason, number in sorted(window.finished.items()))
        yield from _fact("finished", reasons, width)


def _some(families: Iterable[str], limit: int = 6) -> str:
    names = sorted(families)
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def _fact(label: str, text: str, width: int, style: Style = look.NORMAL) -> Iterator[Text]:
    for place, row in enumerate(fold(text, width - 14)):
        line = Text(f"  {label if place == 0 else '':<11}", style=look.LABEL, no_wrap=True)
        line.append(row, look.NORMAL if style is look.NORMAL else style)
        yield line


# One row of a table: what, its value, what stands beside it, or why there is no value.
_Row = tuple[Quantity, Number, str]


def _gauges(window: Window) -> Iterator[_Row]:
    for quantity in _GAUGES:
        track = window.gauge(quantity)
        if track is None:
            gone = quantity in window.last.not_applicable
            yield quantity, window.last.values.get(quantity, NOT_APPLICABLE if gone else NOT_EXPORTED), ""
        else:
            ranged = track.n > 1 and track.low != track.high
            beside = f"{numbers.plain(track.low)}–{numbers.plain(track.high)} in {track.n} readings" if ranged else ""
            yield quantity, track.last, beside


def _counters(window: Window) -> Iterator[_Row]:
    for quantity in Quantity:
        if quantity in COUNTERS:
            increase = window.delta(quantity)
            beside = f"+{numbers.plain(increase)} in window" if known(increase) else ""
            yield quantity, window.rate(quantity), beside


def _table(heading: str, column: str, rows: Iterable[_Row], replica: Replica, width: int) -> Iterator[Text]:
    """Known ones first, then those without a value with the reason."""
    listed = sorted(rows, key=lambda row: not known(row[1]))
    line = Text(f" {fit(heading, _NAME)}", style=look.HEADING, no_wrap=True)
    line.append(fit(column, _VALUE, right=True), look.LABEL)
    line.append(f" {fit('unit', _UNIT)}{fit('age', 7)}", look.LABEL)
    line.append("series", look.LABEL)
    yield line
    for quantity, value, beside in listed:
        yield _quantity(quantity, value, beside, replica, width)


def _quantity(quantity: Quantity, value: Number, beside: str, replica: Replica, width: int) -> Text:
    line = Text(f"   {fit(quantity.value, _NAME - 2)}", no_wrap=True, overflow="crop")
    line.append(fit(numbers.plain(value), _VALUE, right=True), look.BOLD if known(value) else look.DIM)
    if isinstance(value, Absent):
        line.append(f" {value.reason.value}{f': {value.why}' if value.why else ''}", look.DIM)
        return line
    unit = UNITS.get(quantity, "")
    line.append(f" {fit(unit, _UNIT)}{fit(numbers.age(replica.age_s), 7)}", look.DIM)
    source = replica.window.last.names.get(quantity, "")
    rest = " · ".join(part for part in (source, beside) if part)
    line.append(fit(rest, max(width - line.cell_len, 0)))
    return line


def _histograms(replica: Replica, width: int) -> Iterator[Text]:
    line = Text(f" {fit('Histograms', 18)}", style=look.HEADING, no_wrap=True)
    for heading, room in _HISTOGRAM_COLUMNS:
        line.append(fit(heading, room, right=True), look.LABEL)
    line.append("  unit   series", look.LABEL)
    yield line
    missing: list[tuple[Quantity, str]] = []
    for quantity in Quantity:
        if quantity not in HISTOGRAMS:
            continue
        histogram = replica.window.histograms.get(quantity)
        if histogram is None:
            mean = replica.window.mean(quantity)
            missing.append((quantity, mean.reason.value if isinstance(mean, Absent) else ""))
            continue
        seconds = UNITS.get(quantity) == "s"
        cells: Sequence[str] = (
            numbers.plain(histogram.mean()),
            *(numbers.interval(histogram.quantile(q), seconds=seconds) for q in (0.5, 0.95, 0.99)),
            numbers.count(histogram.count),
            numbers.percent(histogram.share_above_top()),
        )
        line = Text(f"   {fit(quantity.value, 16)}", no_wrap=True, overflow="crop")
        for text, (_, room) in zip(cells, _HISTOGRAM_COLUMNS, strict=True):
            line.append(fit(text, room, right=True), look.DIM if text == numbers.DASH else look.NORMAL)
        line.append(f"  {fit(UNITS.get(quantity, ''), 7)}", look.DIM)
        line.append(fit(replica.window.last.names.get(quantity, ""), max(width - line.cell_len, 0)))
        yield line
    for quantity, why in missing:
        line = Text(f"   {fit(quantity.value, 16)}", no_wrap=True)
        line.append(fit(numbers.DASH, _HISTOGRAM_COLUMNS[0][1], right=True) + f"  {why}", look.DIM)
        yield line
    yield Text("   a quantile is the bucket it lies in; – where there are too few samples", style=look.DIM)


_HISTOGRAM_COLUMNS = (("mean", 8), ("p50", 11), ("p95", 11), ("p99", 11), ("n", 7), ("%>top", 7))
