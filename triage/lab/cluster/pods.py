"""Pods: one for each replica, those that find no node, and somebody else's on the devices that are missing."""

import math

from triage.lab.cluster.history import replaced_by
from triage.lab.cluster.names import CONTAINER, NAMESPACE, OTHERS, Object, digest, go_duration, stamp, uid
from triage.lab.cluster.nodes import node_address, unschedulable
from triage.lab.cluster.scene import (
    USUAL_PORT,
    Deployed,
    Scene,
    back_off,
    container_id,
    deployed,
    node_names,
    owned_by,
    template_hash,
)
from triage.lab.cluster.templates import image, pod_template, resources
from triage.lab.world.replica import Exit, Replica, State

# What the admission plug-ins add to every pod.
_ADDED_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]
_NOTEBOOK = "docker.io/jupyter/pytorch-notebook:cuda12-2026-10-05"


def pods(scene: Scene) -> list[Object]:
    names = node_names(scene.world)
    places = {replica.name: place for place, replica in enumerate(scene.world.replicas)}
    found = []
    for of in deployed(scene.world):
        for replica in of.replicas:
            if replica.placed:
                found.append(_placed(scene, of, replica, names[replica.name], node_address(places[replica.name])))
            else:
                life = scene.life(replica)
                found.append(_waiting(scene, of, replica, replica.name, life.number, life.created, newer=False))
                found.append(_notebook(scene, replica, names[replica.name], node_address(places[replica.name])))
        for pod in of.waiting:
            since = scene.history.waiting_since(of.service, pod)
            found.append(_waiting(scene, of, replaced_by(of.service, pod), pod, 0, since, newer=True))
    return found


def terminated_reason(end: Exit) -> str:
    """The container runtime's word: kubelet knows no other than these three here."""
    if end.code == 0:
        return "Completed"
    return "OOMKilled" if end.reason == "OOMKilled" else "Error"


def _metadata(scene: Scene, of: Deployed, name: str, number: int, created: float, revision: int) -> Object:
    return {
        "name": name,
        "namespace": NAMESPACE,
        "uid": uid("Pod", name, number),
        "generation": 1,
        "creationTimestamp": stamp(scene.unix(created)),
        "labels": {**of.labels, "pod-template-hash": template_hash(of, revision)},
        "ownerReferences": owned_by("ReplicaSet", of.replica_set(revision), "apps/v1"),
    }


def _spec(of: Deployed, replica: Replica, port: int, *, newer: bool) -> Object:
    template = pod_template(replica, port, by_port=of.service.gateway.hop.by_port, newer=newer)
    return {
        **template,
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "tolerations": [*template["tolerations"], *_ADDED_TOLERATIONS],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _waiting(
    scene: Scene, of: Deployed, replica: Replica, name: str, number: int, created: float, *, newer: bool
) -> Object:
    """A pod that no node has room for. newer: of a rollout's new template."""
    return {
        "metadata": _metadata(scene, of, name, number, created, 2 if newer else 1),
        "spec": _spec(of, replica, USUAL_PORT if newer else scene.port(replica), newer=newer),
        "status": {
            "phase": "Pending",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "observedGeneration": 1,
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": stamp(scene.unix(created)),
                    "reason": "Unschedulable",
                    "message": unschedulable(scene.world, replica),
                }
            ],
            "qosClass": "Guaranteed",
        },
    }


