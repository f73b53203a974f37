"""People and programs that ask, wait, and ask again; each with at most one call open."""

import math
import random
from collections.abc import Callable

import msgspec

from triage.lab.load.session import Habits, Session
from triage.lab.load.shapes import Shape
from triage.lab.world.call import Call, Outcome
from triage.lab.world.timeline import Timeline

# New users turn up over this many seconds, not all in one step of the engine.
_RAMP_S = 8.0
# A client library waits so long before it sends a failed request again, and twice as long each further time.
_AGAIN_S = 0.5
_AGAIN_MOST_S = 8.0
# Whoever leaves early does so within these seconds.
_LEAVES_S = (0.3, 5.0)
# Statuses that client libraries try again: time-outs, limits, conflicts and every server error.
_TRIED_AGAIN = (408, 409, 429)


class Crowd(msgspec.Struct, frozen=True):
    """How many, and what they do. patience: factor on the shape's. keyless: part of them whose calls carry no key.

    leaving: part of the calls that are dropped within their first seconds, whatever they show.
    context: tokens that the application believes to be there.
    """

    users: int
    habits: Habits = Habits()
    patience: float = 1.0
    retries: int | None = None
    think: float = 1.0
    keyless: float = 0.0
    leaving: float = 0.0
    context: int = 32_768


class _User:
    """One of them. session: the conversation that is going on."""

    __slots__ = ("again", "keyless", "name", "session")

    def __init__(self, name: str, keyless: bool) -> None:
        self.name = name
        self.session: Session | None = None
        self.again = 0
        self.keyless = keyless


class Users:
    """Deterministic: the same seed and the same answers give the same calls."""

    def __init__(
        self, model: str, shape: Shape, crowd: Crowd, timeline: Timeline, seed: str, send: Callable[[Call, float], None]
    ) -> None:
        self.crowd = crowd
        self.model = model
        self._shape = shape
        self._timeline = timeline
        self._rng = random.Random(f"{seed}/{model}/{shape.name}")  # noqa: S311 - a reproducible model, no secret
        self._send = send
        self._present: dict[int, _User] = {}
        self._sessions = 0

    def arrive(self, at: float, spread_s: float = _RAMP_S) -> None:
        """As many users as the crowd says are there from now on; those that are too many leave after their answer."""
        for number in range(self.crowd.users):
            if number not in self._present:
                user = self._present[number] = _User(
                    f"{self._shape.name}-{number}", self._rng.random() < self.crowd.keyless
                )
                self._timeline.at(
                    at + self._rng.uniform(0.0, spread_s),
                    lambda moment, user=user, n=number: self._ask(n, user, moment),  # type: ignore[misc]
                )

    def change(self, crowd: Crowd, at: float) -> None:
        if crowd.keyless != self.crowd.keyless:
            for user in self._present.values():
                user.keyless = self._rng.random() < crowd.keyless
        self.crowd = crowd
        self.arrive(at)

    def ended(self, call: Call, at: float) -> None:
        """A call is over, and its user goes on: the same again, the next turn, another conversation, or home."""
        number = int(call.user.rpartition("-")[2])
        user = self._present.get(number)
        if user is None or user.session is None:
            return
        session, crowd, rng = user.session, self.crowd, self._rng
        retries = self._shape.retries if crowd.retries is None else crowd.retries
        if self._may_be_sent_again(call) and call.again < retries:
            wait = min(_AGAIN_S * 2.0**call.again, _AGAIN_MOST_S) * rng.uniform(0.75, 1.0)
            self._timeline.at(at + wait, lambda moment: self._again(call, moment))
            return
        shown = call.answer.counted if call.outcome is Outcome.COMPLETE and call.answer is not None else 0
        session.answered(call.request, min(shown, call.request.visible_tokens))
        if call.outcome is not Outcome.COMPLETE and rng.random() < 0.5:
            session.turns_left = 0  # many give a conversation up that went wrong
        if number >= crowd.users:
            self._present.pop(number, None)
            return
        pause = self._shape.think if session.turns_left > 0 else self._shape.gap
        if session.turns_left <= 0:
            user.session = None
        self._timeline.at(at + pause.draw(rng) * crowd.think, lambda moment: self._ask(number, user, moment))

    def _ask(self, number: int, user: _User, at: float) -> None:
        if number >= self.crowd.users:
            self._present.pop(number, None)
            return
        if user.session is None:
            self._sessions += 1
            user.session = Session(f"{user.name}.{self._sessions}", self._shape, self.crowd.habits, self._rng)
        request = user.session.ask(self.crowd.habits, self.crowd.context)
        call = Call(self.model, user.name, user.session.name, request, at)
        call.identity = "" if user.keyless else user.name
        self._deliver(call, at)

    def _again(self, old: Call, at: float) -> None:
        call = Call(old.model, old.user, old.session, old.request, at)
        call.identity = old.identity
        call.again = old.again + 1
        self._deliver(call, at)

    def _deliver(self, call: Call, at: float) -> None:
        patience = self._shape.patience.draw(self._rng) * self.crowd.patience
        call.patient_until = at + patience
        if self.crowd.leaving and self._rng.random() < self.crowd.leaving:
            call.walks_off_at = at + self._rng.uniform(*_LEAVES_S)
        self._send(call, at)

    @staticmethod
    def _may_be_sent_again(call: Call) -> bool:
        # A stream that was cut is not noticed by client libraries; a status before the first byte is.
        return call.outcome is Outcome.FAILED and (call.status >= 500 or call.status in _TRIED_AGAIN)


def impatient(call: Call, at: float) -> bool:
    """The user sees nothing and has waited long enough."""
    return call.open and math.isnan(call.first_visible) and at >= call.patient_until
