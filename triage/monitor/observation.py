"""What the monitor publishes, and what screens and commands may ask of it."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from triage.domain.quantity import Quantity
from triage.domain.situation import Situation
from triage.domain.verdict import Diagnosis


class Observation(msgspec.Struct, frozen=True):
    """One round of the loop. sequence: rises by one each round. at: unix seconds of the round's end."""

    sequence: int
    at: float
    situation: Situation
    diagnosis: Diagnosis


class Feed(Protocol):
    """The side of the monitor that listeners see; live, replayed or faked alike."""

    @property
    def name(self) -> str:
        """What is looked at, for the screen's title: a cluster, a file, 'demo'."""

    @property
    def interval_s(self) -> float: ...

    def latest(self) -> Observation | None: ...

    async def newer_than(self, sequence: int) -> Observation:
        """Wait for an observation with a higher sequence number."""

    def trail(self, target: str, quantity: Quantity) -> tuple[tuple[float, float], ...]:
        """(unix seconds, value) of the readings kept for one target, oldest first."""

    def refresh(self) -> None:
        """Ask for a round now instead of at the next interval."""

    def set_interval(self, seconds: float) -> None: ...

    async def probe(self, progress: Callable[[str], None]) -> str:
        """Send the announced probe (one streamed request a model) and return one line on how it went.

        What it found becomes part of the next observation. Raises TriageError when no target can be probed.
        """

    def probe_cost(self) -> str:
        """What probe() would send, in a few words: '2 requests, at most 400 tokens each'."""
