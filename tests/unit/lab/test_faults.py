"""Every fault on every fleet: it changes something, mending brings everything back, and a small one is small."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from triage.domain.errors import TriageError
from triage.lab.account.ledger import Ledger, read_ledger
from triage.lab.faults.catalogue import FAULTS, HEALTHY, fault_named, faults_named
from triage.lab.faults.fault import Fault, Ground
from triage.lab.fleets import WORKLOADS, Workload, workload_named
from triage.lab.load.session import Habits
from triage.lab.world.hop import Hop
from triage.lab.world.replica import State
from triage.lab.world.spec import Condition
from triage.lab.world.watch import Watch
from triage.lab.world.world import World

PAST_S = 10.0
# Longer than the gateway's list lags behind its replicas.
LISTED_S = 5.0


def cases(without: frozenset[str] = frozenset()) -> list[Any]:
    """Each fault but these on each workload that has what it needs."""
    return [
        pytest.param(workload, fault, id=f"{fault.name}-{workload.name}")
        for workload in WORKLOADS
        for fault in FAULTS
        if fault.name not in without and fault.applies(workload.services[0])
    ]


def ground_of(workload: Workload, seconds: float = PAST_S) -> Ground:
    world = World(workload.services, "faults", 1_764_800_000.0)
    world.advance(seconds)
    return Ground(world, world.services[0], Watch())


def setting(ground: Ground) -> dict[str, Any]:
    """All that a fault can change, by where it is."""
    service, watch = ground.service, ground.watch
    found: dict[str, Any] = {
        "hop": service.gateway.hop,
        "crowd": service.users.crowd,
        "listed": set(service.gateway.listed),
        "unplaced": list(service.unplaced),
        "watch": (set(watch.off), set(watch.stale), set(watch.renamed)),
    }
    for replica in ground.replicas:
        engine = replica.engine
        found[replica.name] = (
            (replica.state, engine.halted, engine.dead, replica.xid),
            (replica.condition, engine.machine, replica.leaked(ground.now)),
            (replica.settings, engine.settings, engine.kv.total),
            (replica.start_times, replica.startup_limit, replica.fails_start, replica.placed),
        )
    return found


def starts(ground: Ground) -> list[int]:
    return [replica.starts for replica in ground.replicas]


@pytest.mark.parametrize(("workload", "fault"), cases())
def test_a_fault_changes_something_and_nothing_is_wrong_without_one(workload: Workload, fault: Fault) -> None:
    ground = ground_of(workload)
    before = (setting(ground), starts(ground))
    fault.begin(ground, 0.9, random.Random(1))
    assert ((setting(ground), starts(ground)) == before) is (fault is HEALTHY)


@pytest.mark.parametrize(("workload", "fault"), cases())
def test_mending_brings_everything_back(workload: Workload, fault: Fault) -> None:
    ground = ground_of(workload)
    before = setting(ground)
    fault.begin(ground, 0.9, random.Random(1))
    ground.world.advance(PAST_S + 15.0)
    ground.mend()
    ground.world.advance(PAST_S + 15.0 + LISTED_S)
    assert setting(ground) == before
    assert (ground.service.gateway.hop, ground.service.users.crowd) == (ground.service.spec.hop, ground.service.crowd)
    for replica in ground.replicas:
        assert replica.state is State.SERVING
        assert (replica.settings, replica.engine.machine) == (replica.spec.settings, replica.spec.machine)
        assert replica.condition == Condition(acceptance=replica.spec.machine.acceptance)


def test_a_mended_fleet_serves_as_before() -> None:
    ground = ground_of(workload_named("chat"))
    for name in ("engine-dead", "pending", "crash-loop", "engine-stalled", "not-routable", "streams-cut"):
        fault_named(name).begin(ground, 0.9, random.Random(1))
        ground.world.advance(ground.now + 10.0)
        ground.mend()
        ground.world.advance(ground.now + LISTED_S)
    ground.world.advance(ground.now + 90.0)
    ledger = read_ledger(ground.service, ground.now - 60.0, ground.now)
    assert ledger.answered > 200
    assert (ledger.failed, ledger.cut, ledger.left) == (0, 0, 0)


# Processes are started anew, however little they lose by it.
ROLLED_OUT = frozenset({"kv-small", "slow-start"})


@pytest.mark.parametrize(("workload", "fault"), cases(ROLLED_OUT))
def test_at_severity_zero_nobody_asks_for_more_and_at_most_one_replica_is_disturbed(
    workload: Workload, fault: Fault
) -> None:
    ground = ground_of(workload)
    service, before, begun = ground.service, setting(ground), starts(ground)
    fault.begin(ground, 0.0, random.Random(1))
    crowd, hop, plain = service.users.crowd, service.gateway.hop, Habits()
    assert (crowd.users, crowd.keyless, crowd.leaving) == (service.spec.users, 0.0, 0.0)
    habits = (crowd.habits.reasoning, crowd.habits.opening, crowd.habits.visible, crowd.habits.stamped)
    assert habits == (plain.reasoning, plain.opening, plain.visible, plain.stamped)
    assert (hop.keepalive_race, hop.loose, hop.pinned, hop.cuts) == (0.0, 0.0, 0.0, 0.0)
    disturbed = set(hop.unlisted) | set().union(*setting(ground)["watch"])
    for replica, first in zip(ground.replicas, begun, strict=True):
        now, then = setting(ground)[replica.name], before[replica.name]
        if now[0] != then[0] or replica.starts != first:
            disturbed.add(replica.name)
        else:
            assert (now[1][1], now[2]) == (then[1][1], then[2])
        assert (replica.condition.blank, replica.condition.unparsed) == (0.0, 0.0)
    assert len(disturbed) <= 1


def test_a_small_leak_takes_twenty_minutes() -> None:
    ground = ground_of(workload_named("chat"))
    fault_named("out-of-memory").begin(ground, 0.0, random.Random(1))
    (rate, _) = sorted((replica.condition.leak for replica in ground.replicas), reverse=True)[:2]
    assert 0.1 * ground.replicas[0].spec.machine.device.memory / rate == pytest.approx(1200.0)


# ---- what users get of it


def share(name: str) -> Callable[[Ledger], float]:
    return lambda ledger: ledger.share(getattr(ledger, name))


def flagged(flag: str) -> Callable[[Ledger], float]:
    return lambda ledger: ledger.share(ledger.flags.get(flag, 0))


# By fault: the workload, what is measured of its users' last minute, and between which bounds it then lies.
EFFECTS: dict[str, tuple[str, Callable[[Ledger], float], float, float]] = {
    "keepalive-race": ("chat", flagged("UC"), 0.1, 0.4),
    "streams-cut": ("chat", flagged("UPE"), 0.1, 0.6),
    "route-timeout": ("batch", flagged("UT"), 0.1, 1.0),
    "context-limit": ("chat", share("refused"), 0.05, 0.5),
    "clients-leaving": ("chat", share("walked_off"), 0.2, 0.9),
    "empty-answers": ("batch", share("blank"), 0.6, 1.0),
    "tool-calls-unparsed": ("agents", share("unparsed"), 0.2, 1.0),
    "retry-storm": ("chat", lambda ledger: ledger.tries, 1.5, 4.0),
    "not-routable": ("chat", flagged("UH"), 0.5, 1.0),
    "cache-restart": ("chat", share("cut"), 0.02, 0.5),
    "template-change": ("chat", lambda ledger: ledger.hit_share, 0.0, 0.3),
    "speculation-collapse": ("chat", lambda ledger: ledger.per_token, 0.025, 0.04),
    "auth-missing": ("chat", share("keyless"), 0.2, 1.0),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_users_get_what_the_fault_says_and_did_not_before(name: str) -> None:
    workload, measure, low, high = EFFECTS[name]
    ground = ground_of(workload_named(workload), 100.0)
    before = measure(read_ledger(ground.service, 40.0, 100.0))
    fault_named(name).begin(ground, 0.9, random.Random(1))
    ground.world.advance(160.0)
    assert low < measure(read_ledger(ground.service, 100.0, 160.0)) <= high
    assert not low < before <= high


# ---- their names


def test_faults_are_known_by_name_alone_or_several_together() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert faults_named("healthy") == (HEALTHY,)
    assert [fault.name for fault in faults_named("xid + load-surge+healthy")] == ["xid", "load-surge", "healthy"]
    assert faults_named("load-surge+xid")[1] is fault_named("xid")


@pytest.mark.parametrize(("words", "hint"), [("xid+engine-ded", "engine-dead"), ("xid+", "load-surge"), ("", "xid")])
def test_one_unknown_name_among_several_is_an_error_that_helps(words: str, hint: str) -> None:
    with pytest.raises(TriageError, match="no such incident") as raised:
        faults_named(words)
    assert hint in str(raised.value.hint)


@pytest.mark.parametrize(
    ("name", "workloads"),
    [
        ("xid", "chat agents batch"),
        ("affinity-lost", "agents"),
        ("tool-calls-unparsed", "agents"),
        ("speculation-collapse", "chat batch"),
        ("streams-cut", "chat agents"),
        ("buffering", "chat agents"),
    ],
)
def test_a_fault_applies_where_there_is_what_it_needs(name: str, workloads: str) -> None:
    assert [one.name for one in WORKLOADS if fault_named(name).applies(one.services[0])] == workloads.split()


def test_some_is_one_at_least_and_all_at_most() -> None:
    ground = ground_of(workload_named("chat"), 0.0)
    sizes = [len(ground.some(random.Random(1), part)) for part in (0.0, 0.3, 0.5, 0.7, 1.0, 7.0)]
    assert sizes == [1, 1, 2, 2, 3, 3]
    drawn = {tuple(replica.name for replica in ground.some(random.Random(seed), 0.3)) for seed in range(30)}
    assert drawn == {("chat-a",), ("chat-b",), ("chat-c",)}


def test_changes_add_up_until_they_are_mended() -> None:
    ground = ground_of(workload_named("chat"))
    for fault in faults_named("load-surge+long-answers+streams-cut+keepalive-race"):
        fault.begin(ground, 0.5, random.Random(1))
    crowd, hop = ground.service.users.crowd, ground.service.gateway.hop
    assert (crowd.users, crowd.habits) == (round(150 * 3.5), Habits(visible=2.0))
    assert hop == Hop(cuts=0.3, keepalive_race=0.15, retries=0)
