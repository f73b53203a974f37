"""What a monitoring server (Prometheus and what speaks its API) brings beside engine readings."""

from enum import StrEnum

import msgspec

from triage.domain.reading import EngineReading
from triage.domain.situation import Alert, MonitoredTarget


class Trouble(StrEnum):
    """Why a monitoring server brought nothing, or not everything. Each of these is mended elsewhere."""

    UNKNOWN_METRIC = "unknown metric"  # it never stored a series of an engine that is known here
    NO_DATA = "no data"  # it stored some, and none now
    STALE = "stale"  # the newest sample is older than the scrape interval allows
    NEVER_SCRAPED = "never scraped"  # the target is listed and was not read yet
    TARGET_DOWN = "scrape fails"  # it tries, and the target does not give its page
    TOO_MANY_POINTS = "too many points"  # the server, or our own bound, refuses so much
    WRONG_SERVER = "not the Prometheus API"
    UNREADABLE = "unreadable"  # refused, forbidden, timed out, ...: the sentence begins with the reason
    PARTIAL = "partial answer"  # it answered with a warning
    CLOCK = "clocks differ"


class MonitoringTrouble(msgspec.Struct, frozen=True):
    """says: what happened. todo: what mends it. blind: something may be hidden by it."""

    trouble: Trouble
    says: str
    todo: str = ""
    blind: bool = True

    def __str__(self) -> str:
        # What could not be read at all says so by its reason.
        text = self.says if self.trouble is Trouble.UNREADABLE else f"{self.trouble.value}: {self.says}"
        return f"{text}; {self.todo}" if self.todo else text


class Past(msgspec.Struct, frozen=True):
    """Readings of one target at an earlier time, oldest first, each with its own time and without buckets.

    name: the time as evidence says it, such as 'the same time a week ago'.
    """

    target: str
    name: str
    readings: tuple[EngineReading, ...]


class MonitoringReading(msgspec.Struct, frozen=True):
    """One look at a monitoring server.

    source: for the evidence. at: unix seconds. targets, alerts, past: None where this look did not ask, so that the
    last ones still hold.
    """

    source: str
    at: float
    targets: tuple[MonitoredTarget, ...] | None = None
    alerts: tuple[Alert, ...] | None = None
    past: tuple[Past, ...] | None = None
    troubles: tuple[MonitoringTrouble, ...] = ()
