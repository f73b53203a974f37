"""One request as its user sees it, and each try of the gateway to have it answered."""

import math
from enum import StrEnum

from triage.lab.batching.clocks import Moment
from triage.lab.batching.request import Request, Sequence


class Outcome(StrEnum):
    """How a call ended for its user."""

    OPEN = "open"
    COMPLETE = "complete"
    CUT = "cut"  # status 200, and the stream ended before the answer did
    FAILED = "failed"  # an error status that is not the caller's fault
    REFUSED = "refused"  # told to go away: key, context, queue
    LEFT = "left"  # the user gave up


class Attempt:
    """One try at one replica. sequence: None when the engine took nothing of it.

    at_end: the engine's clocks when it ended. why: how it ended, in the words of Envoy's response code details.
    """

    __slots__ = ("at_end", "ended", "first_byte", "replica", "sequence", "started", "status", "why")

    def __init__(self, replica: str, started: float) -> None:
        self.replica = replica
        self.started = started
        self.ended = math.nan
        self.first_byte = math.nan
        self.sequence: Sequence | None = None
        self.at_end: Moment | None = None
        self.status = 0
        self.why = ""


class Call:
    """Times are virtual seconds, nan until they come. flags: Envoy's response flags. blank: answered without a text.

    unparsed: the answer's tool call reached the client as text. again: how often the client had sent it before.
    patient_until: when the user gives up on an answer of which nothing is to be seen. walks_off_at: when they leave
    whatever is to be seen. carried: another than the simulated gateway brings it to an engine. outside: asked by
    somebody who is none of the simulated users, and counts nowhere.
    """

    __slots__ = (
        "again",
        "attempts",
        "blank",
        "carried",
        "details",
        "ended",
        "first_byte",
        "first_visible",
        "flags",
        "identity",
        "model",
        "outcome",
        "outside",
        "patient_until",
        "request",
        "sent",
        "session",
        "silent_since",
        "status",
        "unparsed",
        "user",
        "walks_off_at",
    )

    def __init__(self, model: str, user: str, session: str, request: Request, sent: float) -> None:
        self.model = model
        self.user = user
        self.session = session
        self.request = request
        self.sent = sent
        self.identity = ""
        self.first_byte = self.first_visible = self.ended = self.silent_since = math.nan
        self.outcome = Outcome.OPEN
        self.patient_until = self.walks_off_at = math.inf
        self.status = 0
        self.flags = ""
        self.details = ""
        self.again = 0
        self.attempts: list[Attempt] = []
        self.blank = False
        self.unparsed = False
        self.outside = False
        self.carried = False

    @property
    def open(self) -> bool:
        return self.outcome is Outcome.OPEN

    @property
    def answer(self) -> Sequence | None:
        """The engine's side of the last attempt."""
        return self.attempts[-1].sequence if self.attempts else None
