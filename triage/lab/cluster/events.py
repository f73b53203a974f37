"""Events of the last hour: what scheduler, kubelet and controllers would have written of the replicas."""

import math
from collections.abc import Iterator

from triage.lab.cluster.names import CONTAINER, NAMESPACE, Object, digest, micro_stamp, stamp, uid
from triage.lab.cluster.nodes import unschedulable
from triage.lab.cluster.scene import Deployed, Process, Scene, back_off, deployed, node_names
from triage.lab.cluster.templates import PROBE_PERIOD_S, image
from triage.lab.cluster.workloads import rollout_since
from triage.lab.world.replica import Replica, State

# kube-apiserver keeps events for an hour (--event-ttl).
_KEPT_S = 3600.0
# The recorded scheduler tried again after 29 s; its event becomes a series then.
_TRIED_AGAIN_S = 30.0
# kubelet looks at a pod that backs off about so often (its sync period is 10 s, with jitter), each time with an event.
_SYNC_S = 12.0
_SCHEDULER = "default-scheduler"


def events(scene: Scene) -> list[Object]:
    names = node_names(scene.world)
    found: list[Object] = []
    for of in deployed(scene.world):
        found += _of_controllers(scene, of)
        for replica in of.replicas:
            found += _of_pod(scene, of, replica, names[replica.name])
        for pod in of.waiting:
            found.append(_unschedulable(scene, of.replicas[0], pod, 0, scene.history.waiting_since(of.service, pod)))
    for gone in scene.history.gone:
        pod = uid("Pod", gone.replica, gone.number)
        words = f"Stopping container {CONTAINER}"
        found += _kubelet(scene, gone.replica, pod, names[gone.replica], "Killing", words, [gone.at])
    return found


# ---- of whom


def _of_controllers(scene: Scene, of: Deployed) -> Iterator[Object]:
    """Scaled up once, and once more for a rollout; a pod created for each."""
    sets = [(1, len(of.replicas), scene.history.founded, [replica.name for replica in of.replicas])]
    if of.waiting:
        sets.append((2, len(of.waiting), rollout_since(scene, of), list(of.waiting)))
    for revision, wanted, since, created in sets:
        name = of.replica_set(revision)
        words = f"Scaled up replica set {name} from 0 to {wanted}"
        yield from _controller(scene, "deployment-controller", "Deployment", of.name, "ScalingReplicaSet", words, since)
        for pod in created:
            at = since
            if revision == 1:
                at = next(scene.life(replica).created for replica in of.replicas if replica.name == pod)
            words = f"Created pod: {pod}"
            yield from _controller(scene, "replicaset-controller", "ReplicaSet", name, "SuccessfulCreate", words, at)


def _of_pod(scene: Scene, of: Deployed, replica: Replica, node: str) -> Iterator[Object]:
    life, pod = scene.life(replica), scene.pod_uid(replica)
    if not replica.placed:
        yield _unschedulable(scene, replica, replica.name, life.number, life.created)
        return
    if math.isinf(life.begun):
        return
    words = f"Successfully assigned {NAMESPACE}/{replica.name} to {node}"
    yield from _scheduled(scene, replica.name, pod, words, life.begun)
    processes = scene.processes(replica)

    def said(reason: str, words: str, times: list[float], *, warning: bool = False) -> list[Object]:
        return _kubelet(scene, replica.name, pod, node, reason, words, times, warning=warning)

    begun = [process.begun for process in processes]
    wanted = image(of.flavour)
    pulled = f'Container image "{wanted}" already present on machine and can be accessed by the pod'
    for reason, words in (("Pulled", pulled), ("Created", "Container created"), ("Started", "Container started")):
        yield from said(reason, words, begun)
    where = f"127.0.0.1:{scene.port(replica)}"
    refused = f'Startup probe failed: Get "http://{where}/health": dial tcp {where}: connect: connection refused'
    failed = [at for process in processes for at in _startup_failures(scene, replica, process)]
    yield from said("Unhealthy", refused, failed, warning=True)
    if replica.state is State.BROKEN and not scene.ready(of.service, replica):
        failed = _every(PROBE_PERIOD_S, life.ready_since, scene.now)
        words = "Readiness probe failed: HTTP probe failed with statuscode: 503"
        yield from said("Unhealthy", words, failed, warning=True)
    ends = [process.ended for process in processes if process.ended is not None]
    words = f"Container {CONTAINER} failed startup probe, will be restarted"
    yield from said("Killing", words, [end.at for end in ends if (end.code, end.reason) == (137, "Killed")])
    waits = [at for end in ends for at in _every(_SYNC_S, end.at, min(end.at + back_off(replica, end.at), scene.now))]
    words = f"Back-off restarting failed container {CONTAINER} in pod {replica.name}_{NAMESPACE}({pod})"
    yield from said("BackOff", words, waits, warning=True)


