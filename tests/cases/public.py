"""The public diagnosis cases: folders with evidence and an expected answer (see NOTICE.md beside them)."""

from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "data"

# The verdicts that engine evidence can carry, and the files that are read for them.
ENGINE_VERDICTS = frozenset(
    {
        "queueing",
        "slow-prefill",
        "hidden-reasoning",
        "slow-decode",
        "kv-pressure",
        "load-imbalance",
        "engine-stalled",
        "engine-dead",
        "metrics-missing",
        "metrics-frozen",
        "metrics-renamed",
        "healthy",
        "insufficient-data",
    }
)
READABLE = ("*.prom", "*.log", "probes.json", "*.sse", "container.json", "ps.json", "targets.json", "queries.json")


def all_cases() -> list[str]:
    return sorted(path.parent.name for path in FOLDER.glob("*/expected.yaml"))


@cache
def expected(case: str) -> dict[str, Any]:
    answer: dict[str, Any] = yaml.safe_load((FOLDER / case / "expected.yaml").read_text())
    return answer


def engine_cases() -> list[str]:
    """Cases that engine evidence alone decides."""
    return [
        case
        for case in all_cases()
        if expected(case)["verdict"] in ENGINE_VERDICTS
        and all(
            any(fnmatch(file.name, pattern) for pattern in READABLE)
            for file in (FOLDER / case).iterdir()
            if file.name != "expected.yaml"
        )
    ]
