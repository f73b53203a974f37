"""Models that do not fit into GPU memory: the CPU computes the layers that are left over."""

from collections.abc import Sequence

from triage.diagnosis.text import percent
from triage.diagnosis.thresholds import WHOLLY_ON_GPU
from triage.domain.reading import LoadedModel
from triage.domain.verdict import Direction, Evidence, Family


def partly_on_cpu(model: str, loaded: Sequence[LoadedModel]) -> list[Evidence]:
    """The model of an answer, where the process list has a part of it outside of GPU memory."""
    return [
        Evidence(
            id="engine.cpu-offload",
            direction=Direction.FOR,
            strength=2,
            family=Family.ENGINE,
            text=f"{percent(one.on_gpu) if one.on_gpu else 'nothing'} of {one.name} is in GPU memory",
            value=one.on_gpu,
            unit="share",
            threshold=WHOLLY_ON_GPU,
            source=one.source,
        )
        for one in loaded
        if one.on_gpu is not None and one.on_gpu < WHOLLY_ON_GPU and _same(one.name, model)
    ]


def _same(one: str, other: str) -> bool:
    """A name without a tag means the tag 'latest'."""
    return one.removesuffix(":latest") == other.removesuffix(":latest")
