"""`triage drill run`: a page, a fleet with a hidden incident, the screen, and the truth at the end."""

import asyncio
import contextlib
import random
import secrets
import textwrap
import time

import typer

from triage.cli.assembly import on_a_terminal
from triage.cli.closing import run_closed
from triage.cli.demo import PROBE_EVERY_S, monitor_of_fleet
from triage.cli.exits import Exit
from triage.cli.live import one_window
from triage.cli.output import notice, terminal_width, write
from triage.domain.errors import TriageError
from triage.domain.verdict import Kind
from triage.drill.debrief import Moment, add_moment, debrief, kind_meant
from triage.drill.observer import WINDOW_S
from triage.lab.account.truth import Truth
from triage.lab.faults.catalogue import FAULTS, faults_named
from triage.lab.faults.fault import Fault
from triage.lab.fleets import WORKLOADS, Workload
from triage.lab.serving.fleet import Fleet, workload_for
from triage.monitor.monitor import Monitor

# Mild incidents are for grading; who practises shall have something to find.
_SEVERITIES = (0.6, 1.0)
_LOOK_EVERY_S = 1.0
_READ_S = 3.0
_ASKED_AGAIN = 3


def run_drill(incident: str | None, workload: str | None, seed: str | None, answer: str | None) -> int:
    """TriageError: no such incident or workload, they do not go together, or an answer that is no cause."""
    meant = None if answer is None else _kind(answer)
    chosen = _workload(workload) if workload is not None else None
    seed = seed or secrets.token_hex(4)
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw, no secret
    faults = faults_named(incident) if incident is not None else (_draw(rng, chosen),)
    fleet = Fleet(chosen or workload_for(faults), seed=seed, severity=rng.uniform(*_SEVERITIES))
    name = "+".join([fault.name for fault in faults])
    if on_a_terminal() and answer is None:
        return run_closed(_on_screen(fleet, name, faults, seed))
    return run_closed(_headless(fleet, name, faults, meant))


async def _on_screen(fleet: Fleet, name: str, faults: tuple[Fault, ...], seed: str) -> int:
    from triage.cli.screen import show

    async with fleet:
        await fleet.start(name)
        write(f"{fleet.page()}\n\n")
        typer.prompt("Enter opens the screen; leave it with q when you know the cause", default="", show_default=False)
        monitor = monitor_of_fleet(fleet, WINDOW_S, name="drill", probe_every_s=PROBE_EVERY_S)
        moments: list[Moment] = []
        began = time.monotonic()
        watching = asyncio.create_task(_follow(monitor, moments, began))
        try:
            await show(monitor)
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
            await monitor.close()
        after_s, truth = time.monotonic() - began, fleet.truth()
    answer = _ask()
    write(debrief(faults, truth, answer, after_s, moments, terminal_width()))
    notice(f"triage: the same again: triage drill run {name} --workload {fleet.workload.name} --seed {seed}")
    return _exit(truth, answer)


async def _headless(fleet: Fleet, name: str, faults: tuple[Fault, ...], answer: Kind | None) -> int:
    async with fleet:
        await fleet.start(name)
        write(f"{fleet.page()}\n\n")
        monitor = monitor_of_fleet(fleet, WINDOW_S, name="drill")
        began = time.monotonic()
        try:
            observation = await one_window(monitor, _READ_S, probe=True)
        finally:
            await monitor.close()
        moments: list[Moment] = []
        after_s = time.monotonic() - began
        add_moment(moments, after_s, observation.diagnosis)
        truth = fleet.truth()
    write(debrief(faults, truth, answer, after_s, moments, terminal_width()))
    return _exit(truth, answer)


def _exit(truth: Truth, answer: Kind | None) -> Exit:
    if answer is None:
        return Exit.INCONCLUSIVE
    return Exit.OK if answer in truth.accepted else Exit.WRONG


async def _follow(monitor: Monitor, moments: list[Moment], began: float) -> None:
    while True:
        latest = monitor.latest()
        if latest is not None:
            add_moment(moments, time.monotonic() - began, latest.diagnosis)
        await asyncio.sleep(_LOOK_EVERY_S)


def _ask() -> Kind | None:
    """What the person found, by a word of the verdicts."""
    causes = ", ".join([kind.value for kind in Kind if kind is not Kind.INSUFFICIENT_DATA])
    write(textwrap.fill(f"Causes: {causes}", terminal_width(), break_on_hyphens=False) + "\n")
    for _ in range(_ASKED_AGAIN):
        said = typer.prompt("The cause (Enter: I do not know)", default="", show_default=False)
        if not said.strip():
            return None
        kind, close = kind_meant(said)
        if kind is not None:
            return kind
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        notice(f"no such cause{hint}")
    return None


def _kind(answer: str) -> Kind:
    kind, close = kind_meant(answer)
    if kind is None:
        raise TriageError("there is no such cause", answer, f"did you mean {' or '.join(close)}?" if close else "")
    return kind


def _draw(rng: random.Random, workload: Workload | None) -> Fault:
    fits = [fault for fault in FAULTS if workload is None or fault.applies(workload.services[0])]
    return rng.choice(fits)


def _workload(name: str) -> Workload:
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    raise TriageError("there is no such workload", name, f"choose from: {', '.join([one.name for one in WORKLOADS])}")
