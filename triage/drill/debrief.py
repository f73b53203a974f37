"""A drill's end: the person's answer and the tool's verdicts beside the truth."""

import difflib
import textwrap
from collections.abc import Sequence

import msgspec

from triage.domain.verdict import Confidence, Diagnosis, Direction, Kind, Verdict
from triage.lab.account.truth import Truth
from triage.lab.faults.fault import Fault
from triage.situation.costs import sources_of

# Lines of evidence that are quoted.
_QUOTED = 2


class Moment(msgspec.Struct, frozen=True):
    """What the tool said first of all, so many seconds after the page, until the next one."""

    after_s: float
    verdict: Verdict


def add_moment(moments: list[Moment], after_s: float, diagnosis: Diagnosis) -> None:
    """Keeps changes only."""
    first = diagnosis.verdicts[0]
    last = moments[-1].verdict if moments else None
    if last is None or (last.kind, last.confidence, last.detail) != (first.kind, first.confidence, first.detail):
        moments.append(Moment(after_s, first))


def kind_meant(answer: str) -> tuple[Kind | None, tuple[str, ...]]:
    """The verdict that somebody typed, or the closest words."""
    sought = answer.strip().lower().replace(" ", "-").replace("_", "-")
    words = [kind.value for kind in Kind]
    if sought in words:
        return Kind(sought), ()
    begun = [word for word in words if sought and word.startswith(sought)]
    if len(begun) == 1:
        return Kind(begun[0]), ()
    return None, tuple(begun[:4] or difflib.get_close_matches(sought, words, n=3))


def debrief(
    faults: Sequence[Fault],
    truth: Truth,
    answer: Kind | None,
    after_s: float,
    moments: Sequence[Moment],
    width: int = 100,
) -> str:
    """answer: None when somebody left without one. after_s: seconds from the page to the answer. width: columns."""
    what = " + ".join([f"{fault.name} ({fault.title})" for fault in faults])
    lines = [
        ("it was", what),
        ("truth", f"{truth.main.value}: {truth.why}"),
        ("you", _answered(truth, answer, after_s)),
        *[("tool" if not place else "", _said(truth, moment)) for place, moment in enumerate(moments)],
        ("shown by", _shown(truth, moments)),
    ]
    return "".join([f"{_wrapped(label, text, width)}\n" for label, text in lines])


def _wrapped(label: str, text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent=f"{label:<9} ", subsequent_indent=" " * 10, break_on_hyphens=False)


def _answered(truth: Truth, answer: Kind | None, after_s: float) -> str:
    if answer is None:
        return f"no answer after {_time(after_s)}"
    if answer in truth.accepted:
        best = "" if answer is truth.main else f", {truth.main.value} is more exact"
        return f"{answer.value}: right, after {_time(after_s)}{best}"
    return f"{answer.value}: not right, after {_time(after_s)}"


def _said(truth: Truth, moment: Moment) -> str:
    verdict = moment.verdict
    if verdict.kind is Kind.INSUFFICIENT_DATA:
        right = "open"
    else:
        right = "right" if verdict.kind in truth.accepted else "not right"
    sure = f" ({verdict.confidence.value})" if isinstance(verdict.confidence, Confidence) else ""
    return f"{verdict.kind.value}{sure} after {_time(moment.after_s)}: {right}"


def _shown(truth: Truth, moments: Sequence[Moment]) -> str:
    """Where the truth could be seen: the lines of the verdict that named it, or the source that is not read."""
    for moment in reversed(moments):
        if moment.verdict.kind in truth.accepted:
            lines = [item for item in moment.verdict.evidence if item.direction is Direction.FOR][:_QUOTED]
            quoted = "; ".join([f"{item.text} [{item.source}]" for item in lines])
            return f"the overview's card, and e on it: {quoted or moment.verdict.summary}"
    sources = sources_of(truth.main)
    if sources:
        return f"no screen here: {' or '.join(sources)} would have told"
    return "no screen here"


def _time(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
