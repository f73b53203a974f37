"""A pod's template: image, arguments, probes and resources of an engine, from its settings."""

import json
import math

from triage.lab.batching.settings import EngineSettings
from triage.lab.cluster.names import CONTAINER, Object
from triage.lab.cluster.scene import product
from triage.lab.machine.step_time import Machine
from triage.lab.pages.forms import Flavour
from triage.lab.world.replica import Replica

# The releases that `triage.lab.pages` imitates, and the next ones, which a rollout would bring.
_IMAGES = {
    Flavour.VLLM: ("docker.io/vllm/vllm-openai:v0.32.0", "docker.io/vllm/vllm-openai:v0.32.1"),
    Flavour.SGLANG: ("docker.io/lmsysorg/sglang:v0.5.23", "docker.io/lmsysorg/sglang:v0.5.24"),
}
# --gpu-memory-utilization with which `Machine.kv_tokens` reckons.
_MEMORY_SHARE = 0.9
PROBE_PERIOD_S = 5
# Of a start beyond a usual one, before the startup probe gives up.
_START_GRACE_S = 120.0
_CPU_PER_DEVICE = 8
_MEMORY_GIB_PER_DEVICE = 64


def memory_share(settings: EngineSettings, machine: Machine) -> float:
    """Part of a device's memory that weights, KV cache and overhead take together."""
    tokens = settings.num_blocks * settings.block_size
    missing = (machine.kv_tokens - tokens) * machine.checkpoint.kv_bytes_per_token / machine.count
    return _MEMORY_SHARE - missing / machine.device.memory


def image(flavour: Flavour, *, newer: bool = False) -> str:
    return _IMAGES[flavour][newer]


def arguments(replica: Replica, port: int) -> list[str]:
    """What its engine's command line says of the settings that it has now."""
    settings, machine = replica.settings, replica.spec.machine
    share = f"{memory_share(settings, machine):.2f}"
    numbers = {
        Flavour.VLLM: {
            "--model": machine.checkpoint.name,
            "--tensor-parallel-size": machine.count,
            "--gpu-memory-utilization": share,
            "--max-model-len": settings.max_model_len,
            "--max-num-seqs": settings.max_num_seqs,
            "--max-num-batched-tokens": settings.max_batched_tokens,
            "--port": port,
        },
        Flavour.SGLANG: {
            "--model-path": machine.checkpoint.name,
            "--tp-size": machine.count,
            "--mem-fraction-static": share,
            "--context-length": settings.max_model_len,
            "--max-running-requests": settings.max_num_seqs,
            "--chunked-prefill-size": settings.max_batched_tokens,
            "--port": port,
        },
    }[replica.spec.flavour]
    words = [str(word) for pair in numbers.items() for word in pair]
    if replica.spec.flavour is Flavour.SGLANG:
        return [*words, "--enable-metrics", *([] if settings.prefix_caching else ["--disable-radix-cache"])]
    if not settings.prefix_caching:
        words.append("--no-enable-prefix-caching")
    if machine.drafted:
        words += ["--speculative-config", json.dumps({"method": "eagle3", "num_speculative_tokens": machine.drafted})]
    return words


def startup_limit(replica: Replica) -> float:
    """Seconds after which a start that is not over is killed."""
    limit = replica.startup_limit
    return limit if math.isfinite(limit) else _START_GRACE_S + replica.spec.start.whole


def probe_target(*, by_port: bool) -> Object:
    return (
        {"tcpSocket": {"port": "http"}}
        if by_port
        else {"httpGet": {"path": "/health", "port": "http", "scheme": "HTTP"}}
    )


def _probe(threshold: int, *, by_port: bool) -> Object:
    return {
        **probe_target(by_port=by_port),
        "timeoutSeconds": 1,
        "periodSeconds": PROBE_PERIOD_S,
        "successThreshold": 1,
        "failureThreshold": threshold,
    }


def resources(machine: Machine) -> Object:
    amounts = {
        "cpu": str(_CPU_PER_DEVICE * machine.count),
        "memory": f"{_MEMORY_GIB_PER_DEVICE * machine.count}Gi",
        "nvidia.com/gpu": str(machine.count),
    }
    return {"limits": amounts, "requests": dict(amounts)}


def pod_template(replica: Replica, port: int, *, by_port: bool, newer: bool = False) -> Object:
    """PodSpec. newer: of the next release.

    Liveness asks only for the port: an engine whose core is dead is not restarted for it.
    """
    flavour = replica.spec.flavour
    command = {"command": ["python3", "-m", "sglang.launch_server"]} if flavour is Flavour.SGLANG else {}
    return {
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}],
        "containers": [
            {
                "name": CONTAINER,
                "image": image(flavour, newer=newer),
                **command,
                "args": arguments(replica, port),
                "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
                "env": [{"name": "HF_HOME", "value": "/models"}],
                "resources": resources(replica.spec.machine),
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 - the pod's, not ours
                "livenessProbe": {**_probe(3, by_port=True), "initialDelaySeconds": 300},
                "readinessProbe": _probe(3, by_port=by_port),
                "startupProbe": _probe(math.ceil(startup_limit(replica) / PROBE_PERIOD_S), by_port=False),
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 60,
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": {"nvidia.com/gpu.product": product(replica.spec.machine.device)},
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
