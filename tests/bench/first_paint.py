"""From the start of the process to the first number on the screen."""

import re
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import pages
from tests.bench.children import engines
from tests.bench.row import Row, against
from tests.bench.terminal import Terminal

_BUDGET: Final = 1.3
_RUNS: Final = 7
# The model's name is on the engine's page alone: when it is drawn, so are its numbers.
_DATA: Final = re.compile(rf"({pages.MODEL})")
_LINE: Final = re.compile("(bench-line)")


def rows() -> list[Row]:
    ours, theirs = [], []
    with engines(1) as ports:
        command = [sys.executable, "-m", "triage.cli", "--target", f"http://127.0.0.1:{ports[0]}"]
        for _ in range(_RUNS):  # in turn, so that a busy minute meets both
            ours.append(_shown_after(command, _DATA))
            theirs.append(_shown_after([sys.executable, str(Path(__file__).with_name("plain_app.py"))], _LINE))
    what = "first paint with data, one engine, whole process on a pseudo-terminal"
    return [against(what, median(ours), "a Textual app of one line", median(theirs), budget=_BUDGET)]


def _shown_after(command: list[str], text: re.Pattern[str]) -> float:
    with tempfile.TemporaryDirectory() as empty, Terminal(command, Path(empty)) as terminal:
        at, _ = terminal.wait_for(text)
        return at - terminal.started
