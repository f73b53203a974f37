"""What is said at the end of a drill."""

import pytest

from triage.domain.verdict import (
    Confidence,
    Diagnosis,
    Direction,
    Evidence,
    Family,
    Kind,
    Scope,
    Verdict,
)
from triage.drill.debrief import Moment, add_moment, debrief, kind_meant
from triage.lab.account.truth import Cause, Sure, Truth
from triage.lab.faults.catalogue import faults_named

FAULTS = faults_named("retry-storm")
TRUTH = Truth((Cause((Kind.RETRY_STORM, Kind.QUEUEING), Sure.YES, "2.1 tries a call"),))


def verdict(kind: Kind, confidence: Confidence | None = Confidence.LIKELY) -> Verdict:
    line = Evidence(
        id="a",
        direction=Direction.FOR,
        strength=2,
        family=Family.ENGINE,
        text="41 requests wait",
        value=41.0,
        unit="requests",
        source="chat-a /metrics",
    )
    return Verdict(kind=kind, confidence=confidence, scope=Scope(), summary="it waits", evidence=(line,), runbook="")


@pytest.mark.parametrize(
    ("typed", "kind", "close"),
    [
        ("queueing", Kind.QUEUEING, ()),
        (" Slow decode ", Kind.SLOW_DECODE, ()),
        ("retry", Kind.RETRY_STORM, ()),
        ("slow", None, ("slow-prefill", "slow-decode")),
        ("queing", None, ("queueing",)),
        ("the dog", None, ()),
        ("", None, ()),
    ],
)
def test_what_somebody_types_is_understood_or_answered_with_what_is_close(
    typed: str, kind: Kind | None, close: tuple[str, ...]
) -> None:
    found, near = kind_meant(typed)
    assert found is kind
    assert set(close) <= set(near)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Kind.RETRY_STORM, "retry-storm: right, after 1 min 15 s\n"),
        (Kind.QUEUEING, "queueing: right, after 1 min 15 s, retry-storm is more exact\n"),
        (Kind.SLOW_DECODE, "slow-decode: not right, after 1 min 15 s\n"),
        (None, "no answer after 1 min 15 s\n"),
    ],
)
def test_the_answer_is_held_against_the_truth(answer: Kind | None, said: str) -> None:
    text = debrief(FAULTS, TRUTH, answer, 75.0, [Moment(3.0, verdict(Kind.QUEUEING))], 200)
    assert said in text
    assert "it was    retry-storm (retries multiply the load)" in text
    assert "2.1 tries a call" in text
    assert "tool      queueing (likely) after 3 s: right" in text
    assert "41 requests wait [chat-a /metrics]" in text


def test_without_a_right_verdict_the_source_is_named_that_would_have_told() -> None:
    silent = verdict(Kind.INSUFFICIENT_DATA, None)
    text = debrief(FAULTS, TRUTH, None, 9.0, [Moment(2.0, silent), Moment(5.0, verdict(Kind.SLOW_DECODE))])
    assert "insufficient-data after 2 s: open" in text
    assert "slow-decode (likely) after 5 s: not right" in text
    assert "no screen here: gateway log would have told" in text


def test_only_changes_of_the_verdict_are_kept() -> None:
    moments: list[Moment] = []
    for at, kind in enumerate((Kind.HEALTHY, Kind.HEALTHY, Kind.QUEUEING, Kind.QUEUEING, Kind.HEALTHY)):
        add_moment(moments, float(at), Diagnosis(None, 30.0, (verdict(kind),)))
    assert [(one.after_s, one.verdict.kind) for one in moments] == [
        (0.0, Kind.HEALTHY),
        (2.0, Kind.QUEUEING),
        (4.0, Kind.HEALTHY),
    ]
