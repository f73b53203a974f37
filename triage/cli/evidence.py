"""`triage diagnose FOLDER`: offline, deterministic, no network library loaded."""

from collections.abc import Sequence
from pathlib import Path

from triage.cli.exits import exit_of
from triage.cli.options import OutputFormat
from triage.cli.output import print_diagnosis
from triage.config import load_config
from triage.diagnosis.diagnose import diagnose
from triage.domain.errors import TriageError
from triage.situation.folder import load_folder


def diagnose_folder(folder: Path, config: Path | None, targets: Sequence[str] | None, output: OutputFormat) -> int:
    """Judge a folder and print it; the exit code follows the first verdict."""
    if targets:
        raise TriageError("two kinds of source", "an evidence folder and --target or --prometheus", "give one of them")
    situation = load_folder(folder, load_config(config).limits)
    diagnosis = diagnose(situation)
    print_diagnosis(situation, diagnosis, output)
    return exit_of(diagnosis)
