"""The page of the DCGM exporter on a replica's node: dcgm-exporter 4 with profiling fields and pods' names."""

import zlib
from collections.abc import Callable
from typing import NamedTuple

from triage.lab.cluster.gpu_load import GpuLoad, GpuMeter, memory_used
from triage.lab.cluster.names import CONTAINER, NAMESPACE, OTHERS
from triage.lab.cluster.nodes import DRIVER
from triage.lab.cluster.pods import notebook_name
from triage.lab.cluster.scene import gpu_uuid, node_names
from triage.lab.world.replica import Replica
from triage.lab.world.world import World

_MIB = 2.0**20


class _Reading(NamedTuple):
    load: GpuLoad
    used_mib: int
    free_mib: int
    xid: int


class _Family(NamedTuple):
    """about: the help text of the exporter's CSV files. A value that is an int is written without a fraction."""

    name: str
    kind: str
    about: str
    value: Callable[[_Reading], int | float]


_XID = "DCGM_FI_DEV_XID_ERRORS"
_FAMILIES = (
    _Family("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", lambda one: one.load.sm_mhz),
    _Family("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", lambda one: one.load.memory_mhz),
    _Family("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", lambda one: one.load.temperature_c),
    _Family("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", lambda one: one.load.power_w),
    _Family(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Total energy consumption since boot (in mJ).",
        lambda one: int(one.load.energy_mj),
    ),
    _Family("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", lambda one: round(100 * one.load.active)),
    _Family(_XID, "gauge", "Value of the last XID error encountered.", lambda one: one.xid),
    _Family("DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", lambda one: one.free_mib),
    _Family("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", lambda one: one.used_mib),
    _Family(
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        "gauge",
        "Current clock event reasons (bitmask).",
        lambda one: one.load.reasons,
    ),
    _Family(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "gauge",
        "Ratio of time the graphics engine is active.",
        lambda one: one.load.active,
    ),
    _Family(
        "DCGM_FI_PROF_SM_ACTIVE",
        "gauge",
        "The ratio of cycles an SM has at least 1 warp assigned.",
        lambda one: one.load.sm_active,
    ),
    _Family(
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "gauge",
        "Ratio of cycles the tensor (HMMA) pipe is active.",
        lambda one: one.load.tensor,
    ),
    _Family(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
        lambda one: one.load.dram,
    ),
)


def dcgm_page(world: World, meter: GpuMeter, now: float) -> str:
    """now: virtual seconds. meter: of the replica on that node; means are since it was read last.

    A device that has fallen off the bus has its XID and nothing else.
    """
    replica = meter.replica
    node = node_names(world)[replica.name]
    machine = replica.spec.machine
    used = round(memory_used(replica, now) / _MIB)
    reading = _Reading(meter.read(now), used, round(machine.device.memory / _MIB) - used, 0)
    lost = lost_device(replica)
    lines: list[str] = []
    for family in _FAMILIES:
        samples = []
        for index in range(machine.count):
            one = reading._replace(xid=replica.xid) if index == lost else reading
            if index == lost and family.name != _XID:
                continue
            samples.append(f"{family.name}{{{_labels(replica, node, index)}}} {_number(family.value(one))}")
        if samples:
            lines += [f"# HELP {family.name} {family.about}", f"# TYPE {family.name} {family.kind}", *samples]
    return "\n".join(lines) + "\n"


def lost_device(replica: Replica) -> int | None:
    """Which of its machine's devices the driver has lost."""
    return zlib.crc32(replica.name.encode()) % replica.spec.machine.count if replica.xid else None


def _labels(replica: Replica, node: str, index: int) -> str:
    """In the exporter's order: the device, then fields that are labels, then the pod that holds it."""
    held = (CONTAINER, NAMESPACE, replica.name) if replica.placed else ("notebook", OTHERS, notebook_name(node))
    pairs = {
        "gpu": str(index),
        "UUID": gpu_uuid(node, index),
        "pci_bus_id": f"00000000:{0x18 + 0x10 * index:02X}:00.0",
        "device": f"nvidia{index}",
        "modelName": replica.spec.machine.device.name,
        "Hostname": node,
        "DCGM_FI_DRIVER_VERSION": DRIVER,
        "container": held[0],
        "namespace": held[1],
        "pod": held[2],
    }
    return ",".join([f'{name}="{value}"' for name, value in pairs.items()])


def _number(value: int | float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}"
