"""Nodes and namespaces: where the replicas' machines are, and why a pod finds none."""

from collections import Counter

from triage.lab.cluster.names import NAMESPACE, OTHERS, Object, stamp, uid
from triage.lab.cluster.scene import Scene, node_names, product
from triage.lab.world.replica import Replica
from triage.lab.world.world import World

# As the recorded nodes: registered, and Ready, nine days before.
_AGE_S = 9 * 86_400.0
# kubelet writes an unchanged status every five minutes (nodeStatusReportFrequency).
_HEARTBEAT_S = 300.0
DRIVER = "580.95.05"
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def namespaces(scene: Scene) -> list[Object]:
    return [
        {
            "metadata": {
                "name": name,
                "uid": uid("Namespace", name),
                "creationTimestamp": stamp(scene.unix(-_AGE_S)),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        for name in (NAMESPACE, OTHERS)
    ]


def nodes(scene: Scene) -> list[Object]:
    names = node_names(scene.world)
    return [_node(scene, replica, names[replica.name], place) for place, replica in enumerate(scene.world.replicas)]


def node_address(place: int) -> str:
    """place: of the replica in its world."""
    return f"10.0.0.{11 + place}"


def _node(scene: Scene, replica: Replica, name: str, place: int) -> Object:
    machine = replica.spec.machine
    registered = stamp(scene.unix(-_AGE_S))
    heartbeat = stamp(scene.unix(scene.now // _HEARTBEAT_S * _HEARTBEAT_S))
    room = {
        "cpu": "128",
        "ephemeral-storage": "1843218412Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "2113549216Ki",
        "nvidia.com/gpu": str(machine.count),
        "pods": "250",
    }
    # The device plugin takes a device that the driver has lost out of what can be given away; the node stays Ready.
    devices = machine.count - bool(replica.xid)
    return {
        "metadata": {
            "name": name,
            "uid": uid("Node", name),
            "creationTimestamp": registered,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "nvidia.com/cuda.driver-version.full": DRIVER,
                "nvidia.com/gpu.count": str(machine.count),
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": product(machine.device),
                "topology.kubernetes.io/zone": "zone-a",
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {
            "providerID": f"metal://{name}",
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": room,
            "allocatable": {**room, "cpu": "127500m", "nvidia.com/gpu": str(devices)},
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "lastHeartbeatTime": heartbeat,
                    "lastTransitionTime": registered,
                    "reason": reason,
                    "message": message,
                }
                for kind, status, reason, message in _CONDITIONS
            ],
            "addresses": [
                {"type": "InternalIP", "address": node_address(place)},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": uid("Machine", name).replace("-", ""),
                "systemUUID": uid("System", name),
                "bootID": uid("Boot", name),
                "kernelVersion": "6.8.0-71-generic",
                "osImage": "Ubuntu 24.04.3 LTS",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kubeletVersion": "v1.36.2",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


def unschedulable(world: World, wanted: Replica) -> str:
    """The scheduler's words for a pod like that replica's: every device of its kind is held by some pod."""
    device = wanted.spec.machine.device
    fits = [one.spec.machine.device == device for one in world.replicas]
    full, other = fits.count(True), fits.count(False)
    reasons = Counter({"Insufficient nvidia.com/gpu": full, "node(s) didn't match Pod's node affinity/selector": other})
    victims = Counter(
        {"No preemption victims found for incoming pod": full, "Preemption is not helpful for scheduling": other}
    )
    head = f"0/{len(fits)} nodes are available: "
    return f"{head}{_counted(reasons)}. no new claims to deallocate, preemption: {head}{_counted(victims)}."


def _counted(reasons: Counter[str]) -> str:
    """Sorted as texts, as the scheduler does."""
    return ", ".join(sorted([f"{number} {reason}" for reason, number in reasons.items() if number]))
