"""What is read, and how a read can fail."""

from enum import StrEnum

import msgspec


class TargetState(StrEnum):
    """A frozen scrape, a missing engine and a dead target are different states."""

    OK = "ok"
    DARK = "dark"  # does not answer now; `why` says how
    NEVER = "never"  # has not answered since we look
    STALE = "stale"  # the last good answer is older than two intervals
    NO_METRICS = "no metrics"  # answers, but not with an engine's metrics


class FailureReason(StrEnum):
    REFUSED = "refused"
    TIMEOUT = "time-out"
    DNS = "name not found"
    TLS = "tls"
    UNAUTHORIZED = "401 unauthorized"
    FORBIDDEN = "403 forbidden"
    NOT_FOUND = "404 not found"
    CLIENT_ERROR = "4xx"
    SERVER_ERROR = "5xx"
    REDIRECT = "redirect"
    NOT_METRICS = "not metrics"
    EMPTY = "empty"
    TOO_LARGE = "too large"
    DISCONNECTED = "disconnected"
    NOT_ALLOWED = "not allowed"  # our own gate refused to send it
    CREDENTIAL = "credential"  # the named credential could not be read
    BAD_ANSWER = "bad answer"


class Failure(msgspec.Struct, frozen=True):
    """Why a read brought nothing. detail: one cleaned sentence. status: HTTP status or None."""

    reason: FailureReason
    detail: str = ""
    status: int | None = None

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}" if self.detail else self.reason.value


class Target(msgspec.Struct, frozen=True):
    """One thing that is read. `url` is empty for files."""

    name: str
    url: str = ""
    model: str | None = None  # what the user said it serves, if anything
