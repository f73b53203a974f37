"""The public cases whose cause stands in answers and refusals: what is named, how surely, and on which evidence."""

import pytest

from tests.cases.public import FOLDER
from triage.diagnosis.diagnose import diagnose
from triage.domain.verdict import Confidence, Kind
from triage.situation.folder import load_folder

# case: (kind, detail, as sure as this at least, evidence that must stand under it)
NAMED = {
    "C11": (Kind.OVER_REJECTION, "queue-full", True, {"probe.refused", "engine.log.busy"}),
    "C37": (Kind.EMPTY_OUTPUT, "answer-in-reasoning", True, {"probe.empty", "probe.empty-counted"}),
    "C39": (Kind.TOOL_CALL_FAILURE, "not-parsed", True, {"probe.not-parsed", "probe.call-well-formed"}),
    "C41": (Kind.TRUNCATED_STREAM, "engine-side", True, {"probe.cut", "probe.clean-end"}),
    "C48": (Kind.TRUNCATED_STREAM, None, False, {"probe.cut"}),
    "C78": (Kind.OVER_REJECTION, "context-limit", True, {"probe.refused"}),
    "C107": (Kind.TOOL_CALL_FAILURE, "not-parsed", True, {"probe.not-parsed"}),
    "C108": (Kind.TOOL_CALL_FAILURE, "broken-arguments", True, {"probe.broken-arguments", "probe.call-well-formed"}),
    "R08": (Kind.CLIENT_ABORT, "while-streaming", False, {"engine.vanished", "probe.client-left"}),
    "R10": (Kind.OVER_REJECTION, "context-limit", True, {"engine.refused", "probe.refused"}),
}
# Requests go missing here for other reasons than clients that lose patience: a limit, retries, old gauges.
NOT_CLIENTS = ("C46", "C89", "R06", "R15")


@pytest.mark.parametrize("case", NAMED)
def test_named_on_decisive_evidence(case: str) -> None:
    kind, detail, sure, evidence = NAMED[case]
    first = diagnose(load_folder(FOLDER / case)).verdicts[0]
    assert (first.kind, first.detail) == (kind, detail), first.summary
    assert (first.confidence in (Confidence.LIKELY, Confidence.CONFIRMED)) is sure
    assert {item.id for item in first.evidence} >= evidence


@pytest.mark.parametrize("case", NOT_CLIENTS)
def test_missing_requests_are_not_blamed_on_clients(case: str) -> None:
    assert diagnose(load_folder(FOLDER / case)).verdicts[0].kind is not Kind.CLIENT_ABORT


def test_the_adapter_that_hides_a_cut_leaves_the_hop_named() -> None:
    first = diagnose(load_folder(FOLDER / "C41")).verdicts[0]
    assert first.scope.hop == "upstream"
    assert "a hop hides the cut" in " ".join(item.text for item in first.evidence)
