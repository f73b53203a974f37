"""What graded runs say, as a document for scripts and as text for people."""

from collections.abc import Sequence
from statistics import median

import msgspec

from triage.drill.course import LOOKS_S, Run
from triage.drill.matrix import (
    UNREAD,
    by_fault,
    confusion,
    is_abstained,
    is_confident_wrong,
    is_wrong,
    readable,
    score,
    time_to_right,
)

SCHEMA = "triage.grade/1"


class FaultGrade(msgspec.Struct, frozen=True):
    """Of one fault, or combination: numbers of runs by their last look.

    readable: runs whose truth lies in sources that are read; right, abstained and wrong count these alone.
    unread: the others. confident_wrong: of both. right_after_s: median seconds from the page to the first right word,
    None where there was none.
    """

    fault: str
    runs: int
    readable: int
    right: int
    abstained: int
    wrong: int
    unread: int
    unread_right: int
    confident_wrong: int
    right_after_s: float | None


class Miss(msgspec.Struct, frozen=True):
    """A run whose last look was not right. readable: it could have been."""

    fault: str
    workload: str
    seed: str
    severity: float
    readable: bool
    said: str
    confidence: str | None
    summary: str
    truth: str
    why: str


class Grade(msgspec.Struct, frozen=True):
    """top1: right among the readable. confident_wrong: among all. false_alarms: on fleets where all was well.

    said: [right, all] by confidence. confusion: for each true word how often each word was said.
    """

    seeds: tuple[str, ...]
    runs: int
    readable: int
    top1: float
    right: int
    abstained: int
    wrong: int
    confident_wrong: int
    unread: int
    unread_right: int
    unread_abstained: int
    healthy: int
    false_alarms: int
    said: dict[str, tuple[int, int]]
    confusion: dict[str, dict[str, int]]
    faults: tuple[FaultGrade, ...]
    misses: tuple[Miss, ...]
    schema: str = SCHEMA


def grade_of(runs: Sequence[Run]) -> Grade:
    """Over the last look of each run, in an order that does not depend on which run ended first."""
    runs = sorted(runs, key=lambda run: (run.name, run.workload, run.seed))
    looks = [run.last for run in runs]
    total = score(looks)
    return Grade(
        seeds=tuple(sorted({run.seed for run in runs})),
        runs=len(runs),
        readable=total.looks,
        top1=round(total.top_1, 4),
        right=total.right,
        abstained=total.abstained,
        wrong=total.wrong,
        confident_wrong=total.confident_wrong + total.unread_confident_wrong,
        unread=total.unread,
        unread_right=total.unread_right,
        unread_abstained=total.unread_abstained,
        healthy=total.healthy,
        false_alarms=total.false_alarms,
        said=total.right_when,
        confusion={
            truth.value: {said.value: number for said, number in row.most_common()}
            for truth, row in sorted(confusion(looks).items())
        },
        faults=tuple([_of_fault(name, some) for name, some in by_fault(runs).items()]),
        misses=tuple([_miss(run) for run in runs if not run.last.right]),
    )


def _of_fault(name: str, runs: Sequence[Run]) -> FaultGrade:
    seen = [run.last for run in runs if readable(run.last)]
    unseen = [run.last for run in runs if not readable(run.last)]
    times = time_to_right(runs)
    return FaultGrade(
        fault=name,
        runs=len(runs),
        readable=len(seen),
        right=sum([look.right for look in seen]),
        abstained=sum([is_abstained(look) for look in seen]),
        wrong=sum([is_wrong(look) for look in seen]),
        unread=len(unseen),
        unread_right=sum([look.right for look in unseen]),
        confident_wrong=sum([is_confident_wrong(run.last) for run in runs]),
        right_after_s=median(times) if times else None,
    )


def _miss(run: Run) -> Miss:
    last = run.last
    return Miss(
        run.name,
        run.workload,
        run.seed,
        round(run.severity, 2),
        readable(last),
        last.kind.value,
        last.confidence.value if last.confidence is not None else None,
        last.summary,
        last.truth.value,
        last.why,
    )


def to_text(grade: Grade) -> str:
    """Markdown that reads as text as well: totals, faults, the matrix, and what was missed with evidence at hand."""
    parts = [_totals(grade), _faults(grade), _matrix(grade), _misses(grade)]
    return "\n\n".join([part for part in parts if part]) + "\n"


def _totals(grade: Grade) -> str:
    said = ", ".join([f"{word} {right} of {number}" for word, (right, number) in grade.said.items()])
    sources = ", ".join(sorted(set(UNREAD.values())))
    return "\n".join(
        [
            f"{grade.runs} runs with {len(grade.seeds)} seeds ({grade.seeds[0]} to {grade.seeds[-1]}), "
            f"each judged {LOOKS_S[-1]:.0f} s after the page.",
            "",
            f"* Evidence at hand: {grade.readable} runs, {grade.right} right (top-1 {grade.top1:.3f}), "
            f"{grade.abstained} abstained, {grade.wrong} wrong.",
            f"* Evidence only in sources not read yet ({sources}): {grade.unread} runs, {grade.unread_right} right, "
            f"{grade.unread_abstained} abstained.",
            f"* Wrong and confident: {grade.confident_wrong} of {grade.runs} "
            f"({grade.confident_wrong / grade.runs:.1%}).",
            f"* Fleets where all was well: {grade.healthy}, false alarms {grade.false_alarms}.",
            f"* Right when said: {said}.",
        ]
    )


def _faults(grade: Grade) -> str:
    rows = [
        (
            one.fault,
            one.runs,
            f"{one.right}/{one.readable}",
            one.abstained,
            one.wrong,
            f"{one.unread_right}/{one.unread}" if one.unread else "",
            one.confident_wrong or "",
            f"{one.right_after_s:.0f} s" if one.right_after_s is not None else "never",
        )
        for one in grade.faults
    ]
    head = ("fault", "runs", "right", "abstained", "wrong", "unread, right", "confident wrong", "right after")
    return _table(head, rows)


def _matrix(grade: Grade) -> str:
    rows = [
        (truth, sum(said.values()), ", ".join([f"{word} {number}" for word, number in said.items()]))
        for truth, said in grade.confusion.items()
    ]
    return _table(("truth", "runs", "said"), rows)


def _misses(grade: Grade) -> str:
    rows = [
        (
            f"{miss.fault} / {miss.workload} / {miss.seed}",
            f"{miss.said} {miss.confidence or ''}".strip(),
            miss.truth,
        )
        for miss in grade.misses
        if miss.readable
    ]
    return _table(("not right with evidence at hand", "said", "truth"), rows) if rows else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    texts = [head, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(line[place]) for line in texts) for place in range(len(head))]
    lines = [
        "| " + " | ".join([cell.ljust(width) for cell, width in zip(line, widths, strict=True)]) + " |"
        for line in texts
    ]
    lines.insert(1, "|" + "|".join(["-" * (width + 2) for width in widths]) + "|")
    return "\n".join(lines)
