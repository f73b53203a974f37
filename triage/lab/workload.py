"""Who asks for what: request sizes, and users who wait for an answer before they ask again."""

import heapq
import math
import random

import msgspec

# New users turn up over this many seconds, not all in one step of the engine.
_RAMP_S = 5.0


class Spread(msgspec.Struct, frozen=True):
    """A log-normal number of tokens: its median, the sigma of its logarithm, and hard limits."""

    median: float
    sigma: float
    low: int
    high: int

    def draw(self, rng: random.Random) -> int:
        return round(min(max(rng.lognormvariate(math.log(self.median), self.sigma), self.low), self.high))


class Request(msgspec.Struct, frozen=True):
    """One request as the engine will see it. reasoning_tokens come before visible_tokens."""

    prompt_tokens: int
    reasoning_tokens: int
    visible_tokens: int
    max_tokens: int
    streaming: bool = True

    @property
    def output_tokens(self) -> int:
        """Tokens that will really be generated: the answer's own length or the limit."""
        return min(self.reasoning_tokens + self.visible_tokens, self.max_tokens)

    @property
    def finish_reason(self) -> str:
        return "length" if self.output_tokens < self.reasoning_tokens + self.visible_tokens else "stop"


class Workload(msgspec.Struct, frozen=True):
    """What the users of one replica do. think_s: mean seconds between an answer and the next request.

    reasoning: None while the model answers without thinking first.
    """

    users: int
    think_s: float
    prompt: Spread
    visible: Spread
    reasoning: Spread | None = None
    max_tokens: int = 2048

    def draw(self, rng: random.Random) -> Request:
        return Request(
            prompt_tokens=self.prompt.draw(rng),
            reasoning_tokens=self.reasoning.draw(rng) if self.reasoning else 0,
            visible_tokens=self.visible.draw(rng),
            max_tokens=self.max_tokens,
        )


class ClosedLoop:
    """A fixed number of users, each with at most one request open, so that a queue stays bounded.

    Times are virtual seconds. Deterministic: the same seed and the same calls give the same requests.
    """

    def __init__(self, workload: Workload, seed: str) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - a reproducible model, no secret
        self._thinking: list[tuple[float, int]] = []
        self._present: set[int] = set()
        self.change(workload, 0.0)

    @property
    def next_at(self) -> float:
        """When the next request comes, or infinity while every user waits for an answer."""
        return self._thinking[0][0] if self._thinking else math.inf

    def take(self) -> tuple[int, Request]:
        """The next request and the user who sends it."""
        _, user = heapq.heappop(self._thinking)
        return user, self.workload.draw(self._rng)

    def answered(self, user: int, at: float) -> None:
        """The user has the answer: thinks, or leaves when there are fewer users now."""
        if user < self.workload.users:
            heapq.heappush(self._thinking, (at + self._rng.expovariate(1.0 / self.workload.think_s), user))
        else:
            self._present.discard(user)

    def change(self, workload: Workload, at: float) -> None:
        """Another workload from now on. Requests already sent stay as they are and are still waited for."""
        self.workload = workload
        leaving = {user for _, user in self._thinking if user >= workload.users}
        self._present -= leaving
        self._thinking = [entry for entry in self._thinking if entry[1] not in leaving]
        for user in range(workload.users):
            if user not in self._present:
                self._present.add(user)
                self._thinking.append((at + self._rng.uniform(0.0, _RAMP_S), user))
        heapq.heapify(self._thinking)
