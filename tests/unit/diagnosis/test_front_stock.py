"""What withholds health at a front end, and between prefill and decode."""

from collections.abc import Mapping

import pytest

from tests.factory import reading, replica, situation
from tests.unit.diagnosis.test_gateway_queue import front
from triage.diagnosis.diagnose import diagnose
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import Role
from triage.domain.situation import Replica
from triage.domain.verdict import Kind, Verdict


def first(*replicas: Replica) -> Verdict:
    return diagnose(situation(*replicas)).verdicts[0]


def calm(extra: Mapping[Q, tuple[float, float]]) -> Replica:
    """A front end with answers in time and nothing held."""
    return front((0, 0), inside=(4, 4), held_for=None, first=0.3, takes=5.0, extra=extra)


def worker(extra: Mapping[Q, tuple[float, float]], *, finished: float = 60, tokens: float = 9000) -> Replica:
    levels: dict[Q, tuple[float, float]] = {
        Q.RUNNING: (4, 4),
        Q.WAITING: (0, 0),
        Q.GENERATION_TOKENS: (1e5, 1e5 + tokens),
        Q.FINISHED: (1e3, 1e3 + finished),
        Q.PROMPT_SECONDS: (10, 11),
        Q.GENERATION_SECONDS: (1000, 1090),
        **extra,
    }
    ends = (reading({q: pair[i] for q, pair in levels.items()}, role=Role.DECODE) for i in (0, 1))
    return replica(*ends)


def test_a_worker_without_failed_hand_overs_is_healthy() -> None:
    assert first(worker({Q.HANDOFF_FAILED: (7, 7)})).kind is Kind.HEALTHY


def test_failed_hand_overs_withhold_health_and_are_told() -> None:
    verdict = first(worker({Q.HANDOFF_FAILED: (7, 19)}))
    assert verdict.kind is not Kind.HEALTHY
    assert "12 hand-overs between prefill and decode failed" in verdict.summary


@pytest.mark.parametrize(("failed", "finished"), [(2, 60), (5, 5000)])
def test_a_few_failed_hand_overs_are_a_worker_that_went(failed: float, finished: float) -> None:
    assert first(worker({Q.HANDOFF_FAILED: (0, failed)}, finished=finished)).kind is Kind.HEALTHY


def test_a_front_end_that_reads_its_engines_in_vain_is_not_called_healthy() -> None:
    verdict = first(worker({}), calm({Q.PICKER_ERRORS: (0, 600)}))
    assert verdict.kind is Kind.INSUFFICIENT_DATA
    assert "it routes by what it last knew" in verdict.summary


def test_a_read_that_fails_now_and_then_is_a_pod_that_goes() -> None:
    assert first(worker({}), calm({Q.PICKER_ERRORS: (0, 4)})).kind is Kind.HEALTHY


def test_nobody_to_route_to_with_requests_inside_is_told_and_not_named() -> None:
    verdict = first(worker({}), calm({Q.READY_ENDPOINTS: (0, 0)}))
    assert verdict.kind is Kind.INSUFFICIENT_DATA
    assert "no engine is ready behind it, and 4 requests inside" in verdict.summary


def test_nobody_to_route_to_with_refused_requests_is_told_as_well() -> None:
    gate = front(
        (0, 0), inside=(0, 0), held_for=None, takes=None, passed=0,
        extra={Q.READY_ENDPOINTS: (0, 0), Q.FAILED: (3, 45)},
    )  # fmt: skip
    assert "no engine is ready behind it, and 42 requests came" in first(gate).summary


def test_engines_that_came_within_the_window_are_there() -> None:
    verdict = first(worker({}), calm({Q.READY_ENDPOINTS: (0, 3)}))
    assert verdict.kind is Kind.HEALTHY


def test_a_front_end_that_holds_requests_is_not_idle() -> None:
    gate = front((12, 12), inside=None, held_for=None, takes=None, passed=0)
    assert first(gate).kind is not Kind.HEALTHY
