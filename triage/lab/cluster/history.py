"""What a cluster remembers and the world does not: which pod of a name this is, and since when something is so."""

import math
from collections import deque

import msgspec

from triage.lab.batching.settings import EngineSettings
from triage.lab.pages.forms import Flavour
from triage.lab.world.replica import Replica, State
from triage.lab.world.service import Service
from triage.lab.world.world import World

# Pods that are gone: events about them are shown for an hour.
_MOST_GONE = 50


class PodLife(msgspec.Struct, frozen=True):
    """The present pod of a replica. Virtual seconds.

    number: of pods that had the name before. exits_before: of replica.exits, those of earlier pods.
    begun: start of its first process, inf while it waits for a node. ready_since: since when `ready` is as it is.
    """

    number: int
    created: float
    exits_before: int
    begun: float
    ready: bool
    ready_since: float


class Gone(msgspec.Struct, frozen=True):
    """A pod that was taken away. number: as in PodLife."""

    replica: str
    number: int
    at: float


class _Seen(msgspec.Struct, frozen=True):
    """A replica at the last look."""

    starts: int
    exits: int
    down: bool
    placed: bool
    settings: EngineSettings


def is_ready(service: Service, replica: Replica) -> bool:
    """What the readiness probe finds: HTTP 200 of /health, or an open port where it only asks for that."""
    return replica.placed and (replica.listening if service.gateway.hop.by_port else replica.healthy)


class History:
    """Call `look` after each change of the world, or regularly: moments are as exact as the looks are frequent.

    founded: virtual seconds at which everything was created.
    """

    def __init__(self, world: World) -> None:
        self.founded = min([replica.started for replica in world.replicas], default=0.0)
        self.gone: deque[Gone] = deque(maxlen=_MOST_GONE)
        self._world = world
        self._lives: dict[str, PodLife] = {}
        self._seen: dict[str, _Seen] = {}
        self._waiting: dict[tuple[str, str], float] = {}
        self._changes: dict[tuple[str, Flavour], int] = {}
        self._last = -math.inf
        self.look(world.now)

    def look(self, now: float) -> None:
        for service in self._world.services:
            self._look_at_rollout(service, now)
            for replica in service.replicas:
                self._look_at(service, replica, now)
        self._last = now

    def life(self, replica: Replica) -> PodLife:
        return self._lives[replica.name]

    def waiting_since(self, service: Service, pod: str) -> float:
        """When a pod of `service.unplaced` was created."""
        return self._waiting[service.model, pod]

    def changes(self, service: Service, flavour: Flavour) -> int:
        """How often the template of these replicas' pods has been changed."""
        return self._changes.get((service.model, flavour), 0)

    # ---- inside

    def _look_at_rollout(self, service: Service, now: float) -> None:
        known = {pod for model, pod in self._waiting if model == service.model}
        present = set(service.unplaced)
        for pod in sorted(present - known):
            self._waiting[service.model, pod] = now
        for pod in known - present:
            del self._waiting[service.model, pod]
        for pod in present ^ known:
            self._changed(service, replaced_by(service, pod))

    def _look_at(self, service: Service, replica: Replica, now: float) -> None:
        ready = is_ready(service, replica)
        seen = _Seen(replica.starts, len(replica.exits), replica.state is State.DOWN, replica.placed, replica.settings)
        before = self._seen.get(replica.name)
        if before is None:
            life = self._first(replica, ready)
        else:
            if before.settings != seen.settings:
                self._changed(service, replica)
            life = self._next(replica, before, seen, now)
            if ready != life.ready:
                since = _changed_at(replica)
                life = msgspec.structs.replace(
                    life, ready=ready, ready_since=since if self._last < since <= now else now
                )
        self._seen[replica.name] = seen
        self._lives[replica.name] = life

    def _first(self, replica: Replica, ready: bool) -> PodLife:
        """Nobody has looked before: what has ended until now belongs to this pod, unless it waits for a node."""
        if not replica.placed:
            at = replica.exits[-1].at if replica.exits else replica.started
            self.gone.append(Gone(replica.name, 0, at))
            return PodLife(1, at, len(replica.exits), math.inf, ready, at)
        begun = self.founded if replica.exits else replica.started
        return PodLife(0, begun, 0, begun, ready, _changed_at(replica))

    def _next(self, replica: Replica, before: _Seen, seen: _Seen, now: float) -> PodLife:
        life = self._lives[replica.name]
        if not seen.placed and (before.placed or seen.exits > before.exits):
            at = replica.exits[-1].at if seen.exits > before.exits else now
            self.gone.append(Gone(replica.name, life.number, at))
            return PodLife(life.number + 1, at, seen.exits, math.inf, False, at)
        if seen.placed and not before.placed:
            return msgspec.structs.replace(life, begun=max(replica.started, life.created))
        # kubelet starts a container again for each that has ended; any other start is another pod.
        if seen.starts - before.starts > seen.exits - before.exits + before.down - seen.down:
            self.gone.append(Gone(replica.name, life.number, now))
            began = replica.started
            return PodLife(life.number + 1, began, seen.exits, began, life.ready, _changed_at(replica))
        return life

    def _changed(self, service: Service, replica: Replica) -> None:
        key = (service.model, replica.spec.flavour)
        self._changes[key] = self._changes.get(key, 0) + 1


def replaced_by(service: Service, pod: str) -> Replica:
    """The replica that a pod of `service.unplaced` is to take the place of: they are named after it."""
    named = [replica for replica in service.replicas if pod.startswith(replica.name)]
    return max(named, key=lambda replica: len(replica.name)) if named else service.replicas[0]


def _changed_at(replica: Replica) -> float:
    """When a replica came into the state that it is in."""
    if replica.state is State.SERVING:
        return replica.started + replica.start_times.whole
    if replica.state is State.BROKEN and replica.log:
        return replica.log[-1][0]  # its core's last words: the front end writes nothing more
    return replica.exits[-1].at if replica.exits else replica.started
