"""What a step takes longer than it would on a machine in good condition, and without prompts in it."""

from triage.lab.batching.clocks import Clock
from triage.lab.machine.step_time import Machine, StepCosts

Parts = tuple[tuple[Clock, float], ...]


class Causes:
    """good: the machine as the engine started with it."""

    def __init__(self, good: Machine) -> None:
        self._good = good
        self._costs = good.costs()

    def of_step(
        self, machine: Machine, costs: StepCosts, decoding: int, context: float, tokens: int, pairs: float, plain: float
    ) -> Parts:
        """Parts of a step of `plain` seconds on this machine, by cause."""
        good = self._costs
        parts: list[tuple[Clock, float]] = []
        if machine is not self._good:
            host = costs.base_s + costs.sequence_s * decoding - good.base_s - good.sequence_s * decoding
            nominal = good.step_s(decoding, context, tokens, pairs)
            parts.append((Clock.HOST, max(host, 0.0) / plain))
            parts.append((Clock.GPU, max(plain - nominal - max(host, 0.0), 0.0) / plain))
            if machine.drafted:
                lost = 1.0 - machine.tokens_per_step / self._good.tokens_per_step
                parts.append((Clock.DRAFTS, max(lost, 0.0)))
        if decoding and tokens:
            without = good.step_s(decoding, context, 0, 0.0)
            parts.append((Clock.PROMPTS, max(good.step_s(decoding, context, tokens, pairs) - without, 0.0) / plain))
        return tuple(parts)
