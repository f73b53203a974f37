"""The host that feeds the GPU: CPU limits, a full node, and GPUs that wait for it."""

from collections.abc import Sequence

from triage.diagnosis.text import percent
from triage.diagnosis.thresholds import NODE_BUSY, SM_IDLE, THROTTLED_PERIODS
from triage.diagnosis.view import ReplicaView
from triage.domain.quantity import Quantity
from triage.domain.situation import ContainerCpu, GpuWindow
from triage.domain.verdict import Direction, Evidence, Family

# Share of cycles in which a multiprocessor had work, else in which the graphics engine had; both 0..1.
_ACTIVITY = ("PROF_SM_ACTIVE", "PROF_GR_ENGINE_ACTIVE")


def cpu_evidence(containers: Sequence[ContainerCpu]) -> list[Evidence]:
    """The container was stopped by its CPU limit, or its node has no CPU left."""
    found = []
    for cpu in containers:
        if cpu.periods and cpu.throttled_periods is not None:
            share = cpu.throttled_periods / cpu.periods
            if share >= THROTTLED_PERIODS:
                limit = f" by its limit of {cpu.limit_cores:g} cores" if cpu.limit_cores else ""
                text = f"stopped in {percent(share)} of its CPU periods{limit}"
                found.append(_cpu(cpu, "cpu-throttled", text, share, THROTTLED_PERIODS))
        elif cpu.node_cores and cpu.node_busy_cores and cpu.node_busy_cores >= NODE_BUSY * cpu.node_cores:
            busy = cpu.node_busy_cores / cpu.node_cores
            found.append(_cpu(cpu, "node-busy", f"its node's CPUs are {percent(busy)} busy", busy, NODE_BUSY))
    return found


def idle_gpus(view: ReplicaView, gpus: Sequence[GpuWindow]) -> list[Evidence]:
    """All GPUs of the only engine hardly compute while requests run: they wait for their host.

    A busy kernel is not work: utilisation says nothing here, and members that wait for one another spin.
    """
    running = view.running
    if running is None or running.low <= 0 or not view.moved:
        return []
    active = [value for gpu in gpus if (value := _activity(gpu)) is not None]
    if not active or len(active) < len(gpus) or max(active) >= SM_IDLE:
        return []
    return [
        Evidence(
            id="gpu.waits-for-host",
            direction=Direction.FOR,
            strength=2,
            family=Family.GPU,
            text=f"GPUs compute in at most {percent(max(active))} of their cycles while requests run",
            value=max(active),
            unit="share",
            threshold=SM_IDLE,
            n=len(active),
            source=gpus[0].last.source,
        )
    ]


def idle_forward(view: ReplicaView, gpus: Sequence[GpuWindow]) -> list[Evidence]:
    """By the engine's own device timer no forward pass runs for most of the time in which requests do.

    gpus: the devices of this engine as their exporter sees them; when it sees work, that is somebody else's or the
    timer is wrong, and neither is told from the other.
    """
    running, busy = view.running, view.track(Quantity.DEVICE_BUSY)
    if busy is None or busy.high >= SM_IDLE or running is None or running.low <= 0 or not view.moved:
        return []
    if any((active := _activity(gpu)) is not None and active >= SM_IDLE for gpu in gpus):
        return []
    return [
        view.evidence(
            "waits-for-host",
            f"a forward pass runs in at most {percent(busy.high)} of the time while requests run",
            quantity=Quantity.DEVICE_BUSY,
            value=busy.high,
            unit="share",
            threshold=SM_IDLE,
        )
    ]


def _activity(gpu: GpuWindow) -> float | None:
    """The larger of both readings."""
    for field in _ACTIVITY:
        if field in gpu.last.fields:
            return max(gpu.last.fields[field], gpu.first.fields.get(field, 0.0))
    return None


def _cpu(cpu: ContainerCpu, name: str, text: str, value: float, threshold: float) -> Evidence:
    return Evidence(
        id=f"kubernetes.{name}",
        direction=Direction.FOR,
        strength=2,
        family=Family.KUBERNETES,
        text=f"{cpu.name or 'the container'}: {text}",
        value=value,
        unit="share",
        threshold=threshold,
        source=cpu.source,
    )
