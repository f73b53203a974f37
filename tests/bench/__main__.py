"""Measures every budget and prints the table; exit code 1 when one is not held."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import Final

from tests.bench import first_paint, fleet, growing, judging, keys, parsing, startup
from tests.bench.row import Row, failed, table

# In the order of the table; the one that needs both cores the longest comes last.
MEASUREMENTS: Final[dict[str, Callable[[], list[Row]]]] = {
    "first-paint": first_paint.rows,
    "startup": startup.rows,
    "parsing": parsing.rows,
    "judging": judging.rows,
    "keys": keys.rows,
    "growth": growing.rows,
    "fleet": fleet.rows,
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"what to measure: {', '.join(MEASUREMENTS)}; all of it by default")
    chosen = parser.parse_args(arguments).name
    unknown = [name for name in chosen if name not in MEASUREMENTS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    busy, cores = os.getloadavg()[0], os.cpu_count() or 1
    if busy > cores / 2:
        print(f"load average {busy:.1f} on {cores} cores: first paint and keys will come out too slow", file=sys.stderr)
    found: list[Row] = []
    for name, measure in MEASUREMENTS.items():
        if name in chosen or not chosen:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            found += measure()
    print(table(found), end="")
    return 1 if failed(found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
