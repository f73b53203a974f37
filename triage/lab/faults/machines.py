"""Faults of devices, hosts and processes."""

import random

from triage.lab.faults.fault import Fault, Ground
from triage.lab.pages.forms import Flavour
from triage.lab.world.replica import Replica
from triage.lab.world.spec import ServiceSpec

# NVIDIA XID 79: the GPU has fallen off the bus.
_OFF_THE_BUS = 79


def _speculation(ground: Ground, severity: float, _: random.Random) -> None:
    for replica in ground.replicas:
        if replica.spec.machine.drafted:
            ground.condition(replica, acceptance=replica.spec.machine.acceptance * (1.0 - 0.95 * severity))


def _throttled(ground: Ground, severity: float, rng: random.Random) -> None:
    """Heat lowers the clocks; what is bound by memory suffers less."""
    for replica in ground.some(rng, rng.random()):
        ground.condition(replica, compute=1.0 - 0.85 * severity, bandwidth=1.0 - 0.75 * severity)


def _host(ground: Ground, severity: float, rng: random.Random) -> None:
    for replica in ground.some(rng, rng.random()):
        ground.condition(replica, host=1.0 - 0.97 * severity)


def _xid(ground: Ground, severity: float, rng: random.Random) -> None:
    for replica in ground.some(rng, 0.5 * severity):
        replica.xid = _OFF_THE_BUS
        replica.lose_core(ground.now, replica.says.device_lost(ground.now))


def _stalled(ground: Ground, severity: float, rng: random.Random) -> None:
    for replica in ground.some(rng, severity):
        ground.condition(replica, halted=True)


def _dead_but_ready(ground: Ground, severity: float, rng: random.Random) -> None:
    """A readiness check that only asks whether the port is open, of an engine whose front end outlives its core."""
    ground.hop(by_port=True)
    standing = [replica for replica in ground.replicas if replica.spec.flavour is Flavour.VLLM]
    number = max(round(0.7 * severity * len(standing)), 1)
    for replica in sorted(rng.sample(standing, number), key=lambda one: one.name):
        replica.lose_core(ground.now, replica.says.worker_died(ground.now))


def _crash_loop(ground: Ground, severity: float, rng: random.Random) -> None:
    """Something else holds the device's memory: each start fails once the weights are there."""
    for replica in ground.some(rng, 0.7 * severity):
        _fails(ground, replica)


def _fails(ground: Ground, replica: Replica) -> None:
    replica.fails_start = True
    replica.exit(ground.now, 1, "Error", replica.says.out_of_memory(ground.now))


def _leak(ground: Ground, severity: float, rng: random.Random) -> None:
    """A tenth of the device lies beside the engine's share: it is full after one to twenty minutes."""
    for replica in ground.some(rng, 0.5):
        room = 0.1 * replica.spec.machine.device.memory
        ground.condition(replica, leak=room / (60.0 + 1140.0 * (1.0 - severity)))


def _slow_start(ground: Ground, severity: float, rng: random.Random) -> None:
    """A node without a cache of weights: the download outlasts the startup probe."""
    for replica in ground.some(rng, 0.5):
        times = replica.spec.start
        replica.slow_start(download=600.0 * severity, limit=120.0 + times.whole)
        replica.exit(ground.now, 0, "Completed")


def _pending(ground: Ground, severity: float, rng: random.Random) -> None:
    for replica in ground.some(rng, severity):
        replica.vacate(ground.now)


def _rollout(ground: Ground, severity: float, rng: random.Random) -> None:  # noqa: ARG001 - it is stuck or it is not
    """The new pod needs the device that the old one only gives up when the new one is ready."""
    ground.service.unplaced.append(f"{rng.choice(ground.replicas).name}-next")


def _drafts(spec: ServiceSpec) -> bool:
    return any(replica.machine.drafted for replica in spec.replicas)


MACHINES = (
    Fault("speculation-collapse", "drafted tokens are hardly accepted any more", _speculation, _drafts),
    Fault("gpu-throttled", "GPUs are throttled", _throttled),
    Fault("xid", "a GPU has fallen off the bus", _xid),
    Fault("cpu-starvation", "the engine's process gets too little CPU", _host),
    Fault("engine-stalled", "an engine's scheduler stands still, its health route says 200", _stalled),
    Fault("engine-dead", "an engine's core is dead and its pod is Ready", _dead_but_ready),
    Fault("crash-loop", "an engine fails at each start", _crash_loop),
    Fault("out-of-memory", "memory leaks away until an engine fails", _leak),
    Fault("slow-start", "a slow start is killed by its startup probe", _slow_start),
    Fault("pending", "a pod waits for a GPU", _pending),
    Fault("rollout-stuck", "a rollout waits for a GPU that the old pod holds", _rollout),
)
