"""The decision procedure: gates, hypotheses, order. Same situation, same diagnosis, byte for byte."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from triage.diagnosis.calm import healthy, insufficient
from triage.diagnosis.death import is_current_engine_log, judge_dead
from triage.diagnosis.decode import judge_decode
from triage.diagnosis.fleet import judge_balance
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.interference import judge_interference
from triage.diagnosis.liveness import judge_stale_exporters, judge_standstill
from triage.diagnosis.monitoring import judge_missing, judge_renamed
from triage.diagnosis.peers import Peers
from triage.diagnosis.prefill import judge_prefill
from triage.diagnosis.rank import merge_replicas, order, separate_rivals
from triage.diagnosis.reasoning import judge_reasoning
from triage.diagnosis.ruled_out import rule_out
from triage.diagnosis.stock import UNMEASURED_QUEUE, take_stock
from triage.diagnosis.view import ReplicaView
from triage.diagnosis.waits import judge_waits
from triage.domain.logs import LogReading
from triage.domain.reading import Role
from triage.domain.situation import Situation
from triage.domain.verdict import Confidence, Diagnosis, Kind


def diagnose(situation: Situation) -> Diagnosis:
    """Judge a situation. Verdicts: worst and surest first, never empty."""
    views = _views(situation)
    hypotheses = _hypotheses(situation, views)
    replicas_of = Counter(view.model for view in views if not view.is_frontend)
    ranked = order(separate_rivals(merge_replicas(hypotheses, dict(replicas_of))))
    verdicts = [hypothesis.verdict() for hypothesis in ranked]
    sure = bool(ranked) and ranked[0].confidence() is not Confidence.POSSIBLE
    if not sure:
        findings = take_stock(situation, views)
        fine = healthy(situation, findings)
        measured = [item for item in findings.broken if item.id != UNMEASURED_QUEUE]
        unexplained = (
            not ranked
            # Clients leave, or a queue cost nobody anything measured: the cause may lie in front of the engine.
            or bool(findings.outside)
            or (not measured and _gateway_unread(situation))
            # One look at gauges cannot tell a queue from a stall.
            or (bool(views) and all(view.window.single for view in views))
        )
        if fine is not None:
            verdicts.insert(0, fine)
        elif unexplained or not findings.broken:
            verdicts.insert(0, insufficient(situation, findings, views, verdicts))
    said = {verdict.kind for verdict in verdicts}
    return Diagnosis(
        at=situation.at,
        window_s=situation.window_s,
        verdicts=tuple(verdicts),
        ruled_out=tuple(out for out in rule_out(views, situation.limits) if out.kind not in said),
        not_seen=situation.not_seen,
    )


def _views(situation: Situation) -> list[ReplicaView]:
    """One view per replica, with the logs that are its own."""
    logs = [log for log in situation.logs if is_current_engine_log(log)]
    named: dict[str, list[LogReading]] = defaultdict(list)
    for log in logs:
        named[log.target].append(log)
    engines = [replica for replica in situation.replicas if replica.window.last.role is not Role.FRONTEND]
    names = {replica.target.name for replica in situation.replicas}
    # A log that names no replica belongs to the only engine there is.
    unnamed = [log for log in logs if log.target not in names] if len(engines) == 1 else []
    views = []
    for replica in situation.replicas:
        own = named.get(replica.target.name, [])
        frontend = replica.window.last.role is Role.FRONTEND
        views.append(ReplicaView(replica, own or ([] if frontend else unnamed)))
    return views


def _hypotheses(situation: Situation, views: Sequence[ReplicaView]) -> list[Hypothesis]:
    found = judge_dead(situation, views)
    workers = [view for view in views if not view.is_frontend]
    alone = len(workers) == 1
    unread = _gateway_unread(situation)
    routing_unread = any(seen.expected and Kind.READY_NOT_ROUTABLE.value in seen.costs for seen in situation.not_seen)
    dead = {h.scope.replica or "default" for h in found if h.confidence() is not Confidence.POSSIBLE}
    still = {(view.name, view.model) for view in workers if view.name in dead}
    by_model: dict[str, list[ReplicaView]] = defaultdict(list)
    for view in workers:
        by_model[view.model].append(view)
    for view in workers:
        if (view.name, view.model) in still:
            continue
        standing = judge_standstill(view, situation, alone)
        found += standing
        if standing:
            still.add((view.name, view.model))
    for model, group in by_model.items():
        moving = [view for view in group if (view.name, view.model) not in still]
        uneven = judge_balance(moving, situation.probes, routing_unread)
        found += uneven
        peers = Peers(group)
        bound_elsewhere = {h.scope.replica for h in uneven}
        for view in moving:
            if view.idle and not situation.logs:
                continue
            timed = _timed(view, peers, situation, unread)
            if uneven and (view.name in bound_elsewhere or None in bound_elsewhere):
                # The queue of a hot replica or rank is the imbalance itself (naming rule 4a).
                timed = [h for h in timed if h.kind not in (Kind.QUEUEING, Kind.KV_PRESSURE)]
            found += timed
        streams = [s for s in situation.streams if not s.model or s.model == model or len(by_model) == 1]
        hidden = judge_reasoning(streams, moving, situation.limits)
        if hidden is not None:
            found.append(hidden)
    if not by_model and situation.streams:
        hidden = judge_reasoning(situation.streams, [], situation.limits)
        if hidden is not None:
            found.append(hidden)
    found += judge_stale_exporters(situation.gpus, workers)
    found += judge_missing(situation)
    renamed = judge_renamed(situation)
    return [*found, renamed] if renamed is not None else found


def _timed(view: ReplicaView, peers: Peers, situation: Situation, gateway_unread: bool) -> list[Hypothesis]:
    """Hypotheses about where the time of one replica's requests goes, after the naming rules of 4a."""
    waits = judge_waits(view, situation.limits, gateway_unread)
    prefill = judge_prefill(view, situation.limits)
    decode = judge_decode(view, peers, situation.limits, situation.containers, situation.gpus)
    if prefill is not None and prefill.confidence() is not None:
        waits = [h for h in waits if h.kind is not Kind.QUEUEING or _waits_longer(h, prefill)]
    else:
        prefill = judge_interference(view, peers, situation.limits)
    return [*waits, *(h for h in (prefill, decode) if h is not None)]


def _waits_longer(queueing: Hypothesis, prefill: Hypothesis) -> bool:
    """A queue in front of a saturated prefill is named after prefill when that is the larger share."""
    if queueing.share is None or prefill.share is None or queueing.share.of != prefill.share.of:
        return False
    return queueing.share.value > prefill.share.value


def _gateway_unread(situation: Situation) -> bool:
    """A gateway's log is there and was not judged: retries or clients that leave may be the load."""
    return any(seen.expected and Kind.RETRY_STORM.value in seen.costs for seen in situation.not_seen)
