"""What an engine's log says, reduced to facts."""

from enum import StrEnum

import msgspec


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

    def first(self, mark: LogMark) -> LogEvent | None:
        return next((event for event in self.events if event.mark is mark), None)

    def last(self, mark: LogMark) -> LogEvent | None:
        return next((event for event in reversed(self.events) if event.mark is mark), None)
