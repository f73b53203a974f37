"""The shortest commands, against `import httpx`."""

import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from tests.bench.children import compiled
from tests.bench.measure import child_cpu
from tests.bench.row import Row, against, not_measured

_BUDGET: Final = 1.5
_RUNS: Final = 9
_HEAVY: Final = ("textual", "kubernetes")
_LOADED: Final = f"""
import sys
from triage.cli.main import run
try:
    run()
except SystemExit:
    pass
print(*[name for name in {_HEAVY!r} if name in sys.modules], file=sys.stderr)
"""


def rows() -> list[Row]:
    with compiled() as environment:
        return [_row(option, environment) for option in ("--version", "--help")]


def _row(option: str, environment: Mapping[str, str]) -> Row:
    what = f"`triage {option}`, CPU of the process"
    if find_spec("httpx") is None:
        return not_measured(what, f"≤ {_BUDGET:g} ×", "httpx")
    ours, theirs = [], []
    for _ in range(_RUNS):  # in turn, so that a busy minute meets both
        ours.append(child_cpu(["-m", "triage.cli", option], environment))
        theirs.append(child_cpu(["-c", "import httpx"], environment))
    row = against(what, min(ours), "`import httpx`", min(theirs), budget=_BUDGET)
    loaded = _heavy_modules(option)
    return row._replace(measured=f"{row.measured}, but loads {loaded}", held=False) if loaded else row


def _heavy_modules(option: str) -> str:
    """Which modules were loaded that only a screen or a cluster needs."""
    ran = subprocess.run([sys.executable, "-c", _LOADED, option], check=True, capture_output=True, text=True)
    return ran.stderr.strip()
