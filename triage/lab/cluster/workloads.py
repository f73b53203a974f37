"""Deployments and ReplicaSets of the replicas."""

from triage.lab.cluster.names import NAMESPACE, Object, stamp, uid
from triage.lab.cluster.scene import USUAL_PORT, Deployed, Scene, deployed, owned_by, template_hash
from triage.lab.cluster.templates import pod_template

PROGRESS_DEADLINE_S = 600
_MAX_SURGE = 1


def deployments(scene: Scene) -> list[Object]:
    return [_deployment(scene, of) for of in deployed(scene.world)]


def replica_sets(scene: Scene) -> list[Object]:
    found = []
    for of in deployed(scene.world):
        ready = len(_ready(scene, of))
        found.append(_replica_set(scene, of, 1, len(of.replicas), ready, scene.history.founded))
        if of.waiting:
            found.append(_replica_set(scene, of, 2, len(of.waiting), 0, rollout_since(scene, of)))
    return found


def rollout_since(scene: Scene, of: Deployed) -> float:
    """When the pods that find no node were made. There must be some."""
    return min([scene.history.waiting_since(of.service, pod) for pod in of.waiting])


def _ready(scene: Scene, of: Deployed) -> list[str]:
    return [replica.name for replica in of.replicas if scene.ready(of.service, replica)]


def _template(of: Deployed, *, newer: bool) -> Object:
    by_port = of.service.gateway.hop.by_port
    # Each replica listens on a port of its own here; a template has one.
    return pod_template(of.replicas[0], USUAL_PORT, by_port=by_port, newer=newer)


def _deployment(scene: Scene, of: Deployed) -> Object:
    revision = 2 if of.waiting else 1
    generation = 1 + scene.history.changes(of.service, of.flavour)
    return {
        "metadata": {
            "name": of.name,
            "namespace": NAMESPACE,
            "uid": uid("Deployment", of.name),
            "generation": generation,
            "creationTimestamp": stamp(scene.unix(scene.history.founded)),
            "labels": of.labels,
            "annotations": {"deployment.kubernetes.io/revision": str(revision)},
        },
        "spec": {
            "replicas": len(of.replicas),
            "selector": {"matchLabels": _selector(of)},
            "template": {
                "metadata": {"labels": of.labels},
                "spec": _template(of, newer=bool(of.waiting)),
            },
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 0, "maxSurge": _MAX_SURGE},
            },
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": PROGRESS_DEADLINE_S,
        },
        "status": _deployment_status(scene, of, generation),
    }


def _deployment_status(scene: Scene, of: Deployed, generation: int) -> Object:
    """Counts of 0 are left out, as the API does."""
    ready, whole = len(_ready(scene, of)), len(of.replicas) + len(of.waiting)
    counts = {
        "replicas": whole,
        "updatedReplicas": len(of.waiting) or whole,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": whole - ready,
    }
    return {
        "observedGeneration": generation,
        **{name: count for name, count in counts.items() if count},
        "terminatingReplicas": 0,
        "conditions": [_available(scene, of), _progressing(scene, of)],
    }


def _available(scene: Scene, of: Deployed) -> Object:
    since = [scene.life(replica).ready_since for replica in of.replicas]
    missing = [scene.life(replica).ready_since for replica in of.replicas if not scene.ready(of.service, replica)]
    if missing:
        return _condition(
            scene,
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
            min(missing),
        )
    return _condition(
        scene, "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", max(since)
    )


def _progressing(scene: Scene, of: Deployed) -> Object:
    if not of.waiting:
        words = f'ReplicaSet "{of.replica_set(1)}" has successfully progressed.'
        return _condition(scene, "Progressing", "True", "NewReplicaSetAvailable", words, scene.history.founded)
    since, newest = rollout_since(scene, of), of.replica_set(2)
    if scene.now - since < PROGRESS_DEADLINE_S:
        words = f'ReplicaSet "{newest}" is progressing.'
        return _condition(scene, "Progressing", "True", "ReplicaSetUpdated", words, since)
    words = f'ReplicaSet "{newest}" has timed out progressing.'
    return _condition(scene, "Progressing", "False", "ProgressDeadlineExceeded", words, since + PROGRESS_DEADLINE_S)


def _condition(scene: Scene, kind: str, status: str, reason: str, message: str, since: float) -> Object:
    at = stamp(scene.unix(since))
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": at,
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }


def _selector(of: Deployed) -> dict[str, str]:
    return {key: value for key, value in of.labels.items() if key in ("app", "inference.example.com/engine")}


def _replica_set(scene: Scene, of: Deployed, revision: int, wanted: int, ready: int, since: float) -> Object:
    hash_label = {"pod-template-hash": template_hash(of, revision)}
    labels = {**of.labels, **hash_label}
    name = of.replica_set(revision)
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid("ReplicaSet", name),
            "generation": 1,
            "creationTimestamp": stamp(scene.unix(since)),
            "labels": labels,
            "annotations": {
                "deployment.kubernetes.io/desired-replicas": str(len(of.replicas)),
                "deployment.kubernetes.io/max-replicas": str(len(of.replicas) + _MAX_SURGE),
                "deployment.kubernetes.io/revision": str(revision),
            },
            "ownerReferences": owned_by("Deployment", of.name, "apps/v1"),
        },
        "spec": {
            "replicas": wanted,
            "selector": {"matchLabels": {**_selector(of), **hash_label}},
            "template": {"metadata": {"labels": labels}, "spec": _template(of, newer=revision == 2)},
        },
        "status": {
            "replicas": wanted,
            "fullyLabeledReplicas": wanted,
            **({"readyReplicas": ready, "availableReplicas": ready} if ready else {}),
            "terminatingReplicas": 0,
            "observedGeneration": 1,
        },
    }
