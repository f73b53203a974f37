"""A world at one moment as the cluster's objects see it, and what they say of it in common."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from triage.lab.cluster.history import History, PodLife, is_ready, replaced_by
from triage.lab.cluster.names import Object, digest, dns_label, suffix, uid
from triage.lab.machine.devices import Device
from triage.lab.pages.forms import Flavour
from triage.lab.world.replica import Exit, Replica, State
from triage.lab.world.service import Service
from triage.lab.world.world import World

# Kubernetes documents for CrashLoopBackOff: doubled up to five minutes, forgotten after ten without an end.
_BACK_OFF_MOST_S = 300.0
_BACK_OFF_FORGOTTEN_S = 600.0
# Where no server is known: the port that both engines' images are usually given.
USUAL_PORT = 8000


class Deployed(NamedTuple):
    """Replicas under one Deployment: those of one service and one engine, since a Deployment has one template.

    waiting: pods of a rollout that found no node.
    """

    service: Service
    flavour: Flavour
    replicas: tuple[Replica, ...]
    waiting: tuple[str, ...]

    @property
    def app(self) -> str:
        return dns_label(self.service.model)

    @property
    def name(self) -> str:
        return f"{self.app}-{self.flavour.value}"

    @property
    def labels(self) -> dict[str, str]:
        return {
            "app": self.app,
            "app.kubernetes.io/component": "model-server",
            "inference.example.com/engine": self.flavour.value,
            "model": self.service.model,
        }

    def replica_set(self, revision: int) -> str:
        return f"{self.name}-{template_hash(self, revision)}"


class Process(NamedTuple):
    """A container's process. ended: None while it runs."""

    begun: float
    ended: Exit | None


class Scene(NamedTuple):
    """ports: of each replica's HTTP server, by its name. now: virtual seconds."""

    world: World
    history: History
    ports: Mapping[str, int]
    now: float

    def unix(self, at: float) -> float:
        return self.world.zero + at

    def port(self, replica: Replica) -> int:
        return self.ports.get(replica.name) or USUAL_PORT

    def life(self, replica: Replica) -> PodLife:
        return self.history.life(replica)

    def ready(self, service: Service, replica: Replica) -> bool:
        return is_ready(service, replica)

    def pod_uid(self, replica: Replica) -> str:
        return uid("Pod", replica.name, self.life(replica).number)

    def processes(self, replica: Replica) -> list[Process]:
        """Of its present pod, oldest first."""
        life = self.life(replica)
        found, begun = [], life.begun
        for exit in replica.exits[life.exits_before :]:
            found.append(Process(begun, exit))
            begun = exit.at + back_off(replica, exit.at)
        if replica.state is not State.DOWN:
            # One that is said to have served for long began before its predecessor ended.
            earliest = replica.exits[-1].at if found else life.created
            found.append(Process(max(replica.started, earliest), None))
        return found


def deployed(world: World) -> list[Deployed]:
    found = []
    for service in world.services:
        for flavour in dict.fromkeys([replica.spec.flavour for replica in service.replicas]):
            mine = tuple([replica for replica in service.replicas if replica.spec.flavour is flavour])
            waiting = [pod for pod in service.unplaced if replaced_by(service, pod).spec.flavour is flavour]
            found.append(Deployed(service, flavour, mine, tuple(waiting)))
    return found


def template_hash(of: Deployed, revision: int) -> str:
    return suffix(f"{of.name}/{revision}", 9)


def back_off(replica: Replica, at: float) -> float:
    """Seconds that the container waits after the end at that moment; inf when it is not started again."""
    recent = [one for one in replica.exits if one.at <= at and at - one.at < _BACK_OFF_FORGOTTEN_S]
    if math.isinf(replica.spec.restarts_after):
        return math.inf
    return min(replica.spec.restarts_after * 2.0 ** (len(recent) - 1), _BACK_OFF_MOST_S)


def node_names(world: World) -> dict[str, str]:
    """Of each replica's machine, by the replica's name: gpu-l40s-0, gpu-l40s-1, gpu-h100-0."""
    counts: dict[str, int] = {}
    names = {}
    for replica in world.replicas:
        short = replica.spec.machine.device.name.split()[1].lower()
        names[replica.name] = f"gpu-{short}-{counts.setdefault(short, 0)}"
        counts[short] += 1
    return names


def product(device: Device) -> str:
    """As GPU feature discovery labels nodes."""
    return device.name.replace(" ", "-")


def gpu_uuid(node: str, index: int) -> str:
    return f"GPU-{uid('GPU', node, index)}"


def container_id(pod_uid: str, process: int) -> str:
    return f"containerd://{digest(f'{pod_uid}/{process}')}"


def owned_by(kind: str, name: str, version: str) -> list[Object]:
    return [
        {
            "apiVersion": version,
            "kind": kind,
            "name": name,
            "uid": uid(kind, name),
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
