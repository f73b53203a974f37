"""The world: services in one virtual time."""

from collections.abc import Sequence

from triage.lab.world.replica import Replica
from triage.lab.world.service import Service
from triage.lab.world.spec import ServiceSpec
from triage.lab.world.timeline import Timeline


class World:
    """Deterministic by seed and by the moments at which it is changed.

    now: virtual seconds. zero: unix seconds at which they begin.
    """

    def __init__(self, specs: Sequence[ServiceSpec], seed: str, zero: float = 0.0) -> None:
        self.zero = zero
        self.now = 0.0
        self.timeline = Timeline()
        self.services = [Service(spec, self.timeline, seed, zero) for spec in specs]
        self.replicas: list[Replica] = [replica for service in self.services for replica in service.replicas]
        for service in self.services:
            service.begin(0.0)

    def advance(self, until: float) -> None:
        """Everything that happens up to `until`. A moment in the past changes nothing."""
        timeline, replicas = self.timeline, self.replicas
        while True:
            event, place = min([(replica.engine.next_at, place) for place, replica in enumerate(replicas)])
            due = timeline.next_at
            if event > until and due > until:
                break
            if due <= event:
                timeline.proceed()
            else:
                replicas[place].engine.proceed()
        self.now = max(self.now, until)
        for replica in replicas:
            replica.engine.settle(self.now)
