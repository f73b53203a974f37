"""A fault, and the ground on which it begins."""

import random
from collections.abc import Callable

import msgspec

from triage.lab.world.replica import Replica
from triage.lab.world.service import Service
from triage.lab.world.spec import ServiceSpec
from triage.lab.world.watch import Watch
from triage.lab.world.world import World


class Ground:
    """One service of a world, and the way its pages are read. Changes add up until `mend`."""

    def __init__(self, world: World, service: Service, watch: Watch) -> None:
        self.world = world
        self.service = service
        self.watch = watch

    @property
    def now(self) -> float:
        return self.world.now

    @property
    def replicas(self) -> list[Replica]:
        return self.service.replicas

    def some(self, rng: random.Random, share: float) -> list[Replica]:
        """That part of the replicas, one at least, drawn by `rng`."""
        number = min(max(round(share * len(self.replicas)), 1), len(self.replicas))
        return sorted(rng.sample(self.replicas, number), key=lambda replica: replica.name)

    def hop(self, **changes: object) -> None:
        self.service.route(msgspec.structs.replace(self.service.gateway.hop, **changes))

    def crowd(self, **changes: object) -> None:
        users = self.service.users
        users.change(msgspec.structs.replace(users.crowd, **changes), self.now)

    def more_users(self, factor: float) -> None:
        self.crowd(users=round(self.service.users.crowd.users * factor))

    def habits(self, **changes: object) -> None:
        self.crowd(habits=msgspec.structs.replace(self.service.users.crowd.habits, **changes))

    def condition(self, replica: Replica, **changes: object) -> None:
        replica.change(msgspec.structs.replace(replica.condition, **changes), self.now)

    def limits(self, replica: Replica, **changes: object) -> None:
        replica.limit(msgspec.structs.replace(replica.settings, **changes), self.now)

    def mend(self) -> None:
        """Everything as it was before anything went wrong."""
        self.service.route(self.service.spec.hop)
        self.service.unplaced.clear()
        self.service.users.change(self.service.crowd, self.now)
        self.watch.clear()
        for replica in self.replicas:
            replica.mend(self.now)


Begin = Callable[[Ground, float, random.Random], None]


def everywhere(spec: ServiceSpec) -> bool:  # noqa: ARG001 - the signature of `applies`
    return True


class Fault(msgspec.Struct, frozen=True):
    """begin(ground, severity, rng): severity 0..1, where 0 is next to nothing.

    name, title: shown to people who choose it, never to those who have to find it.
    applies: whether a service has what the fault needs.
    """

    name: str
    title: str
    begin: Begin
    applies: Callable[[ServiceSpec], bool] = everywhere
