"""`triage drill`: the incidents there are, and how often the diagnosis is right about them."""

import time
from enum import StrEnum
from typing import Annotated

import typer

from triage.cli.exits import Exit
from triage.domain.errors import TriageError

app = typer.Typer(
    help="Incidents on a simulated fleet, with a truth that is known.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


class GradeFormat(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"


class Purpose(StrEnum):
    GRADING = "grading"
    TUNING = "tuning"


@app.command("list")
def list_command() -> None:
    """Every incident, and the workloads it can happen to."""
    from triage.cli.output import write
    from triage.lab.faults.catalogue import FAULTS
    from triage.lab.fleets import WORKLOADS

    width = max(len(fault.name) for fault in FAULTS)
    lines = []
    for fault in FAULTS:
        fits = [load.name for load in WORKLOADS if all(fault.applies(service) for service in load.services)]
        where = "" if len(fits) == len(WORKLOADS) else f" ({', '.join(fits)} only)"
        lines.append(f"{fault.name.ljust(width)}  {fault.title}{where}\n")
    write("".join(lines))


@app.command("run")
def run_command(
    incident: Annotated[
        str | None, typer.Argument(metavar="[INCIDENT]", help="One of triage drill list; by default you are not told.")
    ] = None,
    workload: Annotated[str | None, typer.Option("--workload", help="chat, agents or batch.")] = None,
    seed: Annotated[str | None, typer.Option("--seed", help="The same seed gives the same past and severity.")] = None,
    answer: Annotated[
        str | None, typer.Option("--answer", help="Without a terminal: the cause that you would have named.")
    ] = None,
) -> None:
    """Be paged about a simulated fleet, find the cause, and compare with the truth."""
    from triage.cli.drill_run import run_drill

    raise typer.Exit(run_drill(incident, workload, seed, answer))


@app.command("grade")
def grade_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[INCIDENT]...", help="Incidents to grade. See: triage drill list."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every incident.")] = False,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=1000, help="Fleets of each workload.")] = 10,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, max=256, help="At once; one for each processor by default.")
    ] = None,
    purpose: Annotated[
        Purpose,
        typer.Option("--purpose", help="Which seeds: those that rules may be tuned on, or those that only grade."),
    ] = Purpose.GRADING,
    output: Annotated[GradeFormat, typer.Option("--format", help="How to print the grade.")] = GradeFormat.MARKDOWN,
) -> None:
    """Let the diagnosis find incidents on simulated fleets, in virtual time, and say how often it was right."""
    import msgspec

    from triage.cli.output import notice, write
    from triage.drill.grade import run_tasks, tasks_of
    from triage.drill.grade_report import grade_of, to_text
    from triage.lab.faults.catalogue import FAULTS, fault_named

    if everything == bool(names):
        raise TriageError("nothing to grade" if not everything else "--all and names", hint="name incidents, or --all")
    faults = FAULTS if everything else tuple([fault_named(name) for name in dict.fromkeys(names or ())])
    tasks = tasks_of(seeds, purpose=purpose.value, faults=faults)
    whole = sum([len(task.faults) for task in tasks])
    if not whole:
        raise TriageError("no workload has what these incidents need", hint="see: triage drill list")
    began = time.monotonic()
    runs = []
    for run in run_tasks(tasks, processes):
        runs.append(run)
        if len(runs) % _TOLD_EVERY == 0:
            notice(f"{len(runs)} of {whole} runs, {time.monotonic() - began:.0f} s")
    grade = grade_of(runs)
    if output is GradeFormat.JSON:
        write(msgspec.json.format(msgspec.json.encode(grade), indent=2).decode() + "\n")
    else:
        write(to_text(grade))
    notice(f"{whole} runs in {time.monotonic() - began:.0f} s")
    raise typer.Exit(Exit.OK)


# Runs between two lines of progress.
_TOLD_EVERY = 50
