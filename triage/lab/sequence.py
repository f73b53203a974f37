"""What goes through an engine, and what the engine tells its exporter about it."""

import math
from collections.abc import Callable
from enum import Enum
from typing import Protocol

import msgspec

from triage.lab.workload import Request


class Phase(Enum):
    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    FINISHED = "finished"
    ABORTED = "aborted"


class Sequence:
    """A request on its way through the engine, with the moments that the exporters need."""

    __slots__ = (
        "arrived",
        "blocks",
        "emitted",
        "finished",
        "first_token",
        "goal",
        "on_end",
        "on_token",
        "phase",
        "prefilled",
        "queued",
        "request",
        "room",
        "scheduled",
    )

    def __init__(
        self,
        request: Request,
        arrived: float,
        queued: float,
        on_token: "Listener | None",
        on_end: "Listener | None",
    ) -> None:
        self.request = request
        self.arrived = arrived
        self.queued = queued
        self.scheduled = math.nan
        self.first_token = math.nan
        self.finished = math.nan
        self.on_token = on_token
        self.on_end = on_end
        self.phase = Phase.WAITING
        self.prefilled = 0
        self.emitted = 0
        self.goal = request.output_tokens
        self.blocks = 0
        self.room = 0  # free token slots in the last block

    @property
    def ended(self) -> bool:
        return self.phase is Phase.FINISHED or self.phase is Phase.ABORTED


Listener = Callable[[Sequence], None]


class Step(msgspec.Struct, frozen=True):
    """One finished step. Counts of requests and tokens; running, waiting and used_blocks are after it.

    decoded: sequences that had produced a token before and produced one now. generated: tokens,
    first tokens included. computed: prompt tokens. prompts_done: prompt tokens of the sequences
    that got their first token.
    """

    started: float
    ended: float
    decoded: int
    generated: int
    computed: int
    prompts_done: int
    running: int
    waiting: int
    used_blocks: int


class Observer(Protocol):
    """What an engine tells its exporter, in the order in which it happens."""

    def admitted(self, sequence: Sequence) -> None: ...
    def first_token(self, sequence: Sequence) -> None: ...
    def finished(self, sequence: Sequence) -> None: ...
    def aborted(self, sequence: Sequence) -> None: ...
    def stepped(self, step: Step) -> None: ...
