"""What an engine process tells of itself: its metrics page and its log."""

from collections.abc import Sequence
from typing import Protocol

from triage.lab.batching.engine import Engine
from triage.lab.batching.request import Observer
from triage.lab.batching.settings import EngineSettings
from triage.lab.machine.step_time import Machine
from triage.lab.pages.forms import Flavour, StartTimes
from triage.lab.pages.sglang_log import SglangLog
from triage.lab.pages.sglang_page import SglangPage
from triage.lab.pages.vllm_log import VllmLog
from triage.lab.pages.vllm_page import VllmPage


class Page(Observer, Protocol):
    """Hears what the engine does. started, now: unix seconds of the process's start, and of this scrape."""

    def text(self, started: float, now: float) -> str: ...


class Log(Protocol):
    """Lines in the engine's own form, their time in it. at: virtual seconds. every_s: between two looks for lines."""

    every_s: float

    def start(self, at: float, times: StartTimes) -> Sequence[tuple[float, Sequence[str]]]: ...
    def report(self, at: float) -> Sequence[str]: ...
    def out_of_memory(self, at: float) -> Sequence[str]: ...
    def device_lost(self, at: float) -> Sequence[str]: ...
    def worker_died(self, at: float) -> Sequence[str]: ...


def writers_of(
    flavour: Flavour, settings: EngineSettings, machine: Machine, zero: float, seed: str
) -> tuple[Engine, Page, Log]:
    """A new process: its engine, and those who write about it. zero: unix seconds of the virtual zero."""
    if flavour is Flavour.VLLM:
        vllm = VllmPage(machine, settings)
        engine = vllm.engine = Engine(settings, machine, vllm, seed)
        return engine, vllm, VllmLog(vllm, settings, machine, zero)
    sglang = SglangPage(machine, settings)
    engine = sglang.engine = Engine(settings, machine, sglang, seed)
    return engine, sglang, SglangLog(sglang, settings, machine, zero)
