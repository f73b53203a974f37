"""`triage` and `triage diagnose` on live targets."""

import asyncio

from triage.cli.assembly import monitor_of, on_a_terminal, settings
from triage.cli.exits import exit_of
from triage.cli.options import OutputFormat, SourceOptions
from triage.cli.output import notice, print_diagnosis
from triage.domain.errors import TriageError
from triage.monitor.monitor import Monitor
from triage.monitor.observation import Observation
from triage.probing.budget import shipped_budget


def diagnose_live(options: SourceOptions, window_s: float | None, probe: bool, output: OutputFormat) -> int:
    """Read the targets for one window, judge, print."""
    chosen = settings(options, window_s)

    async def reading() -> Observation:
        monitor = monitor_of(chosen, "targets", budget=shipped_budget if probe else None)
        try:
            return await one_window(monitor, chosen.window_s, probe, past=not chosen.targets)
        finally:
            await monitor.close()

    observation = asyncio.run(reading())
    print_diagnosis(observation.situation, observation.diagnosis, output)
    return exit_of(observation.diagnosis)


def watch(options: SourceOptions, window_s: float | None, interval_s: float | None) -> int:
    """The screen; without a terminal the diagnosis of one window as text."""
    if not on_a_terminal():
        return diagnose_live(options, window_s, False, OutputFormat.TEXT)
    from triage.cli.screen import show

    chosen = settings(options, window_s, interval_s)
    name = chosen.path.stem if chosen.path is not None and not options.targets else "targets"

    async def watching() -> int:
        monitor = monitor_of(chosen, name, budget=shipped_budget)
        try:
            return await show(monitor)
        finally:
            await monitor.close()

    return asyncio.run(watching())


async def one_window(monitor: Monitor, window_s: float, probe: bool, *, past: bool = False) -> Observation:
    """Scrape for one whole window, and on while the probe is under way; give the last observation.

    past: the source brings the window's past with its first read (a Prometheus): then there is nothing to wait for.
    """
    if past and not probe:
        observation = await monitor.round()
        if any(not replica.window.single for replica in observation.situation.replicas):
            return observation
    notice(f"triage: reading for {window_s:.0f} s …")
    clock = asyncio.get_running_loop().time
    end = clock() + window_s
    asked: asyncio.Task[None] | None = None
    try:
        observation = await monitor.round()
        # After the first round: whom it doubts is asked, too.
        asked = asyncio.create_task(_probe(monitor)) if probe else None
        while clock() < end or (asked is not None and not asked.done()):
            pause = monitor.interval_s if clock() >= end else min(monitor.interval_s, end - clock())
            if asked is None or asked.done():
                await asyncio.sleep(pause)
            else:
                await asyncio.wait([asked], timeout=pause)
            observation = await monitor.round()
        if asked is not None:
            await asked  # it is done; what went wrong in it must not be lost
        return observation
    finally:
        if asked is not None and not asked.done():
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)


async def _probe(monitor: Monitor) -> None:
    notice(f"triage: sending {monitor.probe_cost()}")
    try:
        notice(f"triage: {await monitor.probe(lambda said: notice(f'triage: {said}'))}")
    except TriageError as error:
        notice(f"triage: {error}")
