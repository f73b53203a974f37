"""What happened before somebody looked: a healthy past, a fault, and the pages of the last seconds."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from triage.lab.account.ledger import Ledger, read_ledger
from triage.lab.cluster.history import History
from triage.lab.faults.fault import Ground
from triage.lab.serving.access_log import AccessLog
from triage.lab.world.spec import ServiceSpec
from triage.lab.world.watch import Watch
from triage.lab.world.world import World

# An engine has a usual speed once it is ten minutes old.
_HEALTHY_S = 660.0
# From the fault to the first look, as somebody is paged.
_INCIDENT_S = 75.0
# Pages that a recorder would have kept of the last seconds before the first look.
_KEPT_S = 40.0
_KEPT_EVERY_S = 1.0
# What users remember as now.
SPAN_S = 60.0


class KeptPage(msgspec.Struct, frozen=True):
    """A metrics page from before the first look. at: unix seconds. status 0: nobody accepted the connection."""

    replica: str
    at: float
    status: int
    text: str


class Past(msgspec.Struct, frozen=True):
    """A world at the moment of the first look."""

    world: World
    watch: Watch
    ground: Ground
    before: Ledger
    pages: tuple[KeptPage, ...]
    log: AccessLog
    history: History


def make_past(services: Sequence[ServiceSpec], seed: str, begin: Callable[[Ground], None], access_log: Path) -> Past:
    """A world that was well for eleven minutes, until `begin` did something to its first service."""
    zero = time.time() - _HEALTHY_S - _INCIDENT_S
    world, watch = World(services, seed, zero), Watch()
    history = History(world)
    ground = Ground(world, world.services[0], watch)
    log = AccessLog(access_log, zero)

    for service in world.services:
        service.heard.append(log.write)
    world.advance(_HEALTHY_S)
    before = read_ledger(ground.service, _HEALTHY_S - 2 * SPAN_S, _HEALTHY_S)
    begin(ground)
    history.look(world.now)
    pages = []
    world.advance(_HEALTHY_S + _INCIDENT_S - _KEPT_S)
    while world.now < _HEALTHY_S + _INCIDENT_S:
        for replica in world.replicas:
            status, text = watch.page(replica, world.now)
            pages.append(KeptPage(replica.name, zero + world.now, status, text))
        history.look(world.now)
        world.advance(world.now + _KEPT_EVERY_S)
    return Past(world, watch, ground, before, tuple(pages), log, history)