def _placed(scene: Scene, of: Deployed, replica: Replica, node: str, address: str) -> Object:
    life = scene.life(replica)
    ready = scene.ready(of.service, replica)
    created = stamp(scene.unix(life.begun))
    readiness: Object = {
        "observedGeneration": 1,
        "status": "True" if ready else "False",
        "lastProbeTime": None,
        "lastTransitionTime": stamp(scene.unix(life.ready_since)),
    }
    if not ready:
        readiness["reason"] = "ContainersNotReady"
        readiness["message"] = f"containers with unready status: [{CONTAINER}]"
    done = {"observedGeneration": 1, "status": "True", "lastProbeTime": None, "lastTransitionTime": created}
    return {
        "metadata": _metadata(scene, of, replica.name, life.number, life.created, 1),
        "spec": {**_spec(of, replica, scene.port(replica), newer=False), "nodeName": node},
        "status": {
            "observedGeneration": 1,
            "phase": "Running",
            "conditions": [
                {"type": "PodReadyToStartContainers", **done},
                {"type": "Initialized", **done},
                {"type": "Ready", **readiness},
                {"type": "ContainersReady", **readiness},
                {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": created},
            ],
            "hostIP": address,
            "hostIPs": [{"ip": address}],
            "podIP": "127.0.0.1",
            "podIPs": [{"ip": "127.0.0.1"}],
            "startTime": created,
            "containerStatuses": [_container(scene, of, replica, ready)],
            "qosClass": "Guaranteed",
        },
    }


def _container(scene: Scene, of: Deployed, replica: Replica, ready: bool) -> Object:
    pod, processes = scene.pod_uid(replica), scene.processes(replica)
    ended = [process for process in processes if process.ended is not None]
    running = replica.state is not State.DOWN
    last = (
        {} if not ended else {"terminated": _terminated(scene, pod, len(ended) - 1, ended[-1].begun, ended[-1].ended)}
    )
    if running:
        state: Object = {"running": {"startedAt": stamp(scene.unix(processes[-1].begun))}}
    elif ended and math.isinf(back_off(replica, scene.now)):
        state, last = last, {}
    else:
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": _back_off_message(replica, pod)}}
    whole = resources(replica.spec.machine)
    wanted = image(of.flavour)
    return {
        "name": CONTAINER,
        "state": state,
        "lastState": last,
        "ready": ready,
        "restartCount": max(len(processes) - 1, 0),
        "image": wanted,
        "imageID": f"{wanted.rpartition(':')[0]}@sha256:{digest(wanted)}",
        "containerID": container_id(pod, max(len(processes) - 1, 0)),
        "started": replica.listening,
        "allocatedResources": whole["requests"],
        "resources": whole,
    }


def _terminated(scene: Scene, pod: str, process: int, begun: float, end: Exit | None) -> Object:
    assert end is not None
    return {
        "exitCode": end.code,
        "reason": terminated_reason(end),
        "startedAt": stamp(scene.unix(begun)),
        "finishedAt": stamp(scene.unix(end.at)),
        "containerID": container_id(pod, process),
    }


def _back_off_message(replica: Replica, pod: str) -> str:
    wait = back_off(replica, replica.exits[-1].at) if replica.exits else replica.spec.restarts_after
    return f"back-off {go_duration(wait)} restarting failed container={CONTAINER} pod={replica.name}_{NAMESPACE}({pod})"


def _notebook(scene: Scene, replica: Replica, node: str, address: str) -> Object:
    """Whoever holds the devices now: without it the scheduler's words would be untrue."""
    name, machine = notebook_name(node), replica.spec.machine
    since = stamp(scene.unix(scene.life(replica).created))
    whole = resources(machine)
    done = {"observedGeneration": 1, "status": "True", "lastProbeTime": None, "lastTransitionTime": since}
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    return {
        "metadata": {
            "name": name,
            "namespace": OTHERS,
            "uid": uid("Pod", name, scene.life(replica).number),
            "generation": 1,
            "creationTimestamp": since,
            "labels": {"app": "notebook"},
        },
        "spec": {
            "containers": [
                {
                    "name": "notebook",
                    "image": _NOTEBOOK,
                    "resources": whole,
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "nodeName": node,
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                *_ADDED_TOLERATIONS,
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "observedGeneration": 1,
            "phase": "Running",
            "conditions": [
                *[{"type": kind, **done} for kind in kinds],
                {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": since},
            ],
            "hostIP": address,
            "hostIPs": [{"ip": address}],
            "startTime": since,
            "containerStatuses": [
                {
                    "name": "notebook",
                    "state": {"running": {"startedAt": since}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": _NOTEBOOK,
                    "imageID": f"{_NOTEBOOK.rpartition(':')[0]}@sha256:{digest(_NOTEBOOK)}",
                    "containerID": container_id(uid("Pod", name), 0),
                    "started": True,
                    "allocatedResources": whole["requests"],
                    "resources": whole,
                }
            ],
            "qosClass": "Guaranteed",
        },
    }


def notebook_name(node: str) -> str:
    return f"notebook-{node}"
