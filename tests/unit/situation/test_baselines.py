"""What is usual: a past that was itself bad, too thin or somebody else's must not become the measure unnoticed."""

import msgspec
import pytest

from tests.factory import histogram, reading
from triage.domain.derived import per_token
from triage.domain.limits import Limits
from triage.domain.monitoring import MonitoringReading, MonitoringTrouble, Past, Trouble
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading, PageReading, Scrape
from triage.domain.situation import Alert, MonitoredTarget, Replica
from triage.domain.target import Failure, FailureReason, Target, TargetState
from triage.situation.baselines import OWN_NAME
from triage.situation.store import Store

DAY, WEEK = "the same time a day ago", "the same time a week ago"
T0 = 1_000_000.0


def at(when: float, tokens: float, seconds: float, *, running: float = 8, model: str = "m") -> EngineReading:
    """tokens, seconds: counted since the process started."""
    itl = msgspec.structs.replace(histogram(0.0, tokens), total=seconds)
    values = {Q.RUNNING: running, Q.GENERATION_TOKENS: tokens}
    return msgspec.structs.replace(reading(values, histograms={Q.ITL: itl}, model=model), at=when)


def past(name: str, itl: float, *, target: str = "a", tokens: float = 5000, running: float = 8) -> Past:
    return Past(target, name, (at(0.0, 0, 0, running=running), at(300.0, tokens, tokens * itl, running=running)))


def scrape(one: EngineReading, target: str = "a", every_s: float | None = None) -> Scrape:
    assert one.at is not None
    page = PageReading(Target(target), "s", one.at, (one,), (), frozenset({"x"}))
    return Scrape(Target(target), one.at, 0.0, page, None, 0, every_s)


def store_at(itl: float, *pasts: Past, lifetime: float = 0.0, target: str = "a") -> Store:
    """Thirty seconds at `itl`, after a hundred thousand tokens at `lifetime`."""
    store = Store((), window_s=30.0, limits=Limits())
    before = 100_000 if lifetime else 0
    for n in range(7):
        store.add([scrape(at(T0 + 5 * n, before + 100 * n, before * lifetime + 100 * n * itl), target)])
    store.add([MonitoringReading("prometheus p", T0 + 30, past=pasts)])
    return store


def only(store: Store, when: float = T0 + 30) -> Replica:
    (one,) = store.situation(when, 5.0).replicas
    return one


@pytest.mark.parametrize(("day", "week", "name"), [(0.02, 0.5, DAY), (0.5, 0.02, WEEK), (0.02, 0.021, DAY)])
def test_the_better_of_a_day_and_a_week_ago(day: float, week: float, name: str) -> None:
    one = only(store_at(0.3, past(DAY, day), past(WEEK, week)))
    assert one.baseline_name == name
    assert one.baseline is not None
    assert per_token(one.baseline) == pytest.approx(min(day, week))
    assert one.baseline.gauges[Q.RUNNING].mean == 8


def test_a_past_that_was_slow_itself_is_no_measure() -> None:
    assert only(store_at(0.3, past(DAY, 0.3), lifetime=0.02)).baseline is None
    assert only(store_at(0.3, past(DAY, 0.025), lifetime=0.02)).baseline is not None


def test_too_few_tokens_tell_nothing() -> None:
    assert only(store_at(0.3, past(DAY, 0.02, tokens=50))).baseline is None


def test_a_replica_with_a_new_name_is_measured_against_its_models_middle_one() -> None:
    others = [past(DAY, itl, target=f"old-{n}") for n, itl in enumerate((0.02, 0.03, 0.9))]
    one = only(store_at(0.3, *others))
    assert one.baseline_name == f"{DAY}, other replicas of the model"
    assert one.baseline is not None
    assert per_token(one.baseline) == pytest.approx(0.03)
    other_model = [
        msgspec.structs.replace(p, readings=tuple(msgspec.structs.replace(r, model="x") for r in p.readings))
        for p in others
    ]
    assert only(store_at(0.3, *other_model)).baseline is None


