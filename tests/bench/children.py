"""Starting the bench's own helper processes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
