"""`triage demo`: simulated engines on loopback, an incident, and the screen or the diagnosis of it."""

import time
from collections.abc import Sequence

import msgspec

from triage.cli.assembly import monitor_of, on_a_terminal
from triage.cli.closing import run_closed
from triage.cli.exits import exit_of
from triage.cli.live import one_window
from triage.cli.options import OutputFormat
from triage.cli.output import notice, print_diagnosis
from triage.config import Config, credential_of, parse_target, target_of
from triage.domain.monitoring import MonitoringReading
from triage.domain.reading import Scrape
from triage.domain.target import Target
from triage.drill.observer import PROBE_S, PROBE_TOKENS, UNREAD, WINDOW_S, limits_of, read_answer
from triage.gate import Access
from triage.lab.account.alerts import SOURCE
from triage.lab.faults.catalogue import faults_named
from triage.lab.serving.fleet import Fleet, workload_for
from triage.lab.serving.past import KeptPage
from triage.monitor.monitor import Monitor
from triage.probing.budget import Budget, shipped_budget

_INTERVAL_S = 1.0
# The window is full when the demo opens; this is for what the probe sees, and for those who watch it come.
_READ_S = 3.0
# A streamed request a model: without one nobody can see hidden reasoning.
PROBE_EVERY_S = 20.0


def run_demo(incident: str, headless: bool, window_s: float | None, output: OutputFormat) -> int:
    """Screen on a terminal; otherwise, or when asked, the diagnosis of one window and its exit code."""
    fleet = Fleet(workload_for(faults_named(incident)))
    if headless or not on_a_terminal():
        return run_closed(_headless(fleet, incident, window_s or WINDOW_S, output))
    return run_closed(_on_screen(fleet, incident, window_s or WINDOW_S))


async def _headless(fleet: Fleet, incident: str, window_s: float, output: OutputFormat) -> int:
    async with fleet:
        await fleet.start(incident)
        monitor = monitor_of_fleet(fleet, window_s)
        try:
            observation = await one_window(monitor, _READ_S, probe=True)
        finally:
            await monitor.close()
    print_diagnosis(observation.situation, observation.diagnosis, output)
    return exit_of(observation.diagnosis)


async def _on_screen(fleet: Fleet, incident: str, window_s: float) -> int:
    notice("triage: starting simulated engines on this machine …")
    from triage.cli.screen import show
    from triage.tui.app import Switch

    async with fleet:
        await fleet.start(incident)
        switches = [
            Switch(
                name=fault.name,
                title=fault.title,
                action=lambda name=fault.name: fleet.switch(name),  # type: ignore[misc]
                active=lambda name=fault.name: fleet.incident == name,  # type: ignore[misc]
            )
            for fault in fleet.incidents
        ]
        monitor = monitor_of_fleet(fleet, window_s, probe_every_s=PROBE_EVERY_S)
        try:
            return await show(monitor, switches=switches, switch_on=fleet.switch)
        finally:
            await monitor.close()


def monitor_of_fleet(
    fleet: Fleet, window_s: float, *, name: str = "demo", probe_every_s: float | None = None
) -> Monitor:
    """Its window is full already: the pages of the last seconds before the fleet opened are in it."""
    targets = tuple([parse_target(f"{target.name}={target.url}") for target in fleet.targets])
    key = credential_of(key_file=str(fleet.key_file))
    gateways = [target_of(Access(one.url, credential=key), name=one.name, model=one.model) for one in fleet.gateways]
    config = Config(targets=targets, window_s=window_s, interval_s=_INTERVAL_S, limits=limits_of(fleet.objectives))
    monitor = monitor_of(
        config,
        f"{name} {fleet.workload.name}",
        budget=_budget,
        probe_every_s=probe_every_s,
        probed=gateways,
        not_seen=UNREAD,
        beside=_Alerts(fleet),
    )
    monitor.remember(_scrapes(fleet.past_pages, [one.target for one in targets]))
    return monitor


class _Alerts:
    """The pager of the simulated operator: a source beside the engines' pages."""

    targets: tuple[Target, ...] = ()

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def read(self) -> list[Scrape | MonitoringReading]:
        return [MonitoringReading(SOURCE, time.time(), targets=(), alerts=self._fleet.alerts())]

    async def close(self) -> None:
        """It holds nothing."""


def _scrapes(pages: Sequence[KeptPage], targets: Sequence[Target]) -> list[Scrape]:
    by_name = {target.name: target for target in targets}
    return [read_answer(by_name[page.replica], page.at, page.status, page.text) for page in pages]


def _budget() -> Budget:
    return msgspec.structs.replace(shipped_budget(), max_tokens=PROBE_TOKENS, total_s=PROBE_S)
