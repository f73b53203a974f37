"""The entry point. Imports only what `--version` and `--help` need; commands import their own."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from triage import __version__
from triage.cli.drill_commands import app as drill_app
from triage.cli.exits import Exit
from triage.cli.options import (
    ConfigOption,
    FormatOption,
    IncidentOption,
    IntervalOption,
    KeyCommandOption,
    KeyEnvOption,
    KeyFileOption,
    OutputFormat,
    PrometheusOption,
    SourceOptions,
    TargetOption,
    TimeoutOption,
    WindowOption,
)
from triage.cli.runbook_commands import app as runbook_app
from triage.domain.errors import TriageError

app = typer.Typer(
    name="triage",
    help="Incident and debugging assistant for self-hosted language models. Reads; never changes anything.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(drill_app, name="drill")
app.add_typer(runbook_app, name="runbook")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"triage {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    target: TargetOption = None,
    prometheus: PrometheusOption = None,
    config: ConfigOption = None,
    window: WindowOption = None,
    interval: IntervalOption = None,
    timeout: TimeoutOption = None,
    key_env: KeyEnvOption = None,
    key_file: KeyFileOption = None,
    key_command: KeyCommandOption = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Without a command: the screen on the configured targets (the diagnosis as text without a terminal)."""
    del version
    if context.invoked_subcommand is None:
        from triage.cli.live import watch

        options = SourceOptions(target, config, timeout, key_env, key_file, key_command, prometheus)
        raise typer.Exit(watch(options, window, interval))


@app.command()
def diagnose(
    evidence: Annotated[
        Path | None, typer.Argument(help="An evidence folder. Without it the targets are read live for one window.")
    ] = None,
    target: TargetOption = None,
    prometheus: PrometheusOption = None,
    config: ConfigOption = None,
    window: WindowOption = None,
    timeout: TimeoutOption = None,
    key_env: KeyEnvOption = None,
    key_file: KeyFileOption = None,
    key_command: KeyCommandOption = None,
    probe: Annotated[
        bool,
        typer.Option("--probe", help="Also send one short streamed request a model: only it can see hidden reasoning."),
    ] = False,
    output: FormatOption = OutputFormat.TEXT,
) -> None:
    """Say what is wrong, how sure, why, and what to do next."""
    if evidence is not None:
        from triage.cli.evidence import diagnose_folder

        raise typer.Exit(
            diagnose_folder(evidence, config, [*(target or []), *([prometheus] if prometheus else [])], output)
        )
    from triage.cli.live import diagnose_live

    options = SourceOptions(target, config, timeout, key_env, key_file, key_command, prometheus)
    raise typer.Exit(diagnose_live(options, window, probe, output))


@app.command()
def demo(
    incident: IncidentOption = "load-surge",
    headless: Annotated[
        bool, typer.Option("--headless", help="Print the diagnosis of one window instead of opening the screen.")
    ] = False,
    window: WindowOption = None,
    output: FormatOption = OutputFormat.TEXT,
) -> None:
    """Start simulated engines on this machine, with an incident, and look at them."""
    from triage.cli.demo import run_demo

    raise typer.Exit(run_demo(incident, headless, window, output))


@app.command()
def doctor(
    target: TargetOption = None,
    prometheus: PrometheusOption = None,
    config: ConfigOption = None,
    timeout: TimeoutOption = None,
    key_env: KeyEnvOption = None,
    key_file: KeyFileOption = None,
    key_command: KeyCommandOption = None,
    output: FormatOption = OutputFormat.TEXT,
) -> None:
    """Say what can be reached, what cannot and why, and which verdicts that costs."""
    from triage.cli.doctor import run_doctor

    options = SourceOptions(target, config, timeout, key_env, key_file, key_command, prometheus)
    raise typer.Exit(run_doctor(options, output))


@app.command()
def schema(
    thing: Annotated[str | None, typer.Argument(help="Which report. Without it the known ones are listed.")] = None,
) -> None:
    """Print the JSON Schema of a report."""
    from triage.cli.schemas import print_schema

    raise typer.Exit(print_schema(thing))


def run() -> None:
    """Run a command; say errors as one would to a tired person, and give the contract's exit codes."""
    try:
        code = app(standalone_mode=False)
    except TriageError as error:
        typer.echo(f"triage: {error}", err=True)
        code = Exit.ERROR
    except typer.Abort:
        typer.echo("triage: stopped", err=True)
        code = Exit.ERROR
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # The reader of our output went away (`triage … | head`): that is its decision, not an error.
        sys.stderr.close()
        code = Exit.OK
    except Exception as error:
        # click's own usage errors carry their exit code and know how to show themselves.
        show = getattr(error, "show", None)
        if show is not None:
            show()
        elif os.environ.get("TRIAGE_TRACEBACK"):
            raise
        else:
            said = f"{type(error).__name__}: {error}"
            typer.echo(f"triage: internal error: {said} (a bug; TRIAGE_TRACEBACK=1 shows where)", err=True)
        code = getattr(error, "exit_code", Exit.ERROR)
    sys.exit(int(code or 0))
