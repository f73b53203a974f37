"""Options that several commands share, declared once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer


class SourceOptions(NamedTuple):
    """What the command line says about where to look; None where it says nothing."""

    targets: list[str] | None = None
    config: Path | None = None
    timeout_s: float | None = None
    key_env: str | None = None
    key_file: str | None = None
    key_command: str | None = None
    prometheus: str | None = None


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


TargetOption = Annotated[
    list[str] | None,
    typer.Option("--target", metavar="[NAME=]URL", help="An engine's base URL or metrics URL. Repeatable."),
]
PrometheusOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus", metavar="URL", help="A Prometheus (or Thanos, Mimir, VictoriaMetrics) that scrapes engines."
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="Configuration file instead of triage.toml.", dir_okay=False)
]
WindowOption = Annotated[
    float | None, typer.Option("--window", metavar="SECONDS", min=2.0, max=3600.0, help="Window that is judged. [30]")
]
IntervalOption = Annotated[
    float | None, typer.Option("--interval", metavar="SECONDS", min=0.5, max=300.0, help="Between two scrapes. [5]")
]
TimeoutOption = Annotated[
    float | None, typer.Option("--timeout", metavar="SECONDS", min=0.1, max=120.0, help="For one read. [5]")
]
KeyEnvOption = Annotated[
    str | None, typer.Option("--key-env", metavar="NAME", help="Variable with the targets' bearer token.")
]
KeyFileOption = Annotated[str | None, typer.Option("--key-file", metavar="PATH", help="File with that token.")]
KeyCommandOption = Annotated[
    str | None, typer.Option("--key-command", metavar="CMD", help="Command that prints that token; no shell.")
]
FormatOption = Annotated[OutputFormat, typer.Option("--format", help="How to print the report.")]
IncidentOption = Annotated[str, typer.Option("--incident", help="One of triage drill list, or several joined by +.")]
