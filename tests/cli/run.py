"""Runs the command as a user does: another process, no terminal."""

import os
import subprocess
import sys
from pathlib import Path


def triage(*words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`triage WORDS …` to its end; a hang is a failure of the test."""
    return subprocess.run(
        [sys.executable, "-m", "triage.cli", *words],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
        env={**os.environ, "PYTHONWARNINGS": "error", **(env or {})},
    )
