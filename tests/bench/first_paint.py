"""From the start of the process to the first number on the screen."""

import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench import pages
from tests.bench.children import compiled, engines
from tests.bench.row import Row, against
from tests.bench.terminal import Terminal

_BUDGET: Final = 1.3
_RUNS: Final = 7
# The model's name is on the engine's page alone: when it is drawn, so are its numbers.
_DATA: Final = re.compile(rf"({pages.MODEL})")
_LINE: Final = re.compile("(bench-line)")


def rows() -> list[Row]:
    plain = [sys.executable, str(Path(__file__).with_name("plain_app.py"))]
    ours, theirs = [], []
    with engines(1) as ports, compiled() as environment:
        triage = [sys.executable, "-m", "triage.cli", "--target", f"http://127.0.0.1:{ports[0]}"]
        for _ in range(1 + _RUNS):  # in turn, so that a busy minute meets both
            ours.append(_shown_after(triage, _DATA, environment))
            theirs.append(_shown_after(plain, _LINE, environment))
    what = "first paint with data, one engine, whole process on a pseudo-terminal"
    return [against(what, median(ours[1:]), "a Textual app of one line", median(theirs[1:]), budget=_BUDGET)]


def _shown_after(command: Sequence[str], text: re.Pattern[str], environment: Mapping[str, str]) -> float:
    with tempfile.TemporaryDirectory() as empty, Terminal(command, Path(empty), environment) as terminal:
        at, _ = terminal.wait_for(text)
        return at - terminal.started
