"""One log to one LogReading.

The whole text is searched for literal words first, at the speed of memory; only lines that have one
are looked at closely. 100 MB take seconds.
"""

from collections import Counter, deque
from typing import NamedTuple, TypeAlias

from triage.dialects.logs.lines import Parts, last_clock, line_around
from triage.dialects.logs.recognise import recognise
from triage.dialects.logs.starts import StartFollower
from triage.dialects.logs.table import Harmless, Launch, Limit, Marker, Progress, ReuseRow, Stop, marker_table
from triage.dialects.logs.throughput import NEEDLES, proves_progress, read_throughput
from triage.dialects.logs.times import clock_of, time_of
from triage.dialects.logs.usage import read_usage
from triage.domain.logs import LogEvent, LogKind, LogMark, LogReading, ThroughputLine
from triage.domain.prompts import Reuse

_LONGEST_TEXT = 300
# Of each mark this many events are kept, from the beginning and from the end: 9 × 22 stay below 200.
_KEPT_FIRST, _KEPT_LAST = 10, 12
_MOST_REPORTS = 2000
_MOST_REUSES = 200
# uvicorn's line of an answered request, bare and inside Docker's json-file log: the server listens.
_ANSWERED = ('HTTP/1.1" 2', 'HTTP/1.1\\" 2')
_ENDS = (LogMark.STARTED, LogMark.FATAL)
# These systems run other engines: their logs carry the engines' lines.
_WRAPPERS = frozenset({"", "dynamo", "ray"})
_NO_ENGINES = (("kernel",), ("exporter",))
_SEARCHED = {LogKind.ENGINE: None, LogKind.UNKNOWN: None, LogKind.KERNEL: "kernel", LogKind.EXPORTER: "exporter"}
_Row: TypeAlias = Marker | Launch | Stop | Limit | Progress | ReuseRow


class _Hit(NamedTuple):
    """Where words of a row of the table, or of a throughput report (row None), were found."""

    position: int
    order: int
    row: _Row | None


def read_log(text: str, source: str, target: str, year: int | None = None) -> LogReading:
    """What a log says. Never raises.

    year: completes dates that lack it (vLLM writes month and day); without it such lines have no time.
    """
    kind, name = recognise(text)
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    notes = _Notes(year, name)
    if kind in _SEARCHED:
        _walk(text, _hits(text, _SEARCHED[kind] or name), notes)
        answered = max(map(text.rfind, _ANSWERED)) if notes.starts.newest_line() else -1
        if answered >= 0:
            number = text.count("\n", 0, answered) + 1
            if number > notes.starts.newest_line():
                notes.starts.served(number)
    if kind is LogKind.UNKNOWN and notes.engine:
        kind = LogKind.ENGINE
    searched = kind in _SEARCHED
    return LogReading(
        source=source,
        target=target,
        kind=kind,
        engine=notes.engine,
        lines=lines,
        events=notes.events(),
        counts=dict(notes.counts),
        throughput=tuple(notes.reports),
        sequence_limit=notes.limit,
        last_progress_line=notes.progress,
        started=notes.starts.count,
        starts=notes.starts.starts(),
        stopped_line=notes.stopped,
        last_clock=last_clock(text) if searched else None,
        reuse=tuple(notes.reuse) if searched else read_usage(text),
    )


def _hits(text: str, name: str) -> list[_Hit]:
    """Every line with words of the table, and the newest throughput reports, by position."""
    table = marker_table()
    rows: tuple[_Row, ...] = (
        *table.marker, *table.launch, *table.stop, *table.limit, *table.progress, *table.reuse
    )  # fmt: skip
    hits: list[_Hit] = []
    for order, row in enumerate(rows):
        if not _concerns(row, name):
            continue
        found, parts = text.find(row.needle), Parts(text)
        while found >= 0:
            hits.append(_Hit(found, order, row))
            end = parts.end(found)
            found = text.find(row.needle, end) if end < len(text) else -1
    reports: list[_Hit] = []
    for needle in NEEDLES:
        found, left = text.rfind(needle), _MOST_REPORTS
        while found >= 0 and left:
            reports.append(_Hit(found, -1, None))
            start = text.rfind("\n", 0, found)
            found = text.rfind(needle, 0, start) if start >= 0 else -1
            left -= 1
    return sorted(hits + reports, key=lambda hit: hit[:2])


def _concerns(row: _Row, name: str) -> bool:
    """Whether words of this row can be in such a log."""
    if not row.engines or name in row.engines:
        return True
    return name in _WRAPPERS and row.engines not in _NO_ENGINES


