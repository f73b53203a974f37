"""CPU time of a call and of a child process, and how a time grows."""

import gc
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import linear_regression
from timeit import Timer


def least_cpu(work: Callable[[], object], *, repeat: int = 7, number: int | None = None) -> float:
    """Seconds of CPU of one call: the least of `repeat` means, because noise only adds.

    The garbage collector stays on, as it does in use. number: calls a mean; by default as many as take 0.2 s.
    """
    timer = Timer(work, setup=gc.enable, timer=time.process_time)
    number = number or timer.autorange()[0]
    return min(timer.repeat(repeat, number)) / number


def least_cpu_in_turn(works: Sequence[Callable[[], object]], *, rounds: int) -> list[float]:
    """Seconds of CPU of one call of each, the least of so many rounds.

    In turn, because a neighbour on the same core doubles even CPU time for seconds: it then meets all of them, and no
    one in every round. Short works are called more often in a round, so that each takes 50 ms of it or one call.
    """
    numbers = [max(1, round(0.05 / max(least_cpu(work, repeat=1, number=1), 1e-6))) for work in works]
    least = [math.inf] * len(works)
    for _ in range(rounds):
        for place, (work, number) in enumerate(zip(works, numbers, strict=True)):
            least[place] = min(least[place], least_cpu(work, repeat=1, number=number))
    return least


def child_cpu(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """Seconds of CPU, user and system, of one Python process from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def growth(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The exponent p of seconds ~ sizes^p: 1 is linear, 2 quadratic. Least squares over the logarithms."""
    return linear_regression([math.log(n) for n in sizes], [math.log(s) for s in seconds]).slope


def resident_mib() -> float:
    """The most memory this process has had in RAM.

    Linux lets a process that was started by a large one begin with that one's ru_maxrss; VmHWM is its own. Elsewhere
    ru_maxrss has to do: KiB, but bytes on macOS.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]) / 1024
    unit = {"darwin": 1024**2}.get(sys.platform, 1024)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
