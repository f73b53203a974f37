"""Which engine a process imitates, and how long the phases of its start take."""

from enum import StrEnum

import msgspec


class Flavour(StrEnum):
    """Page, version, log and answers of an engine."""

    VLLM = "vllm"
    SGLANG = "sglang"


class StartTimes(msgspec.Struct, frozen=True):
    """Seconds of the phases of a start, in their order. launch: imports, configuration, the processes' greeting."""

    launch: float = 8.0
    download: float = 0.0
    weights: float = 25.0
    compile: float = 20.0
    graphs: float = 12.0

    @property
    def loaded(self) -> float:
        """From the launch until the weights are on the devices."""
        return self.launch + self.download + self.weights

    @property
    def whole(self) -> float:
        return self.loaded + self.compile + self.graphs
