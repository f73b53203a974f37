"""Which rows there are, and how bad each one is."""

import pytest

from tests.tui.factory import busy, queueing, status
from triage.domain.limits import Limits
from triage.domain.situation import Replica, Situation, TargetStatus
from triage.domain.target import FailureReason, Target, TargetState
from triage.domain.verdict import Confidence, Diagnosis, Kind, Scope, Verdict
from triage.tui.cells import Column
from triage.tui.fleet import FleetRow, Level, find, fleet_rows

HEALTHY = Verdict(Kind.HEALTHY, Confidence.LIKELY, Scope(), "fine")


def rows_of(
    *replicas: Replica,
    targets: tuple[TargetStatus, ...] = (),
    verdicts: tuple[Verdict, ...] = (HEALTHY,),
    limits: Limits | None = None,
) -> dict[str, FleetRow]:
    situation = Situation(0.0, 30.0, limits=limits or Limits(), replicas=replicas, targets=targets)
    return {row.name: row for row in fleet_rows(situation, Diagnosis(0.0, 30.0, verdicts))}


def test_a_replica_within_its_limits_is_well() -> None:
    assert rows_of(busy("a"))["a"].level is Level.WELL


def test_a_limit_is_broken_only_when_the_whole_bucket_lies_above_it() -> None:
    slow = rows_of(busy("a", ttft=9.4))["a"]
    assert slow.level is Level.OVER_LIMIT
    assert slow.cells[Column.TTFT95].mark == slow.cells[Column.TTFT].mark == "!"
    assert "first token p95 7.5–10 s, bound 3 s" in slow.reasons
    straddling = rows_of(busy("a", ttft=9.4), limits=Limits(first_visible_p95_s=8.0))["a"]
    assert straddling.level is Level.WELL


def test_slow_tokens_break_the_limit() -> None:
    row = rows_of(busy("a", itl=0.14))["a"]
    assert row.level is Level.OVER_LIMIT
    assert row.cells[Column.TOKEN_TIME].mark == "!"


@pytest.mark.parametrize("confidence", [Confidence.CONFIRMED, Confidence.LIKELY])
def test_a_row_that_a_sure_verdict_names_is_the_worst(confidence: Confidence) -> None:
    verdict = Verdict(Kind.QUEUEING, confidence, Scope(replica="a"), "")
    row = rows_of(busy("a"), verdicts=(verdict,))["a"]
    assert row.level is Level.NAMED
    assert row.reasons == ("named by queueing",)


def test_a_possible_or_healthy_verdict_names_nobody() -> None:
    possible = Verdict(Kind.QUEUEING, Confidence.POSSIBLE, Scope(replica="a"), "")
    healthy = Verdict(Kind.HEALTHY, Confidence.CONFIRMED, Scope(replica="a"), "")
    assert rows_of(busy("a"), verdicts=(possible, healthy))["a"].level is Level.WELL


def test_an_outlier_needs_three_peers_of_the_same_model() -> None:
    row = rows_of(busy("a", wait=40), busy("b"), busy("c"))["a"]
    assert row.level is Level.WATCH
    assert row.cells[Column.WAITING].mark == "↑"
    assert rows_of(busy("a", wait=40), busy("b"))["a"].level is Level.WELL
    assert rows_of(busy("a", wait=40), busy("b"), busy("c", model="other"))["a"].level is Level.WELL


def test_a_few_waiting_requests_are_no_outlier() -> None:
    assert rows_of(busy("a", wait=4), busy("b"), busy("c"))["a"].level is Level.WELL
    assert rows_of(busy("a", wait=5), busy("b"), busy("c"))["a"].level is Level.WATCH


@pytest.mark.parametrize(
    ("state", "level"),
    [
        (TargetState.DARK, Level.GONE),
        (TargetState.NEVER, Level.GONE),
        (TargetState.NO_METRICS, Level.GONE),
        (TargetState.STALE, Level.WATCH),
    ],
)
def test_a_target_without_replica_is_a_row_that_says_why(state: TargetState, level: Level) -> None:
    target = status("a", state, reason=FailureReason.TIMEOUT, detail="no answer within 5 s", age_s=42.0)
    row = rows_of(targets=(target,))["a"]
    assert row.level is level
    assert row.why.startswith("time-out: no answer within 5 s")


def test_a_stale_replica_keeps_its_numbers() -> None:
    row = rows_of(busy("a"), targets=(status("a", TargetState.STALE, reason=FailureReason.TIMEOUT),))["a"]
    assert row.why == ""
    assert row.cells[Column.RUNNING].text == "12"
    assert row.reasons == ("time-out",)


def test_a_target_with_two_models_gives_two_rows_that_can_be_told_apart() -> None:
    rows = rows_of(busy("a", model="x"), busy("a", model="y"))
    assert set(rows) == {"a · x", "a · y"}


def test_two_targets_with_one_name_keep_two_keys() -> None:
    twins = (busy("a"), busy("a"))
    situation = Situation(0.0, 30.0, replicas=twins)
    rows = fleet_rows(situation, Diagnosis(0.0, 30.0, (HEALTHY,)))
    assert len({row.key for row in rows}) == 2
    assert [find(situation, row.key)[0] for row in rows] == list(twins)


def test_find_gives_what_the_row_stands_for() -> None:
    observation = queueing()
    for row in fleet_rows(observation.situation, observation.diagnosis):
        replica, found = find(observation.situation, row.key)
        assert found is not None
        assert found.target.name == row.target
        assert (replica is None) == bool(row.why)
    assert find(observation.situation, "gone\nmodel") == (None, None)


def test_a_dark_target_without_failure_still_says_something() -> None:
    row = rows_of(targets=(TargetStatus(Target("a"), TargetState.DARK),))["a"]
    assert row.why
