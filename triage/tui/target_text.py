"""One target in full: every quantity with unit, source and age, and each histogram's intervals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from triage.domain.absence import NOT_APPLICABLE, NOT_EXPORTED, Absent, Number, known
from triage.domain.histogram import Histogram
from triage.domain.quantity import COUNTERS, HISTOGRAMS, OF_FRONT_ENDS, UNITS, Quantity
from triage.domain.reading import ProcessList, Role
from triage.domain.situation import Replica, TargetStatus
from triage.domain.text import clean
from triage.domain.window import Window
from triage.tui import look, numbers
from triage.tui.lines import labelled, line
from triage.tui.wording import fit, fold, pack

_GAUGES = tuple(quantity for quantity in Quantity if quantity not in COUNTERS and quantity not in HISTOGRAMS)
_NAME, _VALUE, _UNIT = 24, 9, 9


def target_lines(replica: Replica | None, status: TargetStatus | None, width: int) -> list[Text]:
    """Facts about the target first, then gauges, counters and histograms of the replica, if it has any."""
    lines = list(_facts(replica, status, width))
    if replica is None:
        return lines
    lines.extend([line(), *_table("Gauges", "now", _gauges(replica.window), replica, width)])
    lines.extend([line(), *_table("Counters", "per s", _counters(replica.window), replica, width)])
    return [*lines, line(), *_histograms(replica, width)]


def _facts(replica: Replica | None, status: TargetStatus | None, width: int) -> Iterator[Text]:
    if status is None and replica is None:
        yield line(("  no longer among the targets", look.NOTE))
        return
    target = status.target if status else replica.target if replica else None
    if target is not None and target.url:
        yield from _fact("address", target.url, width)
    if status is not None:
        answered = f", last answer {numbers.age(status.age_s)} ago" if status.age_s is not None else ""
        yield from _fact("state", f"{status.state.value}{answered}", width, look.STATE_STYLE[status.state])
        if status.failure is not None:
            yield from _fact("failure", str(status.failure), width, look.WARN)
        for problem in status.problems:
            yield from _fact("problem", problem, width, look.NOTE)
        if status.processes is not None:
            yield from _process_facts(status.processes, width)
        if replica is None and status.families:
            yield from _fact("page", f"{len(status.families)} metric families: {_some(status.families)}", width)
    if replica is not None:
        yield from _replica_facts(replica, width)


def _process_facts(told: ProcessList, width: int) -> Iterator[Text]:
    engine = " ".join(part for part in (told.engine, told.version) if part)
    yield from _fact("engine", f"{engine}: no metrics page, so neither queue nor times are known", width)
    for model in told.models or ("no model",):
        yield from _fact("loaded", str(model), width)


def _replica_facts(replica: Replica, width: int) -> Iterator[Text]:
    window = replica.window
    engine = " ".join(part for part in (window.last.engine, window.last.version) if part)
    yield from _fact("model", replica.model, width)
    yield from _fact("engine", f"{engine}, dialect {window.last.dialect}, role {window.last.role.value}", width)
    yield from _fact("source", window.last.source, width)
    covered = f"{numbers.age(window.seconds)} between {window.readings} readings"
    parts = ["one reading: no rates yet" if window.single else covered]
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


def _fact(label: str, text: str, width: int, style: Style = look.NORMAL) -> list[Text]:
    return labelled(label, fold(text, width - 14), 2, 11, style)


# One row of a table: what, its value, what stands beside it.
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
    """Known ones line by line; those without a value by their reason."""
    columns = f"{fit(column, _VALUE, right=True)} {fit('unit', _UNIT)}{fit('age', 7)}series"
    yield line((f" {fit(heading, _NAME)}", look.HEADING), (columns, look.LABEL))
    missing: dict[str, list[str]] = {}
    for quantity, value, beside in rows:
        if isinstance(value, Absent):
            if _missed(quantity, replica):
                missing.setdefault(_reason(value), []).append(quantity.value)
        else:
            yield from _quantity(quantity, value, beside, replica, width)
    yield from _missing(missing, width)


def _missed(quantity: Quantity, replica: Replica) -> bool:
    return replica.window.last.role is Role.FRONTEND or quantity not in OF_FRONT_ENDS


def _quantity(quantity: Quantity, value: float, beside: str, replica: Replica, width: int) -> Iterator[Text]:
    shown, unit = numbers.plain(value), UNITS.get(quantity, "")
    if quantity is Quantity.PROCESS_START and replica.window.last.at is not None:
        # Unix seconds say nothing to a person; how long the process has been running does.
        shown, unit = numbers.age(replica.window.last.at - value), "ago"
    row = line(
        f"   {fit(quantity.value, _NAME - 2)}",
        (fit(shown, _VALUE, right=True), look.BOLD),
        (f" {fit(unit, _UNIT)}{fit(numbers.age(replica.age_s), 7)}", look.DIM),
    )
    yield from _beside(row, [replica.window.last.names.get(quantity, ""), beside], width)


def _beside(row: Text, pieces: Iterable[str], width: int) -> Iterator[Text]:
    """What fits behind a row stands there, the rest below it: names of series are for copying, so uncut."""
    rest = [piece for piece in (clean(piece) for piece in pieces) if piece]
    text = " · ".join(rest)
    if row.cell_len + cell_len(text) <= width:
        yield row.append(text, look.DIM)
        return
    yield row
    yield from (line((f"       {below}", look.DIM)) for below in pack(rest, width - 7, 4))


def _reason(value: Absent) -> str:
    return f"{value.reason.value} ({value.why})" if value.why else value.reason.value


def _missing(names_by_reason: Mapping[str, Sequence[str]], width: int) -> Iterator[Text]:
    for reason, names in names_by_reason.items():
        for place, row in enumerate(fold(f"{numbers.DASH} {reason}: {', '.join(names)}", width - 6)):
            yield line((("   " if place == 0 else "     ") + row, look.DIM))


_HISTOGRAM_COLUMNS = (("mean", 8), ("p50", 10), ("p95", 10), ("p99", 10), ("n", 7), ("%>top", 7))


def _histograms(replica: Replica, width: int) -> Iterator[Text]:
    columns = "".join(fit(heading, room, right=True) for heading, room in _HISTOGRAM_COLUMNS)
    yield line((f" {fit('Histograms', _NAME)}", look.HEADING), (columns, look.LABEL))
    missing: dict[str, list[str]] = {}
    for quantity in Quantity:
        if quantity not in HISTOGRAMS:
            continue
        histogram = replica.window.histograms.get(quantity)
        if histogram is None and not _missed(quantity, replica):
            continue
        if histogram is None:
            mean = replica.window.mean(quantity)
            missing.setdefault(_reason(mean) if isinstance(mean, Absent) else "", []).append(quantity.value)
        else:
            yield from _histogram(quantity, histogram, replica, width)
    yield from _missing(missing, width)
    yield line(("   a quantile is the bucket it lies in; – where there are too few samples", look.DIM))


def _histogram(quantity: Quantity, histogram: Histogram, replica: Replica, width: int) -> Iterator[Text]:
    unit = UNITS.get(quantity, "")
    cells = (
        numbers.plain(histogram.mean()),
        *(numbers.interval(histogram.quantile(q), seconds=unit == "s") for q in (0.5, 0.95, 0.99)),
        numbers.count(histogram.count),
        numbers.percent(histogram.share_above_top()),
    )
    row = line(f"   {fit(quantity.value, _NAME - 2)}")
    for text, (_, room) in zip(cells, _HISTOGRAM_COLUMNS, strict=True):
        row.append(fit(text, room, right=True), look.DIM if text == numbers.DASH else look.NORMAL)
    row.append("  ")
    series = replica.window.last.names.get(quantity, "")
    yield from _beside(row, [unit, f"{numbers.age(replica.age_s)} old", series], width)
