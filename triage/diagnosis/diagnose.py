"""The decision procedure: gates, hypotheses, order. Same situation, same diagnosis, byte for byte."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from triage.diagnosis.aborts import judge_aborts
from triage.diagnosis.answer_times import judge_answer_times
from triage.diagnosis.cache import judge_prompts
from triage.diagnosis.calm import healthy, insufficient
from triage.diagnosis.death import is_current_engine_log, judge_dead
from triage.diagnosis.empty import judge_empty
from triage.diagnosis.fleet import judge_balance
from triage.diagnosis.fronts import with_lines_in_front
from triage.diagnosis.frozen import judge_stale_exporters
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.liveness import dark_targets, judge_standstill
from triage.diagnosis.monitoring import judge_missing, judge_relabelled, judge_renamed
from triage.diagnosis.peers import Peers
from triage.diagnosis.rank import merge_replicas, order, separate_rivals
from triage.diagnosis.reasoning import judge_reasoning
from triage.diagnosis.rejection import judge_rejection
from triage.diagnosis.replica_stock import share_left
from triage.diagnosis.ruled_out import rule_out
from triage.diagnosis.start import judge_start
from triage.diagnosis.stock import UNMEASURED_QUEUE, take_stock
from triage.diagnosis.text import percent, seconds
from triage.diagnosis.thresholds import MOST_LEFT, STALL_SECONDS, TAIL_SECONDS
from triage.diagnosis.timed import judge_time
from triage.diagnosis.tools import judge_tools
from triage.diagnosis.truncated import judge_truncated
from triage.diagnosis.view import ReplicaView
from triage.domain.logs import LogReading
from triage.domain.reading import Role
from triage.domain.situation import Situation
from triage.domain.verdict import Confidence, Diagnosis, Kind

_NO_NAME_WHEN_POSSIBLE = (Kind.CACHE_MISS_REGRESSION, Kind.COLD_START)


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
        # The engine misses requests and a recorded client left: the same is seen from both ends.
        seen_leaving = bool(ranked) and ranked[0].kind is Kind.CLIENT_ABORT and len(ranked[0].families()) >= 2
        dark = {status.target.name for status in dark_targets(situation.targets)}
        unexplained = (
            not ranked
            # Clients leave, or a queue cost nobody anything measured: the cause may lie in front of the engine.
            or (bool(findings.outside) and not seen_leaving)
            or (not measured and not seen_leaving and _gateway_unread(situation))
            # Fewer hits without a reason, or a start that may hang, ask for more evidence before they are a name.
            or ranked[0].kind in _NO_NAME_WHEN_POSSIBLE
            # That one replica is slow does not tell why another one does not answer.
            or not dark <= {hypothesis.scope.replica for hypothesis in ranked}
            # One look at gauges cannot tell a queue from a stall.
            or (bool(views) and all(view.window.single for view in views))
        )
        if fine is not None:
            verdicts.insert(0, fine)
        elif unexplained or not (findings.broken or seen_leaving):
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
        # A standstill of a few seconds may be a counter that is written late: the rest is judged too.
        if standing and not 0 < view.standing_for < STALL_SECONDS:
            still.add((view.name, view.model))
    for view in views:
        # Behind this front end no engine could be read: it alone tells that nothing comes out.
        if view.is_frontend and view.model not in by_model:
            found += judge_standstill(view, situation, not workers)
    for model, group in by_model.items():
        moving = [view for view in group if (view.name, view.model) not in still]
        uneven = judge_balance(moving, situation.probes, situation.limits, routing_unread)
        found += uneven
        peers = Peers(group)
        bound_elsewhere = {h.scope.replica for h in uneven}
        gone = max(map(share_left, group), default=0.0)
        for view in moving:
            if view.idle and not situation.logs:
                continue
            timed = judge_time(view, peers, situation, alone=alone, gateway_unread=unread)
            if unread and gone >= MOST_LEFT:
                # Prompts that are computed for nobody make everything slow, whoever sends them again and again.
                why = f"{percent(gone)} of the requests left unanswered: retries can be the load"
                timed = [h.doubted(why) for h in timed]
            if view.standing_for >= TAIL_SECONDS:
                timed = [h.doubted(f"nothing has moved for {seconds(view.standing_for)}") for h in timed]
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
    found += _answers(situation, [view for view in workers if (view.name, view.model) not in still], found, unread)
    found += judge_answer_times(situation, workers)
    found = with_lines_in_front(found, views, situation, still, unread)
    found += judge_start(situation, views)
    if not workers and (lost := judge_prompts(situation)) is not None:
        found.append(lost)
    found += judge_stale_exporters(situation.gpus, workers)
    found += judge_missing(situation)
    found += judge_relabelled(situation)
    renamed = judge_renamed(situation)
    return [*found, renamed] if renamed is not None else found


def _answers(
    situation: Situation, working: Sequence[ReplicaView], found: Sequence[Hypothesis], gateway_unread: bool
) -> list[Hypothesis]:
    """What answers and refusals show. Of an engine that died or stands still, cut and refused work is the effect."""
    down = any(
        h.kind in (Kind.ENGINE_DEAD, Kind.ENGINE_STALLED) and h.confidence() is not Confidence.POSSIBLE for h in found
    )
    tools, explained = judge_tools(situation)
    answers = [tools, judge_empty(situation, explained)]
    aborts = [judge_aborts(view, situation.streams) for view in working]
    leaving = any(hypothesis is not None for hypothesis in aborts)
    if not down:
        answers += [judge_truncated(situation, gateway_unread, leaving), *judge_rejection(situation, working)]
    return [hypothesis for hypothesis in (*answers, *aborts) if hypothesis is not None]


def _gateway_unread(situation: Situation) -> bool:
    """A gateway's log is there and was not judged: retries or clients that leave may be the load."""
    return any(seen.expected and Kind.RETRY_STORM.value in seen.costs for seen in situation.not_seen)
