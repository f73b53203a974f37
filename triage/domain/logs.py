"""What an engine's log says, reduced to facts."""

from enum import StrEnum

import msgspec

from triage.domain.prompts import Reuse


class LogKind(StrEnum):
    ENGINE = "engine log"
    ACCESS = "access log"
    KERNEL = "kernel log"
    EXPORTER = "exporter log"
    UNKNOWN = "unknown log"


class LogMark(StrEnum):
    """What a line means. The words beside it stay in `text`, cleaned."""

    FATAL = "fatal"  # process, worker or device context is gone
    STARTED = "started"  # ready to serve
    STARTING = "starting"
    STALL_WARNING = "stall warning"  # harmless while idle, support for a stall while work waits
    KV_FULL = "kv full"
    CONTEXT_ERROR = "context error"
    REQUEST_ERROR = "request error"
    METRICS_OFF = "metrics off"
    COLLECTION_ERROR = "collection error"


class LogEvent(msgspec.Struct, frozen=True):
    """One meaningful line. line: 1-based number. at: unix seconds, or None where the line has no date."""

    mark: LogMark
    line: int
    text: str
    at: float | None = None


class StartPhase(StrEnum):
    """What an engine does between its launch and its first answer, in the usual order."""

    LAUNCH = "launch"
    WEIGHTS_DOWNLOAD = "weights-download"
    WEIGHTS_LOAD = "weights-load"
    COMPILE = "compile"
    WARM_UP = "warm-up"
    GRAPH_CAPTURE = "graph-capture"


class StartEnd(StrEnum):
    """How far a start got. OPEN: the log ends, or another start begins, before it was ready."""

    READY = "ready"
    FAILED = "failed"
    OPEN = "open"


class PhaseRecord(msgspec.Struct, frozen=True):
    """One phase of one start.

    lines: how many lines tell of it; line: the newest. first, last: see Start. took_s: what the log itself says,
    of ranks and of reports inside one another the longest. done, total: the newest progress, for example 75 of 241
    shards (a percentage has 100 as its total); changes: how often that figure changed. step_s: seconds per step.
    """

    phase: StartPhase
    line: int
    lines: int
    first: float | None = None
    last: float | None = None
    took_s: float | None = None
    done: float | None = None
    total: float | None = None
    changes: int = 0
    step_s: float | None = None

    @property
    def left(self) -> float | None:
        """Steps that are still to be done; None without a figure."""
        return None if self.done is None or self.total is None else max(self.total - self.done, 0.0)


class Start(msgspec.Struct, frozen=True):
    """One start of an engine as its log tells it. phases: in the order in which they were first seen.

    first, last: clock of its first and last line, in seconds; None when no line has one. The origin is the beginning
    of a year that the log may not name (calendar) or the process's launch: differences mean something, and calendar
    clocks of one year can be compared.
    cache_path, cache_key: where compiled code is kept, and the parts of the key it is kept under. cache_hit: whether
    the log says that compiled code was taken from there (True) or made anew (False).
    """

    line: int
    last_line: int
    end: StartEnd
    phases: tuple[PhaseRecord, ...]
    first: float | None = None
    last: float | None = None
    calendar: bool = True
    cache_path: str = ""
    cache_key: dict[str, str] = {}
    cache_hit: bool | None = None

    def phase(self, wanted: StartPhase) -> PhaseRecord | None:
        return next((record for record in self.phases if record.phase is wanted), None)

    @property
    def newest(self) -> PhaseRecord:
        """The phase with the newest line."""
        return max(self.phases, key=lambda record: record.line)


class ThroughputLine(msgspec.Struct, frozen=True):
    """The engine's own periodic report; None where the line does not carry a field."""

    line: int
    rank: str = ""
    at: float | None = None
    prompt_speed: float | None = None  # tokens/s
    generation_speed: float | None = None
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None  # 0..1
    hit_rate: float | None = None  # 0..1
    accept_length: float | None = None
    accept_rate: float | None = None
    batch_tokens: int | None = None


class LogReading(msgspec.Struct, frozen=True):
    """One log file or pod log. events: kept in order, repeated ones counted in `counts`.

    sequence_limit: requests that may run at once, where the start lines say so.
    starts: the newest starts that the log tells of, oldest first; started: how many there were.
    stopped_line: of a process that was told to stop, when no other one started behind it.
    last_clock: clock of the last line that has one, on the origin of `Start`. reuse: newest prompts, oldest first.
    """

    source: str
    target: str
    kind: LogKind
    engine: str
    lines: int
    events: tuple[LogEvent, ...] = ()
    counts: dict[LogMark, int] = {}
    throughput: tuple[ThroughputLine, ...] = ()
    sequence_limit: int | None = None
    last_progress_line: int | None = None
    starts: tuple[Start, ...] = ()
    started: int = 0
    last_clock: float | None = None
    stopped_line: int | None = None
    reuse: tuple[Reuse, ...] = ()

    def first(self, mark: LogMark) -> LogEvent | None:
        return next((event for event in self.events if event.mark is mark), None)

    def last(self, mark: LogMark) -> LogEvent | None:
        return next((event for event in reversed(self.events) if event.mark is mark), None)
