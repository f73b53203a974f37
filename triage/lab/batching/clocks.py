"""Clocks that run while a cause costs an engine time: two looks at them tell where a request's time went."""

from enum import IntEnum


class Clock(IntEnum):
    """Each runs at the part of real time that its cause takes.

    WAIT_*: what the head of the queue waits for. PROMPTS: decode steps made longer by prompts in them.
    GPU, HOST, DRAFTS: steps made longer than on a machine in good condition, by what. HALTED: nothing is scheduled.
    """

    WAIT_SEQUENCES = 0
    WAIT_KV = 1
    WAIT_BUDGET = 2
    PROMPTS = 3
    GPU = 4
    HOST = 5
    DRAFTS = 6
    HALTED = 7


Moment = tuple[float, ...]


class Clocks:
    """The clocks of one engine."""

    def __init__(self) -> None:
        self.times = [0.0] * len(Clock)

    def run(self, clock: Clock, seconds: float) -> None:
        self.times[clock] += seconds

    def look(self) -> Moment:
        return tuple(self.times)


def between(one: Moment, other: Moment) -> dict[Clock, float]:
    """Seconds that each clock ran between two looks; those that stood still are left out."""
    return {clock: other[clock] - one[clock] for clock in Clock if other[clock] > one[clock]}
