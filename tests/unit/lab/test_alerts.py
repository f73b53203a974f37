"""Who is paged for what: rules over the gateway's counters, in play and call by call."""

import math
import random

import pytest

from triage.domain.situation import Alert
from triage.lab.account.alerts import SOURCE, firing
from triage.lab.account.truth import Objectives
from triage.lab.batching.request import Request
from triage.lab.faults.catalogue import fault_named
from triage.lab.faults.fault import Ground
from triage.lab.fleets import WORKLOADS, Workload, workload_named
from triage.lab.world.call import Call, Outcome
from triage.lab.world.service import Service
from triage.lab.world.timeline import Timeline
from triage.lab.world.watch import Watch
from triage.lab.world.world import World

ZERO = 1_764_800_000.0
PAST_S = 300.0
OBJECTIVES = Objectives(first_visible_p95_s=3.0, time_per_token_mean_s=0.1)


def grown(workload: Workload) -> Ground:
    world = World(workload.services, "alerts", ZERO)
    world.advance(PAST_S)
    return Ground(world, world.services[0], Watch())


def fires(ground: Ground, workload: Workload) -> tuple[Alert, ...]:
    objectives = Objectives(workload.first_visible_p95_s, workload.time_per_token_mean_s)
    return firing(ground.service, objectives, ground.now, ZERO)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
def test_nobody_is_paged_for_a_healthy_fleet(workload: Workload) -> None:
    ground = grown(workload)
    assert ground.service.calls
    assert fires(ground, workload) == ()


@pytest.mark.parametrize(
    ("name", "severity", "workload", "alert"),
    [
        ("keepalive-race", 0.9, "chat", "GatewayErrors"),
        ("context-limit", 0.95, "chat", "GatewayRefusals"),
        ("streams-cut", 0.9, "chat", "GatewayResets"),
        ("clients-leaving", 0.9, "batch", "GatewayResets"),
        ("load-surge", 0.9, "chat", "AnswersBeginLate"),
    ],
)
def test_a_fault_that_users_feel_pages_somebody(name: str, severity: float, workload: str, alert: str) -> None:
    one = workload_named(workload)
    ground = grown(one)
    fault_named(name).begin(ground, severity, random.Random(1))
    ground.world.advance(PAST_S + 90.0)
    found = {alert.name: alert for alert in fires(ground, one)}
    assert alert in found
    told = found[alert]
    assert (told.source, told.state, told.since) == (SOURCE, "firing", ZERO + PAST_S + 90.0)
    assert told.labels == (("model", ground.service.model),)


# ---- rule by rule

NOW = 1000.0


def service_with(*calls: Call) -> Service:
    service = Service(workload_named("chat").services[0], Timeline(), "rules")
    for call in calls:
        if call.open:
            service.open_calls[id(call)] = call
        else:
            service.calls.append(call)
    return service


def ended(outcome: Outcome, status: int, at: float = NOW, begun_s: float = 0.5) -> Call:
    call = Call("model", "u-0", "s", Request(10, 10, 100), at - 2.0)
    call.outcome, call.status, call.ended = outcome, status, at
    call.first_byte = call.sent + begun_s if status == 200 else math.nan
    return call


def waiting(seconds: float) -> Call:
    return Call("model", "u-0", "s", Request(10, 10, 100), NOW - seconds)


def said(*calls: Call) -> dict[str, str]:
    return {one.name: one.summary for one in firing(service_with(*calls), OBJECTIVES, NOW, ZERO)}


GOOD = (Outcome.COMPLETE, 200)


@pytest.mark.parametrize(
    ("outcome", "status", "number", "good", "told"),
    [
        (Outcome.FAILED, 503, 3, 140, {"GatewayErrors": "2 % of requests answered with 5xx"}),
        (Outcome.FAILED, 500, 6, 94, {"GatewayErrors": "6 % of requests answered with 5xx"}),
        (Outcome.FAILED, 503, 3, 147, {}),
        (Outcome.FAILED, 504, 2, 2, {}),
        (Outcome.REFUSED, 400, 6, 94, {"GatewayRefusals": "6 % of requests refused with 4xx"}),
        (Outcome.REFUSED, 401, 5, 95, {}),
        (Outcome.CUT, 200, 6, 94, {"GatewayResets": "6 % of requests ended by a reset or by the client"}),
        (Outcome.LEFT, 0, 50, 50, {"GatewayResets": "50 % of requests ended by a reset or by the client"}),
        (Outcome.LEFT, 200, 5, 95, {}),
    ],
)
def test_a_rule_fires_above_its_part_of_at_least_a_few_requests(
    outcome: Outcome, status: int, number: int, good: int, told: dict[str, str]
) -> None:
    bad = [ended(outcome, status) for _ in range(number)]
    assert said(*bad, *[ended(*GOOD) for _ in range(good)]) == told


def test_rules_look_back_a_minute() -> None:
    bad = [ended(Outcome.FAILED, 503, at=NOW - 61.0) for _ in range(50)]
    assert said(*bad, *[ended(*GOOD) for _ in range(10)]) == {}
    recent = [ended(Outcome.FAILED, 503, at=NOW - 59.0) for _ in range(50)]
    assert said(*recent).keys() == {"GatewayErrors"}


def test_answers_begin_late_also_while_nothing_has_come() -> None:
    good = [ended(*GOOD) for _ in range(95)]
    assert said(*good, *[waiting(40.0) for _ in range(5)]) == {}
    late = {"AnswersBeginLate": "p95 of the time to the first byte is 40.0 s"}
    assert said(*good, *[waiting(40.0) for _ in range(6)]) == late
    assert said(waiting(40.0), waiting(40.0)) == {}
    assert said() == {}


def test_an_open_stream_that_began_in_time_is_not_late() -> None:
    streams = [waiting(40.0) for _ in range(10)]
    for stream in streams:
        stream.first_byte = stream.sent + 0.5
    assert said(*streams) == {}
