"""What an engine process tells of itself: its metrics page and its log."""

from collections.abc import Sequence
from typing import Protocol

from triage.lab.batching.engine import Engine
from triage.lab.batching.request import Observer
from triage.lab.batching.settings import EngineSettings
from triage.lab.machine.step_time import Machine
from triage.lab.world.spec import Flavour, StartTimes


class Writer(Observer, Protocol):
    """report_s: seconds between two regular lines of the log. Lines carry their time in the engine's own form."""

    report_s: float

    def attach(self, engine: Engine) -> None: ...
    def page(self, at: float, started: float) -> str: ...
    def start_lines(self, at: float, times: StartTimes) -> Sequence[tuple[float, Sequence[str]]]: ...
    def report_lines(self, at: float) -> Sequence[str]: ...
    def out_of_memory_lines(self, at: float) -> Sequence[str]: ...


def writer_of(flavour: Flavour, settings: EngineSettings, machine: Machine) -> Writer:
    raise NotImplementedError