def _startup_failures(scene: Scene, replica: Replica, process: Process) -> list[float]:
    over = process.begun + replica.start_times.whole
    until = min(over, process.ended.at if process.ended else scene.now)
    return _every(PROBE_PERIOD_S, process.begun + PROBE_PERIOD_S, until)


def _every(period: float, first: float, until: float) -> list[float]:
    """Moments at that distance. At most an hour of them: an event does not live longer."""
    first = max(first, until - _KEPT_S)
    return [first + period * turn for turn in range(max(math.floor((until - first) / period) + 1, 0))]


# ---- in whose form


def _kubelet(
    scene: Scene,
    name: str,
    pod: str,
    node: str,
    reason: str,
    words: str,
    times: list[float],
    *,
    warning: bool = False,
) -> list[Object]:
    """One event that is counted. times: when it was observed, in order; nothing when it never was, or too long ago."""
    about = {
        "kind": "Pod",
        "namespace": NAMESPACE,
        "name": name,
        "uid": pod,
        "apiVersion": "v1",
        "fieldPath": f"spec.containers{{{CONTAINER}}}",
    }
    return _counted(
        scene, about, reason, words, times, {"component": "kubelet", "host": node}, "Warning" if warning else "Normal"
    )


def _controller(scene: Scene, component: str, kind: str, name: str, reason: str, words: str, at: float) -> list[Object]:
    about = {"kind": kind, "namespace": NAMESPACE, "name": name, "uid": uid(kind, name), "apiVersion": "apps/v1"}
    return _counted(scene, about, reason, words, [at], {"component": component}, "Normal")


def _counted(
    scene: Scene, about: Object, reason: str, words: str, times: list[float], source: dict[str, str], kind: str
) -> list[Object]:
    if not times or times[-1] < scene.now - _KEPT_S:
        return []
    return [
        {
            "metadata": _metadata(scene, about, reason, words, times[0]),
            "involvedObject": about,
            "reason": reason,
            "message": words,
            "source": source,
            "firstTimestamp": stamp(scene.unix(times[0])),
            "lastTimestamp": stamp(scene.unix(times[-1])),
            "count": len(times),
            "type": kind,
            "eventTime": None,
            "reportingComponent": source["component"],
            "reportingInstance": source.get("host", ""),
        }
    ]


def _unschedulable(scene: Scene, like: Replica, name: str, number: int, since: float) -> Object:
    words = unschedulable(scene.world, like)
    tries = max(int((scene.now - since) / _TRIED_AGAIN_S), 0) + 1
    event = _of_scheduler(scene, name, uid("Pod", name, number), "FailedScheduling", words, since, "Warning")
    if tries > 1:
        last = since + (tries - 1) * _TRIED_AGAIN_S
        event["series"] = {"count": tries, "lastObservedTime": micro_stamp(scene.unix(last))}
    return event


def _scheduled(scene: Scene, name: str, pod: str, words: str, at: float) -> list[Object]:
    if at < scene.now - _KEPT_S:
        return []
    return [_of_scheduler(scene, name, pod, "Scheduled", words, at, "Normal")]


def _of_scheduler(scene: Scene, name: str, pod: str, reason: str, words: str, at: float, kind: str) -> Object:
    """In the form of events.k8s.io: core/v1 shows no count and no times of its own."""
    about = {"kind": "Pod", "namespace": NAMESPACE, "name": name, "uid": pod, "apiVersion": "v1"}
    return {
        "metadata": _metadata(scene, about, reason, words, at),
        "involvedObject": about,
        "reason": reason,
        "message": words,
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": kind,
        "eventTime": micro_stamp(scene.unix(at)),
        "action": "Scheduling" if reason == "FailedScheduling" else "Binding",
        "reportingComponent": _SCHEDULER,
        "reportingInstance": f"{_SCHEDULER}-control-0",
    }


def _metadata(scene: Scene, about: Object, reason: str, words: str, at: float) -> Object:
    name = f"{about['name']}.{digest(about['uid'] + reason + words, 16)}"
    return {
        "name": name,
        "namespace": NAMESPACE,
        "uid": uid("Event", name),
        "creationTimestamp": stamp(scene.unix(at)),
    }
