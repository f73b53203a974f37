"""Runs every fault on every workload with many seeds, in parallel processes, and gathers what was said."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence

import msgspec

from triage.drill.course import Course, Run
from triage.lab.faults.catalogue import FAULTS
from triage.lab.faults.fault import Fault
from triage.lab.fleets import WORKLOADS, Workload

# Seeds while rules are tuned and seeds that grade are never the same.
TUNING = "tuning"
GRADING = "grading"


class Task(msgspec.Struct, frozen=True):
    """One workload with one seed, and the faults to try on it. Names, so that it can cross to another process."""

    workload: str
    seed: str
    faults: tuple[str, ...]


def tasks_of(seeds: int, *, purpose: str = GRADING, faults: Sequence[Fault] = FAULTS) -> list[Task]:
    """Every workload with so many seeds; each fault where it applies."""
    return [
        Task(workload.name, f"{purpose}-{seed}", tuple([fault.name for fault in faults if _applies(fault, workload)]))
        for seed in range(seeds)
        for workload in WORKLOADS
    ]


def run_tasks(tasks: Sequence[Task], processes: int | None = None) -> Iterator[Run]:
    """Runs in no order. A task's healthy past is simulated once; each fault gets a copy of it, by fork."""
    context = multiprocessing.get_context("fork")
    with context.Pool(processes or os.cpu_count() or 1) as pool:
        for runs in pool.imap_unordered(_run_task, tasks):
            yield from runs


def _run_task(task: Task) -> list[Run]:
    by_name = {fault.name: fault for fault in FAULTS}
    workload = {one.name: one for one in WORKLOADS}[task.workload]
    course = Course(workload, task.seed)
    return [_in_copy(course, by_name[name]) for name in task.faults]


def _in_copy(course: Course, fault: Fault) -> Run:
    """The run in a child process, whose world is a copy of ours. RuntimeError when it dies."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(msgspec.msgpack.encode(course.run((fault,))))
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if status or not told:
        raise RuntimeError(f"the run of {fault.name} on {course.workload.name} with {course.seed} has failed")
    return msgspec.msgpack.decode(told, type=Run)


def _applies(fault: Fault, workload: Workload) -> bool:
    return all(fault.applies(service) for service in workload.services)
