"""Services and EndpointSlices: who would be asked for a model."""

from triage.lab.cluster.names import NAMESPACE, Object, digest, dns_label, stamp, suffix, uid
from triage.lab.cluster.scene import USUAL_PORT, Scene, node_names, owned_by
from triage.lab.world.replica import Replica
from triage.lab.world.service import Service


def services(scene: Scene) -> list[Object]:
    return [_service(scene, dns_label(service.model)) for service in scene.world.services]


def endpoint_slices(scene: Scene) -> list[Object]:
    """One for each port: the pods' ports differ, and a slice has one list of ports for all of its endpoints."""
    names = node_names(scene.world)
    found = []
    for service in scene.world.services:
        placed = [replica for replica in service.replicas if replica.placed]
        found += [_slice(scene, service, replica, names[replica.name]) for replica in placed]
        if not placed:
            found.append(_slice(scene, service, None, ""))
    return found


def _service(scene: Scene, name: str) -> Object:
    high, low = divmod(int(digest(name, 4), 16), 256)
    address = f"10.96.{high}.{low}"
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid("Service", name),
            "creationTimestamp": stamp(scene.unix(scene.history.founded)),
            "labels": {"app": name},
        },
        "spec": {
            "ports": [{"name": "http", "protocol": "TCP", "port": USUAL_PORT, "targetPort": "http"}],
            "selector": {"app": name},
            "clusterIP": address,
            "clusterIPs": [address],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


def _slice(scene: Scene, service: Service, replica: Replica | None, node: str) -> Object:
    """Without a replica: the empty one that is left when no pod has an address."""
    app = dns_label(service.model)
    name = f"{app}-{suffix(replica.name if replica else app, 5)}"
    changed = stamp(scene.unix(scene.life(replica).ready_since if replica else scene.now))
    return {
        "metadata": {
            "name": name,
            "generateName": f"{app}-",
            "namespace": NAMESPACE,
            "uid": uid("EndpointSlice", name),
            "generation": 1,
            "creationTimestamp": stamp(scene.unix(scene.history.founded)),
            "labels": {
                "app": app,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                "kubernetes.io/service-name": app,
            },
            "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": changed},
            "ownerReferences": owned_by("Service", app, "v1"),
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(scene, service, replica, node)] if replica else None,
        "ports": [{"name": "http", "protocol": "TCP", "port": scene.port(replica)}] if replica else None,
    }


def _endpoint(scene: Scene, service: Service, replica: Replica, node: str) -> Object:
    ready = scene.ready(service, replica)
    return {
        "addresses": ["127.0.0.1"],
        "conditions": {"ready": ready, "serving": ready, "terminating": False},
        "targetRef": {
            "kind": "Pod",
            "namespace": NAMESPACE,
            "name": replica.name,
            "uid": scene.pod_uid(replica),
        },
        "nodeName": node,
        "zone": "zone-a",
    }
