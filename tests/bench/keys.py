"""From a key to the screen that shows its effect, while a thousand rows change."""

import random
import re
import sys
from statistics import median, quantiles
from typing import Final

from tests.bench.children import ROOT, compiled
from tests.bench.row import Row, duration
from tests.bench.terminal import Terminal

_BUDGET_S: Final = 0.1
_KEYS: Final = 300
_SETTLE_S: Final = 8.0
# Mostly a person who walks down the list; sometimes a page, the end, the beginning and back.
_PRESSED: Final = (*[b"j"] * 12, b"k", b"\x1b[6~", b"j", b"k", b"G", b"k", b"\x1b[5~", b"j", b"g", b"j")
_CURSOR: Final = re.compile(r"▸.(vllm-\d+)")


def rows() -> list[Row]:
    return [
        _row("5 % of 1,000 rows change every second", "feed"),
        _row("the monitor of 1,000 replicas in the same process", "monitor"),
    ]


def _row(what: str, mode: str) -> Row:
    waits = _waits(mode)
    most = quantiles(waits, n=100)[98]
    shown = f"p99 {duration(most)}, median {duration(median(waits))}, worst {duration(max(waits))} of {len(waits)}"
    return Row(f"key to screen, {what}", shown, "–", "–", f"p99 ≤ {duration(_BUDGET_S)}", most <= _BUDGET_S)


def _waits(mode: str) -> list[float]:
    """Seconds from each key to the first output in which the cursor stands on another row."""
    pauses = random.Random(1)
    waits = []
    command = [sys.executable, "-m", "tests.bench.rows_app", mode]
    with compiled() as environment, Terminal(command, ROOT, environment) as terminal:
        _, name = terminal.wait_for(_CURSOR)
        terminal.rest(_SETTLE_S)
        for turn in range(_KEYS):
            pressed = terminal.press(_PRESSED[turn % len(_PRESSED)])
            shown, name = terminal.wait_for(_CURSOR, other_than=name)
            waits.append(shown - pressed)
            # Not in step with the rounds: keys must meet every part of one.
            terminal.rest(pauses.uniform(0.03, 0.2))
    return waits
