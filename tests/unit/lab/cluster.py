"""A fleet for the cluster's tests, and what a JSON shape is."""

from collections.abc import Callable
from typing import Any

from tests.unit.lab.conftest import RECORDINGS
from triage.lab.cluster.history import History
from triage.lab.cluster.objects import cluster_objects
from triage.lab.cluster.scene import Scene
from triage.lab.fleets import COMPANION, workload_named
from triage.lab.world.replica import Replica
from triage.lab.world.world import World

KUBERNETES = RECORDINGS / "kubernetes"
ZERO = 1_764_800_000.0
# Maps whose keys are anybody's: only that they are there counts.
FREE = {
    "labels", "annotations", "matchLabels", "selector", "nodeSelector", "limits", "requests", "allocatable", "capacity",
    "allocatedResources",
}  # fmt: skip


class Town:
    """A chat fleet with a companion, and the cluster around it. Virtual seconds."""

    def __init__(self, workload: str = "chat") -> None:
        self.world = World([*workload_named(workload).services, COMPANION], "cluster", ZERO)
        self.history = History(self.world)
        self.service = self.world.services[0]
        self.ports = {replica.name: 40_001 + place for place, replica in enumerate(self.world.replicas)}

    def replica(self, name: str) -> Replica:
        return next(one for one in self.world.replicas if one.name == name)

    def pass_to(self, at: float) -> None:
        """Time goes by, and the cluster looks every second."""
        while self.world.now < at:
            self.world.advance(min(self.world.now + 1.0, at))
            self.history.look(self.world.now)

    def do(self, act: Callable[[float], None]) -> None:
        act(self.world.now)
        self.history.look(self.world.now)

    def objects(self) -> dict:
        return cluster_objects(Scene(self.world, self.history, self.ports, self.world.now))

    def of(self, plural: str) -> dict[str, Any]:
        """By name."""
        return {key[2]: one for key, one in self.objects().items() if key[0] == plural}

    def events(self, name: str, reason: str) -> list[Any]:
        found = [one for one in self.of("events").values() if one["involvedObject"]["name"] == name]
        return [one for one in found if one["reason"] == reason]


def paths(value: Any, where: str = "") -> dict[str, set[str]]:
    """Every path of a JSON value with the types found there; [] for each item of a list."""
    found = {where: {type(value).__name__}}
    inside: list[tuple[str, Any]] = []
    if isinstance(value, dict) and where.rpartition(".")[2] not in FREE:
        inside = [(f"{where}.{key}", one) for key, one in value.items()]
    elif isinstance(value, list):
        inside = [(f"{where}[]", one) for one in value]
    for place, one in inside:
        for path, types in paths(one, place).items():
            found.setdefault(path, set()).update(types)
    return found


def crashing(town: Town) -> None:
    replica = town.replica("chat-a")
    replica.fails_start = True
    town.do(lambda now: replica.exit(now, 1, "Error", ["out of memory"]))
    town.pass_to(town.world.now + 200.0)


def slow_start(town: Town) -> None:
    replica = town.replica("chat-a")
    replica.slow_start(download=500.0, limit=100.0)
    town.do(lambda now: replica.exit(now, 0, "Completed"))
    town.pass_to(town.world.now + 150.0)


def without_place(town: Town) -> None:
    town.do(town.replica("chat-a").vacate)
    town.pass_to(town.world.now + 70.0)


def stuck_rollout(town: Town) -> None:
    town.do(lambda now: town.service.unplaced.append("chat-b-next"))
    town.pass_to(town.world.now + 5.0)


def broken(town: Town) -> None:
    town.do(lambda now: town.replica("chat-a").lose_core(now, ["its last words"]))
    town.pass_to(town.world.now + 60.0)
