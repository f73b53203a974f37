"""A thousand replicas on loopback, scraped every five seconds by a monitor that has been running for an hour."""

import json
import subprocess
import sys
from typing import Final

from tests.bench.children import ROOT, engines
from tests.bench.row import Row
from tests.bench.watching import Watched

_REPLICAS: Final = 1000
_ROUNDS: Final = 7
_CPU_SHARE: Final = 0.5
_RESIDENT_MIB: Final = 250.0


def rows() -> list[Row]:
    with engines(_REPLICAS) as ports:
        command = [sys.executable, "-m", "tests.bench.watching", str(_ROUNDS)]
        asked = json.dumps(ports)
        ran = subprocess.run(command, cwd=ROOT, input=asked, check=True, stdout=subprocess.PIPE, text=True)
    seen = Watched(**json.loads(ran.stdout))
    what = f"{_REPLICAS:,} replicas on loopback, scraped every {seen.interval_s:g} s for {seen.wall_s:.0f} s"
    share = seen.cpu_s / seen.wall_s
    lateness = f"at most {seen.latest_s:.2f} s late; the first round took {seen.first_s:.2f} s"
    trouble = f"{seen.missed} late, {seen.unanswered} without an answer, {seen.gaps} gaps"
    return [
        Row(f"{what}: CPU", f"{seen.cpu_s:.1f} s of CPU", "one core", f"{share:.0%}", f"≤ {_CPU_SHARE:.0%}",
            share <= _CPU_SHARE),
        Row(f"{what}: intervals", lateness, "–", trouble, "none missed",
            not (seen.missed or seen.unanswered or seen.gaps)),
        Row(f"{what}: memory, with an hour of history", f"{seen.resident_mib:.0f} MiB resident", "–", "–",
            f"≤ {_RESIDENT_MIB:.0f} MiB", seen.resident_mib <= _RESIDENT_MIB),
    ]  # fmt: skip
