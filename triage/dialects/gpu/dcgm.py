"""DCGM exporter pages: one reading per device, fields under the exporter's own names."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from triage.dialects.series import PageIndex
from triage.domain.reading import GpuReading
from triage.domain.text import clean

_PREFIX = "DCGM_FI_"


class GpuPlan(NamedTuple):
    node: str
    device: str
    uuid: str
    name: str
    places: tuple[tuple[str, int], ...]

    def read(self, values: Sequence[float], target: str, source: str, at: float | None) -> GpuReading:
        fields = {field: values[place] for field, place in self.places if values[place] == values[place]}
        return GpuReading(target, source, at, self.node, self.device, self.uuid, self.name, fields)


def compile_gpus(index: PageIndex) -> tuple[GpuPlan, ...]:
    """One plan per device (or MIG instance) on the page."""
    devices: dict[tuple[str, str, str], dict[str, int]] = defaultdict(dict)
    names: dict[tuple[str, str, str], str] = {}
    for name in index.by_name:
        if not name.startswith(_PREFIX):
            continue
        for labels, place in index.series(name):
            device = labels.get("gpu", labels.get("device", ""))
            if "GPU_I_ID" in labels:
                device = f"{device}/{labels['GPU_I_ID']}"
            key = (
                clean(labels.get("Hostname", labels.get("hostname", "")), 100),
                clean(device, 40),
                clean(labels.get("UUID", labels.get("uuid", "")), 60),
            )
            devices[key][name.removeprefix(_PREFIX)] = place
            names[key] = clean(labels.get("modelName", ""), 80)
    return tuple(
        GpuPlan(node, device, uuid, names[node, device, uuid], tuple(places.items()))
        for (node, device, uuid), places in devices.items()
    )
