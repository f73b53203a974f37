"""One model behind its gateway, with its users, in the world's time."""

import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

from triage.lab.world.call import Call
from triage.lab.world.gateway import Gateway
from triage.lab.world.hop import Hop
from triage.lab.world.replica import Replica
from triage.lab.world.spec import ServiceSpec
from triage.lab.world.timeline import Timeline
from triage.lab.world.users import Crowd, Users, impatient

# Calls that are remembered: the last minutes of a busy service.
_REMEMBERED = 20_000


class Carrier(Protocol):
    """Brings calls to engines in another way than through the simulated gateway, and tells `Service.ended`."""

    def take(self, call: Call, at: float) -> bool: ...
    def leave(self, call: Call) -> bool: ...


class Service:
    """carrier: takes some of the calls. calls: those that are over, oldest first. open_calls: the others.

    unplaced: pods of a rollout for which no node has a free device; users are served by the old ones.
    """

    def __init__(self, spec: ServiceSpec, timeline: Timeline, seed: str, zero: float = 0.0) -> None:
        self.spec = spec
        self.model = spec.model
        self.timeline = timeline
        self.replicas = [Replica(one, timeline, seed, self._changed, zero) for one in spec.replicas]
        self.unplaced: list[str] = []
        self.calls: deque[Call] = deque(maxlen=_REMEMBERED)
        self.open_calls: dict[int, Call] = {}
        self.heard: list[Callable[[Call], None]] = []
        self.carrier: Carrier | None = None
        self.gateway = Gateway(spec.hop, self.replicas, timeline, f"{seed}/{spec.model}", self.ended)
        self.users = Users(spec.model, spec.shape, self.crowd, timeline, seed, self.send)

    def begin(self, at: float) -> None:
        """Everything has been running for a while."""
        for replica in self.replicas:
            replica.begin(at, long_ago=True)
        self.gateway.list_now()
        self.users.arrive(at)

    def route(self, hop: Hop) -> None:
        """The gateway's settings from now on."""
        self.gateway.hop = hop
        self.gateway.list_now()

    @property
    def crowd(self) -> Crowd:
        """The users as they were before anything went wrong."""
        return Crowd(self.spec.users, context=self.spec.context)

    def send(self, call: Call, at: float) -> None:
        if not call.outside:
            self.open_calls[id(call)] = call
        if call.patient_until < math.inf:
            self.timeline.at(call.patient_until, lambda moment: self._enough(call, moment))
        if call.walks_off_at < math.inf:
            self.timeline.at(call.walks_off_at, lambda moment: self._leave(call, moment))
        if self.carrier is None or not self.carrier.take(call, at):
            self.gateway.take(call, at)

    def _enough(self, call: Call, at: float) -> None:
        if impatient(call, at):
            self._leave(call, at)

    def _leave(self, call: Call, at: float) -> None:
        if self.carrier is None or not self.carrier.leave(call):
            self.gateway.leave(call, at)

    def ended(self, call: Call, at: float) -> None:
        """A call is over, with all that is to be known of it in it."""
        if call.outside:
            return
        self.open_calls.pop(id(call), None)
        self.calls.append(call)
        for told in self.heard:
            told(call)
        self.users.ended(call, at)

    def _changed(self, replica: Replica, at: float) -> None:
        self.gateway.heard(replica, at)
