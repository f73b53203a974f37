"""Starting the bench's own helper processes."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def compiled() -> Iterator[dict[str, str]]:
    """An environment in which Python keeps compiled modules, as an installed package has them, outside the checkout.

    Run each program once before it is measured: that run compiles.
    """
    with tempfile.TemporaryDirectory() as kept:
        unset = ("PYTHONDONTWRITEBYTECODE", "NO_COLOR", "COLUMNS", "LINES")
        inherited = {key: value for key, value in os.environ.items() if key not in unset}
        yield {**inherited, "PYTHONPYCACHEPREFIX": kept}


@contextmanager
def engines(count: int) -> Iterator[list[int]]:
    """The ports of so many engines, in a process of their own, for as long as the block lasts."""
    command = [sys.executable, "-m", "tests.bench.engines", str(count)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield json.loads(child.stdout.readline())
        finally:
            child.stdin.close()
            child.wait(timeout=30)
