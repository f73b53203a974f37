"""CPU time of a call and of a child process, and how a time grows."""

import gc
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import linear_regression
from timeit import Timer


def least_cpu(work: Callable[[], object], *, repeat: int = 7, number: int | None = None) -> float:
    """Seconds of CPU of one call: the least of `repeat` means, because noise only adds.

    The garbage collector stays on, as it does in use. number: calls a mean; by default as many as take 0.2 s.
    """
    timer = Timer(work, setup=gc.enable, timer=time.process_time)
    number = number or timer.autorange()[0]
    return min(timer.repeat(repeat, number)) / number


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
    """The most memory this process has had in RAM. ru_maxrss is in KiB on Linux and in bytes on macOS."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024**2 if sys.platform == "darwin" else 1024)
