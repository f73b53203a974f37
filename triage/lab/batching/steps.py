"""A run of like steps: when each of them ends, and whose time they take."""

import math

from triage.lab.batching.clocks import Clock
from triage.lab.batching.request import Sequence


class Steps:
    """Steps under way: the i-th takes first_s + i × more_s. done: those that are over and accounted for."""

    __slots__ = ("chunks", "computed", "done", "first_s", "more_s", "over_at", "parts", "started", "steps", "waits_for")

    def __init__(
        self,
        started: float,
        steps: int,
        first_s: float,
        more_s: float,
        chunks: list[tuple[Sequence, int]],
        parts: tuple[tuple[Clock, float], ...],
    ) -> None:
        self.started = started
        self.steps = steps
        self.first_s = first_s
        self.more_s = more_s
        self.chunks = chunks
        self.parts = parts
        self.waits_for: Clock | None = None
        self.done = 0
        self.computed = 0
        self.over_at = self.end_of(steps)

    def end_of(self, steps: int) -> float:
        """When so many steps are over."""
        return self.started + steps * self.first_s + self.more_s * (steps * (steps - 1) * 0.5)

    def over_by(self, at: float) -> int:
        """Steps that are over at a moment."""
        spent = at - self.started
        if spent <= 0:
            return 0
        a, b = self.first_s, self.more_s
        if b <= 0:
            steps = int(spent / a)
        else:
            half = a - 0.5 * b
            steps = int((math.sqrt(half * half + 2 * b * spent) - half) / b)
        steps = min(steps, self.steps)
        # The square root is off by less than a step.
        while steps < self.steps and self.end_of(steps + 1) <= at:
            steps += 1
        while steps > 0 and self.end_of(steps) > at:
            steps -= 1
        return steps

    def end_after(self, steps: int) -> None:
        """No more than so many, and not before the one that is under way."""
        self.steps = min(self.steps, max(steps, self.done + 1))
        self.over_at = self.end_of(self.steps)
