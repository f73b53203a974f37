"""`triage demo`: simulated engines on loopback, an incident, and the screen or the diagnosis of it."""

import asyncio

import msgspec

from triage.cli.assembly import monitor_of, on_a_terminal
from triage.cli.exits import exit_of
from triage.cli.live import one_window
from triage.cli.options import OutputFormat
from triage.cli.output import notice, print_diagnosis
from triage.config import Config, parse_target
from triage.lab.fleet import Fleet
from triage.monitor.monitor import Monitor
from triage.probing.budget import Budget, shipped_budget

# The demo's engines run from the start with the incident behind them, so a short window already tells.
_INTERVAL_S = 1.0
_WINDOW_S = 15.0
# A streamed request a model: without one nobody can see hidden reasoning..
_PROBE_EVERY_S = 20.0
# At the simulated 25 ms a token 7 s: clearly over the bound of 3 s for the first visible token, and soon there.
_PROBE_TOKENS = 280


def run_demo(incident: str, headless: bool, window_s: float | None, output: OutputFormat) -> int:
    """Screen on a terminal; otherwise, or when asked, the diagnosis of one window and its exit code."""
    window = window_s or _WINDOW_S
    if headless or not on_a_terminal():
        return asyncio.run(_headless(incident, window, output))
    return asyncio.run(_on_screen(incident, window))


async def _headless(incident: str, window_s: float, output: OutputFormat) -> int:
    async with Fleet() as fleet:
        await fleet.start(incident)
        monitor = _monitor(fleet, window_s)
        try:
            observation = await one_window(monitor, window_s, probe=True)
        finally:
            await monitor.close()
    print_diagnosis(observation.situation, observation.diagnosis, output)
    return exit_of(observation.diagnosis)


async def _on_screen(incident: str, window_s: float) -> int:
    notice("triage: starting four simulated engines on this machine …")
    from triage.cli.screen import show
    from triage.tui.app import Switch

    async with Fleet() as fleet:
        await fleet.start(incident)
        switches = [
            Switch(
                name=info.name,
                title=info.title,
                action=lambda name=info.name: fleet.switch(name),  # type: ignore[misc]
                active=lambda name=info.name: fleet.incident == name,  # type: ignore[misc]
            )
            for info in Fleet.incidents()
        ]
        monitor = _monitor(fleet, window_s, probe_every_s=_PROBE_EVERY_S)
        try:
            return await show(monitor, switches=switches)
        finally:
            await monitor.close()


def _monitor(fleet: Fleet, window_s: float, probe_every_s: float | None = None) -> Monitor:
    targets = tuple(parse_target(f"{target.name}={target.url}") for target in fleet.targets)
    config = Config(targets=targets, window_s=window_s, interval_s=min(_INTERVAL_S, window_s / 2))
    return monitor_of(config, "demo", budget=_budget, probe_every_s=probe_every_s)


def _budget() -> Budget:
    return msgspec.structs.replace(shipped_budget(), max_tokens=_PROBE_TOKENS)
