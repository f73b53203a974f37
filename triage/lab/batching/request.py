"""A request as an engine sees it, and its way through the engine."""

import math
from enum import Enum
from typing import Protocol

import msgspec

from triage.lab.batching.clocks import Moment


class Segment(msgspec.Struct, frozen=True):
    """A part of a prompt that may be in the prefix cache. key: equal for equal text behind equal text."""

    key: str
    tokens: int


class Request(msgspec.Struct, frozen=True):
    """reasoning_tokens come before visible_tokens; what the answer would hold without a limit.

    prefix: the parts of the prompt that others share or that came before, in order; the rest is new.
    keep: key under which prompt and answer can be found again, behind those of `prefix`; "" when nobody will.
    shows_reasoning: reasoning is streamed to the client. calls_tool: the visible part is a tool call.
    """

    prompt_tokens: int
    visible_tokens: int
    max_tokens: int
    reasoning_tokens: int = 0
    prefix: tuple[Segment, ...] = ()
    keep: str = ""
    streaming: bool = True
    shows_reasoning: bool = False
    calls_tool: bool = False

    @property
    def output_tokens(self) -> int:
        """Tokens that will really be generated: the answer's own length or the limit."""
        return min(self.reasoning_tokens + self.visible_tokens, self.max_tokens)

    @property
    def finish_reason(self) -> str:
        if self.output_tokens < self.reasoning_tokens + self.visible_tokens:
            return "length"
        return "tool_calls" if self.calls_tool else "stop"


class Phase(Enum):
    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    FINISHED = "finished"
    ABORTED = "aborted"
    LOST = "lost"  # the engine died under it


ENDED = (Phase.FINISHED, Phase.ABORTED, Phase.LOST)


class Sequence:
    """A request on its way through the engine. Times are virtual seconds, nan until they come.

    scheduled: first time it was taken into a step. cached: prompt tokens that the prefix cache gave then.
    away_s: from each preemption until it was back where it had been. away_since: when the one under way began.
    at_*: the engine's clocks at these moments, for the account of where its time went.
    """

    __slots__ = (
        "arrived",
        "at_first",
        "at_queued",
        "at_scheduled",
        "away_s",
        "away_since",
        "blocks",
        "cached",
        "counted",
        "counted_at",
        "finished",
        "first_token",
        "first_visible",
        "goal",
        "held",
        "listener",
        "phase",
        "preemptions",
        "prefilled",
        "queued",
        "request",
        "scheduled",
        "shared",
        "stored",
        "to_prefill",
    )

    def __init__(self, request: Request, arrived: float, queued: float, listener: "Listener | None") -> None:
        self.request = request
        self.arrived = arrived
        self.queued = queued
        self.scheduled = self.first_token = self.first_visible = self.finished = math.nan
        self.listener = listener
        self.phase = Phase.WAITING
        self.goal = request.output_tokens
        self.cached = 0
        self.preemptions = 0
        self.away_s = 0.0
        self.away_since = math.nan
        # prompt work: tokens to be in the KV cache before the next token comes, and those that are
        self.to_prefill = request.prompt_tokens
        self.prefilled = 0
        # output, as of the engine's step `counted_at`; the engine knows how many have come since
        self.counted = 0
        self.counted_at = 0
        # KV, as of `counted_at`: tokens stored, those of them in entries it shares, own blocks, keys of the entries
        self.stored = 0
        self.shared = 0
        self.blocks = 0
        self.held: list[str] = []
        self.at_queued: Moment | None = None
        self.at_scheduled: Moment | None = None
        self.at_first: Moment | None = None

    @property
    def ended(self) -> bool:
        return self.phase in ENDED


class Listener(Protocol):
    """Whoever sent the request. Called in virtual time, while the engine runs."""

    def first_token(self, sequence: Sequence, at: float) -> None: ...
    def first_visible(self, sequence: Sequence, at: float) -> None: ...
    def ended(self, sequence: Sequence, at: float) -> None: ...


class Run(msgspec.Struct, frozen=True):
    """Like steps, one after another. Counts of requests and tokens.

    first_s, last_s: seconds of the first and the last step; those between change evenly.
    decoding: sequences that got tokens in every step. generated: tokens in all, first tokens left out.
    computed: prompt tokens (of one step with prompts). drafts: drafted sequences × steps. drafted, accepted: tokens.
    started, ended: virtual seconds.
    """

    started: float
    ended: float
    steps: int
    first_s: float
    last_s: float
    decoding: int
    generated: int
    computed: int
    drafts: int
    drafted: int
    accepted: int


class Observer(Protocol):
    """What an engine tells its exporter, in the order in which it happens. State is read from the engine.

    halted: no step will end for some time, or ever.
    prefilled: the prompt is computed and brought a token; again after a preemption, when it is not the first one.
    """

    def queued(self, sequence: Sequence) -> None: ...
    def admitted(self, sequence: Sequence, at: float) -> None: ...
    def preempted(self, sequence: Sequence) -> None: ...
    def halted(self) -> None: ...
    def ran(self, run: Run) -> None: ...
    def prefilled(self, sequence: Sequence, at: float) -> None: ...
    def finished(self, sequence: Sequence) -> None: ...
    def aborted(self, sequence: Sequence) -> None: ...
