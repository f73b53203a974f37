"""What stands in front of which engines, and whose queue a line there is."""

from collections import defaultdict
from collections.abc import Collection, Sequence

import msgspec

from triage.diagnosis.gateway_queue import judge_line
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.line import line_of
from triage.diagnosis.line_evidence import engines_queue, line_evidence
from triage.diagnosis.view import ReplicaView
from triage.domain.quantity import Quantity
from triage.domain.situation import Situation
from triage.domain.verdict import Evidence, Kind

_ENGINE_QUEUES = (Kind.QUEUEING, Kind.KV_PRESSURE, Kind.LOAD_IMBALANCE)


def with_lines_in_front(
    found: Sequence[Hypothesis],
    views: Sequence[ReplicaView],
    situation: Situation,
    standing: Collection[tuple[str, str]],
    gateway_unread: bool,
) -> list[Hypothesis]:
    """The hypotheses about engines, and what is held in front of them.

    A line in front of engines whose own queue has a name already is that queue's consequence, and is told as a hint
    to it. standing: (name, model) of engines that are dead or stand still.
    """
    result = list(found)
    fronts = [view for view in views if view.is_frontend or _holds_back(view)]
    if not fronts:
        return result
    workers: dict[str, list[ReplicaView]] = defaultdict(list)
    for view in views:
        if not view.is_frontend:
            workers[view.model].append(view)
    for view in fronts:
        engines = engines_behind(view, fronts, workers)
        if nobody_ready(view) or (not view.is_frontend and (view.name, view.model) in standing):
            continue
        line = line_of(view, engines, situation.limits)
        if line is None:
            continue
        models = {engine.model or None for engine in line.engines} if engines_queue(line) else set()
        theirs = [place for place, h in enumerate(result) if _is_theirs(h, models)]
        for place in theirs:
            result[place] = _with(result[place], line_evidence(line)[0])
        if not theirs:
            down = any((engine.name, engine.model) in standing for engine in engines)
            down = down or (not engines and view.moved is False)
            held = judge_line(line, situation.probes, standing=down, gateway_unread=gateway_unread)
            result += [held] if held is not None else []
    return result


def engines_behind(
    view: ReplicaView, fronts: Sequence[ReplicaView], workers: dict[str, list[ReplicaView]]
) -> Sequence[ReplicaView]:
    """The engines that were read and serve what this front end serves; an engine's own server holds back its own.

    A front end may name no model, or call the only one by another name.
    """
    if not view.is_frontend:
        return (view,)
    if view.model in workers:
        return workers[view.model]
    alone = len(workers) == 1 and len({front.model for front in fronts if front.is_frontend and front.model}) <= 1
    if not view.model or alone:
        return [engine for own in workers.values() for engine in own]
    return ()


def nobody_ready(view: ReplicaView) -> bool:
    """A front end without any engine to choose, in every reading: what it holds waits for one to come, not for room."""
    ready = view.track(Quantity.READY_ENDPOINTS)
    return ready is not None and ready.high == 0


def _holds_back(view: ReplicaView) -> bool:
    held = view.window.gauges.get(Quantity.GATEWAY_QUEUE)
    return held is not None and held.high > 0


def _is_theirs(hypothesis: Hypothesis, models: Collection[str | None]) -> bool:
    scope = hypothesis.scope
    queue = hypothesis.kind in _ENGINE_QUEUES and scope.hop is None and scope.model in models
    return queue and hypothesis.confidence() is not None


def _with(hypothesis: Hypothesis, held: Evidence) -> Hypothesis:
    hint = msgspec.structs.replace(held, strength=1)
    return msgspec.structs.replace(hypothesis, evidence=(*hypothesis.evidence, hint))
