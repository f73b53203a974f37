"""Everything that the API server of the fleet's cluster knows at one moment."""

from collections.abc import Callable, Mapping

from triage.lab.cluster.events import events
from triage.lab.cluster.names import Object
from triage.lab.cluster.nodes import namespaces, nodes
from triage.lab.cluster.pods import pods
from triage.lab.cluster.scene import Scene
from triage.lab.cluster.services import endpoint_slices, services
from triage.lab.cluster.workloads import deployments, replica_sets

# (resource's plural name, namespace or "", name)
Key = tuple[str, str, str]

_WRITERS: Mapping[str, Callable[[Scene], list[Object]]] = {
    "namespaces": namespaces,
    "nodes": nodes,
    "services": services,
    "deployments": deployments,
    "replicasets": replica_sets,
    "pods": pods,
    "endpointslices": endpoint_slices,
    "events": events,
}


def cluster_objects(scene: Scene) -> dict[Key, Object]:
    """As the API writes them, without kind, apiVersion and resourceVersion. Equal for equal scenes."""
    return {
        (plural, one["metadata"].get("namespace", ""), one["metadata"]["name"]): one
        for plural, write in _WRITERS.items()
        for one in write(scene)
    }
