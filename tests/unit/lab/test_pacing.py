import pytest

from triage.lab import pacing
from triage.lab.incidents import HEALTHY, REPLICAS
from triage.lab.pacing import Pacer
from triage.lab.replica import Replica


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock as a list of one number that the test sets."""
    now = [1000.0]
    monkeypatch.setattr(pacing.time, "monotonic", lambda: now[0])
    return now


def test_virtual_time_runs_with_the_clock_from_where_the_past_ended(clock: list[float]) -> None:
    replica = Replica(REPLICAS[0], HEALTHY, seed=1)
    replica.advance(60.0)
    pacer = Pacer([replica])
    clock[0] += 1.5
    pacer.catch_up()
    assert replica.now == pytest.approx(61.5)
    pacer.catch_up()
    assert replica.now == pytest.approx(61.5)


def test_all_replicas_share_one_time_and_tests_can_run_faster(clock: list[float]) -> None:
    replicas = [Replica(spec, HEALTHY, seed=1) for spec in REPLICAS]
    pacer = Pacer(replicas, speed=20.0)
    clock[0] += 0.5
    pacer.catch_up()
    assert [replica.now for replica in replicas] == [pytest.approx(10.0)] * 4


def test_a_long_pause_of_the_process_is_not_made_up_for(clock: list[float]) -> None:
    replica = Replica(REPLICAS[0], HEALTHY, seed=1)
    pacer = Pacer([replica])
    clock[0] += 8 * 3600.0
    pacer.catch_up()
    assert replica.now == pytest.approx(30.0)
