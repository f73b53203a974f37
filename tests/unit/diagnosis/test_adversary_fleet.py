"""Uneven on purpose, uneven by accident, uneven because nothing arrives."""

import msgspec

from tests.factory import reading, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading, Role
from triage.domain.situation import NotSeen, Replica, Situation
from triage.domain.verdict import Confidence, Kind, Verdict


def first(case: Situation) -> Verdict:
    return diagnose(case).verdicts[0]


def imbalance(case: Situation) -> list[Verdict]:
    return [verdict for verdict in diagnose(case).verdicts if verdict.kind is Kind.LOAD_IMBALANCE]


def with_role(base: Replica, role: Role) -> Replica:
    window = base.window
    first_, last = (msgspec.structs.replace(one, role=role) for one in (window.first, window.last))
    return msgspec.structs.replace(base, window=msgspec.structs.replace(window, first=first_, last=last))


def ranks(running: tuple[float, ...]) -> Situation:
    def at(factor: float) -> EngineReading:
        own = {
            f"engine={n}": {Q.RUNNING: runs, Q.WAITING: 0.0, Q.GENERATION_TOKENS: 1000 + factor * 900 * runs}
            for n, runs in enumerate(running)
        }
        values = {q: sum(rank[q] for rank in own.values()) for q in (Q.RUNNING, Q.WAITING, Q.GENERATION_TOKENS)}
        return reading(values, ranks=own)

    return situation(replica(at(0.0), at(1.0)))


def test_prefill_and_decode_workers_are_not_compared_with_one_another() -> None:
    hot, cold = serving("p", waiting=12, ttft=9.0, queue=8.0), serving("d", running=1)
    assert imbalance(situation(hot, cold))
    roles = situation(with_role(hot, Role.PREFILL), with_role(cold, Role.DECODE))
    assert not imbalance(roles)
    named = situation(serving("prefill-0", waiting=12, ttft=9.0, queue=8.0), serving("decode-0", running=1))
    assert not imbalance(named)


def test_one_rank_with_nearly_all_requests_is_uneven_although_nobody_waits() -> None:
    verdict = first(ranks((46, 0, 1, 0, 0, 1, 0, 0)))
    assert (verdict.kind, verdict.confidence, verdict.detail) == (Kind.LOAD_IMBALANCE, Confidence.LIKELY, "ranks")
    assert "engine=0" in verdict.summary


def test_ranks_are_uneven_by_chance_with_few_requests() -> None:
    assert not imbalance(ranks((3, 0, 1, 0, 0, 0, 0, 0)))
    assert not imbalance(ranks((46, 40, 44, 39)))


def test_replicas_of_different_models_are_no_imbalance() -> None:
    case = situation(serving("a", waiting=30, ttft=9.0, queue=8.5, model="big"), serving("b", running=0, model="small"))
    assert not imbalance(case)


def test_a_replica_that_gets_nothing_may_not_be_routable() -> None:
    """Pods and endpoints lie in the folder unread: they may say that no traffic can reach the idle one."""
    unread = NotSeen("endpointslices.json", "not read yet", ("ready-not-routable",), expected=True)
    hot = serving("hot", waiting=12, ttft=9.0, queue=8.0)
    silent = serving("cold", running=0, tokens=0, prompt=0, finished=0)
    verdict = imbalance(situation(hot, silent, not_seen=(unread,)))[0]
    assert (verdict.confidence, "not routable" in verdict.summary) == (Confidence.POSSIBLE, True)
    assert imbalance(situation(hot, serving("cold", running=1), not_seen=(unread,)))[0].confidence is Confidence.LIKELY
    assert imbalance(situation(hot, silent))[0].confidence is Confidence.LIKELY


def test_names_are_listed_as_one_says_them() -> None:
    hot = [serving(name, waiting=20, ttft=9.0, queue=8.0) for name in ("r1", "r2")]
    summary = imbalance(situation(*hot, serving("r3", running=1)))[0].summary
    assert "r1 and r2 queue 40 requests while r3 has room" in summary
    cold = [serving(name, running=1) for name in ("r2", "r3", "r4", "r5")]
    summary = imbalance(situation(hot[0], *cold))[0].summary
    assert "r1 queues 20 requests while r2, r3 and 2 more have room" in summary


def test_an_unnamed_target_is_not_a_replica_of_a_named_one() -> None:
    """metrics-t0.prom beside metrics-lastweek-t0.prom: the same engine twice, not two that share a load."""
    now, then = serving("default", waiting=24, ttft=9.0, queue=8.5), serving("lastweek", running=1)
    assert not imbalance(situation(now, then))
    assert first(situation(now, then)).kind is Kind.QUEUEING