def _walk(text: str, hits: list[_Hit], notes: "_Notes") -> None:
    table = marker_table()
    number, counted = 1, 0
    current, line, end = -1, "", -1
    parts = Parts(text)
    harmless: Harmless | None = None
    for hit in hits:
        number += text.count("\n", counted, hit.position)
        counted = hit.position
        if number != current:
            notes.begin(number)
        if number != current or hit.position > end:
            current, end = number, parts.end(hit.position)
            line = line_around(text, hit.position)
            harmless = table.harmless_in(line)
        if harmless is None or (isinstance(hit.row, Marker) and hit.row.mark in harmless.allows):
            notes.take(hit.row, line)


class _Found(NamedTuple):
    """An event in the making: a log may have a million, of which 198 are kept."""

    mark: LogMark
    number: int
    line: str
    start: int


class _Notes:
    """What was found so far; one instance for one log."""

    def __init__(self, year: int | None, engine: str) -> None:
        self.year = year
        self.engine = engine
        self.counts: Counter[LogMark] = Counter()
        self.reports: deque[ThroughputLine] = deque(maxlen=_MOST_REPORTS)
        self.reuse: deque[Reuse] = deque(maxlen=_MOST_REUSES)
        self.starts = StartFollower()
        self.stopped: int | None = None
        self._dead = False
        self.limit: int | None = None
        self.progress: int | None = None
        self._first: dict[LogMark, list[_Found]] = {mark: [] for mark in LogMark}
        self._last: dict[LogMark, deque[_Found]] = {mark: deque(maxlen=_KEPT_LAST) for mark in LogMark}
        self._number = 0
        self._marked = False
        self._fatal_line = 0
        self._reported: dict[str, int] = {}

    def begin(self, number: int) -> None:
        self._number, self._marked = number, False

    def take(self, row: _Row | None, line: str) -> None:
        """One row of the table whose needle is in the current line."""
        if row is None:
            self._report(line)
            return
        found = row.match(line)
        if found is None:
            return
        if not self.engine and len(row.engines) == 1 and row.engines not in _NO_ENGINES:
            self.engine = row.engines[0]
        if isinstance(row, Limit):
            self.limit = int(found[1]) or self.limit
        elif isinstance(row, Progress):
            self.progress = self._number
            self.starts.served(self._number)
        elif isinstance(row, ReuseRow):
            self.reuse.append(Reuse(found["track"], int(found["prompt"]), int(found["cached"])))
        elif isinstance(row, Stop):
            self.stopped = self._number
            self.starts.stopped(self._number)
        elif isinstance(row, Launch):
            self._live_again()
            self.starts.take(row, found, line, self._number, clock_of(line))
        elif row.mark is not LogMark.FATAL or self._dead or self.stopped is None:
            # Of a process that was told to stop, fatal words are part of its orderly end.
            if row.mark is LogMark.FATAL:
                self._dead = True
            elif row.mark is LogMark.STARTED or row.begins:
                self._live_again()
            if row.phase is not None or row.mark in _ENDS:
                self.starts.take(row, found, line, self._number, clock_of(line))
            if not self._marked:
                self._marked = True
                self._event(row.mark, line, found.start())

    def _live_again(self) -> None:
        self.stopped, self._dead = None, False

    def events(self) -> tuple[LogEvent, ...]:
        kept = [found for mark in LogMark for found in (*self._first[mark], *self._last[mark])]
        return tuple(
            LogEvent(found.mark, found.number, _excerpt(found.line, found.start), time_of(found.line, self.year))
            for found in sorted(kept, key=lambda found: found.number)
        )

    def _event(self, mark: LogMark, line: str, start: int) -> None:
        self.counts[mark] += 1
        if mark is LogMark.FATAL:
            self._fatal_line = self._number
        elif mark is LogMark.STARTED:
            self.progress = self._number
        first = self._first[mark]
        kept = first if len(first) < _KEPT_FIRST else self._last[mark]
        kept.append(_Found(mark, self._number, line, start))

    def _report(self, line: str) -> None:
        report = read_throughput(line, self._number, time_of(line, self.year))
        if report is None:
            return
        self.reports.append(report)
        self.starts.served(self._number)
        before, self._reported[report.rank] = self._reported.get(report.rank, 0), self._number
        if not proves_progress(report):
            return
        # vLLM reports what was made since its last report: after a fatal line the first one looks back over it.
        looks_back = "Avg prompt throughput:" in line and before < self._fatal_line
        if not looks_back:
            self.progress = self._number


def _excerpt(line: str, start: int) -> str:
    """The words found, with what stands before and behind them."""
    if start > _LONGEST_TEXT - 100:
        line = "…" + line[start - 60 :]
    return line if len(line) <= _LONGEST_TEXT else line[: _LONGEST_TEXT - 1] + "…"
