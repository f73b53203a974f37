"""Public cases of starts, lost cache hits and sub-causes: what is named, how sure, and with which evidence."""

import pytest

from tests.cases.public import FOLDER
from triage.diagnosis.diagnose import diagnose
from triage.domain.verdict import Confidence, Kind
from triage.situation.folder import load_folder

L, C = Confidence.LIKELY, Confidence.CONFIRMED

NAMED = {
    "C34": (Kind.CACHE_MISS_REGRESSION, L, "restart", {"engine.hits-fell", "engine.since-restart"}),
    "C59": (Kind.COLD_START, L, "weights-load", {"engine.log.start-progress"}),
    "C61": (Kind.COLD_START, L, "weights-load", {"engine.log.start-progress"}),
    "C101": (
        Kind.CACHE_MISS_REGRESSION,
        C,
        "prompt-start",
        {"engine.hits-fell", "gateway.sender-lost", "probe.prompts-differ", "engine.same-length"},
    ),
    "C102": (Kind.CACHE_MISS_REGRESSION, L, "prompt-start", {"gateway.fixed-reuse", "engine.fixed-reuse"}),
    "C118": (Kind.COLD_START, L, "cache-empty", {"engine.log.start-progress", "engine.log.compile-cache"}),
    "C09": (Kind.QUEUEING, L, "adapter-slots", {"engine.waiting", "engine.adapters"}),
    "C30": (Kind.SLOW_DECODE, L, "speculation", {"engine.acceptance"}),
    "C110": (Kind.SLOW_DECODE, L, "speculation", {"engine.acceptance", "engine.context"}),
}


@pytest.mark.parametrize("case", sorted(NAMED))
def test_what_is_named_and_why(case: str) -> None:
    first = diagnose(load_folder(FOLDER / case)).verdicts[0]
    kind, confidence, detail, evidence = NAMED[case]
    assert (first.kind, first.confidence, first.detail) == (kind, confidence, detail)
    assert {item.id for item in first.evidence} >= evidence


@pytest.mark.parametrize("case", ["C28", "C60", "C62", "C70", "C72"])
def test_a_start_that_failed_or_was_killed_is_not_a_cold_one(case: str) -> None:
    assert all(verdict.kind is not Kind.COLD_START for verdict in diagnose(load_folder(FOLDER / case)).verdicts)


def test_hits_that_somebody_flushed_are_not_named_a_regression_for_sure() -> None:
    verdicts = diagnose(load_folder(FOLDER / "C120")).verdicts
    assert verdicts[0].kind is not Kind.CACHE_MISS_REGRESSION
    assert [v.confidence for v in verdicts if v.kind is Kind.CACHE_MISS_REGRESSION] in ([], [Confidence.POSSIBLE])
