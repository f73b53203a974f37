"""What GPU exporter pages say about the engines on them. Deeper GPU verdicts need the cluster's view."""

from collections.abc import Sequence

from triage.domain.situation import GpuWindow
from triage.domain.verdict import Direction, Evidence, Family

_LINK_GEN, _LINK_GEN_MAX = "DEV_PCIE_LINK_GEN", "DEV_PCIE_MAX_LINK_GEN"
_LINK_WIDTH, _LINK_WIDTH_MAX = "DEV_PCIE_LINK_WIDTH", "DEV_PCIE_MAX_LINK_WIDTH"
_REPLAYS = "DEV_PCIE_REPLAY_COUNTER"
_ENERGY = "DEV_TOTAL_ENERGY_CONSUMPTION"
# Utilisation from which a link is expected to be at full speed: idle cards lower generation to save power.
_UNDER_LOAD = 20.0


def link_trouble(gpus: Sequence[GpuWindow]) -> list[Evidence]:
    """Cards that run a narrower or slower PCIe link than they can, under load, or retry on it."""
    found = []
    for gpu in gpus:
        fields = gpu.last.fields
        busy = fields.get("DEV_GPU_UTIL", 0.0) >= _UNDER_LOAD
        degraded = [
            f"{what} {fields[now]:g} of {fields[most]:g}"
            for what, now, most in (("generation", _LINK_GEN, _LINK_GEN_MAX), ("width", _LINK_WIDTH, _LINK_WIDTH_MAX))
            if now in fields and most in fields and fields[now] < fields[most]
        ]
        replays = fields.get(_REPLAYS, 0.0) - gpu.first.fields.get(_REPLAYS, 0.0)
        if busy and degraded:
            retries = f", {replays:g} replays in the window" if replays > 0 else ""
            found.append(gpu_evidence(gpu, "link", f"link {' and '.join(degraded)} under load{retries}", strength=2))
    return found


def stands_still(gpu: GpuWindow) -> bool:
    """Two readings equal in every field although the energy counter of a powered card must grow."""
    first, last = gpu.first, gpu.last
    return first is not last and first.fields == last.fields and last.fields.get(_ENERGY, 0.0) > 0


def gpu_evidence(gpu: GpuWindow, name: str, text: str, *, strength: int) -> Evidence:
    reading = gpu.last
    device = f"GPU {reading.device}" + (f" on {reading.node}" if reading.node else "")
    return Evidence(
        id=f"gpu.{name}",
        direction=Direction.FOR,
        strength=strength,
        family=Family.GPU,
        text=f"{device}: {text}",
        n=1 if gpu.first is gpu.last else 2,
        source=reading.source,
    )
