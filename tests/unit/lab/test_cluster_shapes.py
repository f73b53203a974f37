"""The cluster's objects against the recorded ones: fields and types; and what must hold in every situation."""

import ast
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import triage.lab.cluster
from tests.unit.lab.cluster import (
    KUBERNETES,
    Town,
    broken,
    crashing,
    paths,
    slow_start,
    stuck_rollout,
    without_place,
)

RECORDED = {
    "pods": "inference/pods-four.json",
    "deployments": "inference/deployments-three.json",
    "replicasets": "inference/replicasets-three.json",
    "services": "inference/services.json",
    "endpointslices": "inference/endpointslices.json",
    "events": "inference/events-each-reason.json",
    "nodes": "cluster/nodes-two.json",
    "namespaces": "cluster/namespaces.json",
}
# Ours, and of the API, but not in these recordings.
OTHERS = ("tcpSocket", ".command")
# In every recorded object, and not in ours: the store adds versions; our pods have names of their own and no token
# of a service account, and liveness asks for the port alone.
NOT_OURS = ("resourceVersion", "generateName", ".projected", "readOnly", "livenessProbe.httpGet")


SITUATIONS = pytest.mark.parametrize(
    "happen", [lambda town: None, crashing, slow_start, without_place, stuck_rollout, broken]
)


@pytest.fixture
def town() -> Town:
    """At 20 s, and all is well."""
    town = Town()
    town.pass_to(20.0)
    return town


def recorded(plural: str) -> list[dict]:
    return json.loads((KUBERNETES / RECORDED[plural]).read_text())["items"]


@SITUATIONS
def test_objects_have_the_recorded_fields_and_types(town: Town, happen: Callable[[Town], None]) -> None:
    happen(town)
    for plural in RECORDED:
        real: dict[str, set[str]] = {}
        for one in recorded(plural):
            for path, types in paths(one).items():
                real.setdefault(path, set()).update(types)
        for name, one in town.of(plural).items():
            for path, types in paths(one).items():
                if not any(part in path for part in OTHERS):
                    assert types <= real.get(path, set()), f"{plural} {name} {path}"


def test_what_every_recorded_object_has_ours_have(town: Town) -> None:
    for plural in RECORDED:
        everywhere = set.intersection(*[set(paths(one)) for one in recorded(plural)])
        for name, one in town.of(plural).items():
            missing = [path for path in everywhere - set(paths(one)) if not any(part in path for part in NOT_OURS)]
            assert not missing, f"{plural} {name}"


@SITUATIONS
def test_pods_ask_for_no_more_devices_than_their_nodes_can_give(town: Town, happen: Callable[[Town], None]) -> None:
    """And when a pod waits, every node that it could go to is full: the scheduler's words are true."""
    happen(town)
    held: Counter[str] = Counter()
    for pod in town.of("pods").values():
        if "nodeName" in pod["spec"]:
            requests = pod["spec"]["containers"][0]["resources"]["requests"]
            held[pod["spec"]["nodeName"]] += int(requests["nvidia.com/gpu"])
    for name, node in town.of("nodes").items():
        assert held[name] == int(node["status"]["allocatable"]["nvidia.com/gpu"])


def test_nothing_here_sees_faults_or_the_account() -> None:
    """What the cluster tells must follow from the world alone."""
    for file in Path(triage.lab.cluster.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [one for one in names if one.startswith(("triage.lab.faults", "triage.lab.account"))], file
