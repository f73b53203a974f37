"""Live scrapes to situations: states of targets, staleness, gaps."""

from tests.factory import reading
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import PageReading, Scrape
from triage.domain.stream import ProbeReading
from triage.domain.target import Failure, FailureReason, Target, TargetState
from triage.situation.store import Store

A = Target("a", "http://a")


def scrape(at: float, tokens: float = 0.0, *, engine: bool = True) -> Scrape:
    engines = (reading({Q.RUNNING: 2, Q.GENERATION_TOKENS: tokens}),) if engine else ()
    page = PageReading(A, "a", at, engines, (), frozenset({"x"}))
    return Scrape(A, at, 0.01, page, None)


def failed(at: float, reason: FailureReason = FailureReason.TIMEOUT) -> Scrape:
    return Scrape(A, at, 5.0, None, Failure(reason, "said"))


def store() -> Store:
    return Store([A], window_s=30.0, limits=Limits())


def test_a_target_that_was_never_read_is_never_seen() -> None:
    situation = store().situation(100.0, 5.0)
    assert situation.targets[0].state is TargetState.NEVER
    assert not situation.replicas


def test_the_window_covers_the_asked_for_time_and_not_more() -> None:
    kept = store()
    for round_ in range(20):
        kept.add([scrape(100.0 + 5 * round_, 10.0 * round_)])
    (replica,) = kept.situation(195.0, 5.0).replicas
    assert 30.0 <= replica.window.seconds <= 35.0
    assert replica.window.rate(Q.GENERATION_TOKENS) == 2.0


def test_a_failure_makes_it_dark_with_the_reason_and_keeps_the_age() -> None:
    kept = store()
    kept.add([scrape(100.0)])
    kept.add([failed(110.0)])
    status = kept.situation(112.0, 5.0).targets[0]
    assert (status.state, status.age_s, status.answered_at) == (TargetState.DARK, 12.0, 100.0)
    assert str(status.failure) == "time-out: said"


def test_an_old_reading_is_no_replica_any_more() -> None:
    kept = store()
    kept.add([scrape(100.0)])
    assert kept.situation(101.0, 5.0).replicas
    assert not kept.situation(200.0, 5.0).replicas


def test_missing_metrics_and_a_dead_target_are_different_states() -> None:
    for reason, state in (
        (FailureReason.NOT_FOUND, TargetState.NO_METRICS),
        (FailureReason.NOT_METRICS, TargetState.NO_METRICS),
        (FailureReason.REFUSED, TargetState.NEVER),
    ):
        kept = store()
        kept.add([failed(100.0, reason)])
        assert kept.situation(101.0, 5.0).targets[0].state is state
    kept = store()
    kept.add([scrape(100.0, engine=False)])
    assert kept.situation(101.0, 5.0).targets[0].state is TargetState.NO_METRICS


def test_a_hole_in_the_readings_is_left_out() -> None:
    kept = store()
    for at, tokens in ((100.0, 0.0), (105.0, 10.0), (125.0, 5000.0), (130.0, 5010.0)):
        kept.add([scrape(at, tokens)])
    (replica,) = kept.situation(130.0, 5.0).replicas
    assert (replica.window.gaps, replica.window.rate(Q.GENERATION_TOKENS)) == (1, 2.0)


def test_trails_are_the_history_of_one_target() -> None:
    kept = store()
    kept.add([scrape(100.0, 1.0)])
    kept.add([scrape(105.0, 3.0)])
    assert kept.trail("a", Q.GENERATION_TOKENS) == ((100.0, 1.0), (105.0, 3.0))
    assert kept.trail("b", Q.GENERATION_TOKENS) == ()


def test_a_probe_counts_for_two_minutes() -> None:
    kept = store()
    kept.add_probe(100.0, ProbeReading("probe", "a", "POST", "/v1/completions", 200, at=100.0), None)
    assert kept.situation(150.0, 5.0).probes
    assert not kept.situation(300.0, 5.0).probes


def test_a_newer_probe_replaces_the_older_one_of_its_target() -> None:
    kept = store()
    for at, first in ((100.0, 12.0), (110.0, 0.1)):
        kept.add_probe(at, ProbeReading("probe", "a", "POST", "/v1/completions", 200, first_token_s=first), None)
    assert [probe.first_token_s for probe in kept.situation(111.0, 5.0).probes] == [0.1]