def watched(*speeds: float, minutes: int = 10) -> Store:
    """Ten minutes of scrapes at each speed, every half minute."""
    store = Store((), window_s=30.0, limits=Limits())
    tokens = seconds = 0.0
    when = T0
    for itl in speeds:
        for _ in range(2 * minutes):
            store.add([scrape(at(when, tokens, seconds))])
            when, tokens, seconds = when + 30, tokens + 1000, seconds + 1000 * itl
    store.add([scrape(at(when, tokens, seconds))])
    return store


def end_of(*speeds: float) -> float:
    return T0 + 600 * len(speeds)


def test_the_own_past_takes_half_an_hour_to_become_a_measure() -> None:
    assert only(watched(0.02, 0.02), end_of(0, 0)).baseline is None
    one = only(watched(0.02, 0.02, 0.02, 0.02), end_of(0, 0, 0, 0))
    assert one.baseline_name == OWN_NAME
    assert one.baseline is not None
    assert per_token(one.baseline) == pytest.approx(0.02)
    assert one.baseline.gauges[Q.RUNNING].n >= 15


def test_an_incident_of_half_the_past_does_not_become_usual() -> None:
    speeds = (0.02, 0.02, 0.02, 0.3, 0.3, 0.3)
    one = only(watched(*speeds), end_of(*speeds))
    assert one.baseline is not None
    assert per_token(one.baseline) == pytest.approx(0.02)


def test_the_servers_past_stands_before_the_own_one() -> None:
    store = watched(0.02, 0.02, 0.02, 0.02)
    store.add([MonitoringReading("p", T0, past=(past(DAY, 0.021),))])
    assert only(store, end_of(0, 0, 0, 0)).baseline_name == DAY


# ---- what a monitoring server adds to the store


def test_a_slow_scraper_gets_a_window_of_four_of_its_scrapes() -> None:
    store = Store((), window_s=30.0, limits=Limits())
    for n in range(8):
        store.add([scrape(at(T0 + 60 * n, 1000 * n, 20 * n), every_s=60.0)])
    (one,) = store.situation(T0 + 7 * 60 + 100, 5.0).replicas
    assert (one.window.readings, one.window.gaps) == (4, 0)
    assert one.window.seconds == 180.0
    (status,) = store.situation(T0 + 7 * 60 + 100, 5.0).targets
    assert status.state is TargetState.OK, "100 s are less than two and a half of its scrapes"
    (late,) = store.situation(T0 + 7 * 60 + 200, 5.0).targets
    assert late.state is TargetState.STALE


def test_a_replica_that_was_scaled_away_is_forgotten_and_one_of_ours_is_not() -> None:
    store = Store((Target("mine"),), window_s=30.0, limits=Limits())
    store.add([scrape(at(T0, 0, 0), "pod", 15.0), scrape(at(T0, 0, 0), "mine")])
    assert {s.target.name for s in store.situation(T0 + 200, 5.0).targets} == {"pod", "mine"}
    assert {s.target.name for s in store.situation(T0 + 400, 5.0).targets} == {"mine"}


def test_a_failed_scrape_keeps_it() -> None:
    store = Store((), window_s=30.0, limits=Limits())
    store.add([scrape(at(T0, 0, 0), "pod", 15.0)])
    refused = Failure(FailureReason.REFUSED, "monitoring says: connection refused")
    store.add([Scrape(Target("pod"), T0 + 300, 0.0, None, refused, 0, 15.0)])
    (status,) = store.situation(T0 + 400, 5.0).targets
    assert status.state is TargetState.DARK
    assert status.failure == refused


def test_what_a_look_did_not_ask_for_still_holds() -> None:
    store = Store((), window_s=30.0, limits=Limits())
    alert, target = Alert("p", "A", "firing"), MonitoredTarget("p", "job", "http://x", "up")
    trouble = MonitoringTrouble(Trouble.PARTIAL, "a store failed", "ask it")
    store.add([MonitoringReading("p", T0, targets=(target,), alerts=(alert,), troubles=(trouble,))])
    store.add([MonitoringReading("p", T0 + 5)])
    situation = store.situation(T0 + 5, 5.0)
    assert (situation.alerts, situation.monitored) == ((alert,), (target,))
    assert not [seen for seen in situation.not_seen if seen.expected], "the second look had no trouble"
    store.add([MonitoringReading("p", T0 + 10, alerts=())])
    assert store.situation(T0 + 10, 5.0).alerts == ()
