"""A KV cache that is too full: requests wait for room in it, or are computed again."""

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.peers import Peers
from triage.diagnosis.reference import few_prompts_decide, per_token_reference
from triage.diagnosis.shares import gauge_bounds, share_between
from triage.diagnosis.text import count, many, percent, verb
from triage.diagnosis.thresholds import (
    FEW_PREEMPTIONS,
    KV_FULL,
    KV_HIGH,
    LITTLE_WAITS,
    PREEMPTIONS_PER_FINISHED,
    SHARE_SUPPORT,
)
from triage.diagnosis.tracks import together
from triage.diagnosis.view import ReplicaView
from triage.diagnosis.wait import Wait
from triage.domain.absence import known, value_or
from triage.domain.limits import Limits
from triage.domain.logs import LogMark
from triage.domain.quantity import Quantity
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope, Share
from triage.domain.window import Track


def judge_kv(wait: Wait, preemptions: float, limits: Limits) -> Hypothesis | None:
    """KV pressure of one replica, or None. preemptions: events in the window."""
    view = wait.view
    kv, waiting = view.kv, view.waiting
    evidence: list[Evidence] = []
    detail = "admission"
    if preemptions:
        finished = value_or(view.finished, 0.0)
        heavy = preemptions > PREEMPTIONS_PER_FINISHED * max(finished, 1.0) and not _all_in_time(wait, limits)
        evidence.append(
            view.evidence(
                "preemptions",
                f"{many(preemptions, 'preemption')} in the window ({many(finished, 'request')} finished)",
                quantity=Quantity.PREEMPTIONS,
                strength=3 if heavy else 1,
                value=preemptions,
                threshold=0.0,
            )
        )
        detail = "preemption"
    out = paused(view)
    if out is not None:
        live = view.moved or Quantity.SWAPPED not in view.window.last.lingering
        lasting = out.low > 0 and not view.window.single and live and not _all_in_time(wait, limits)
        evidence.append(
            view.evidence(
                "paused",
                f"{count(out.first)} then {count(out.last)} requests are taken out of the batch for lack of room",
                quantity=Quantity.SWAPPED,
                strength=3 if lasting else 1,
                value=out.last,
                unit="requests",
                threshold=0.0,
            )
        )
        detail = "preemption"
    if kv is not None and kv.high >= KV_FULL:
        evidence.append(
            view.evidence(
                "kv-full",
                f"KV cache {percent(kv.first)} to {percent(kv.last)} full",
                quantity=Quantity.KV_USAGE,
                strength=2 if waiting is not None and waiting.high > 0 else 1,
                value=kv.last,
                unit="share",
                threshold=KV_FULL,
            )
        )
    blocked = _head_blocked(wait)
    if blocked is not None:
        evidence.append(blocked)
    log = [e for e in (_log_evidence(view, mark) for mark in (LogMark.KV_FULL, LogMark.CONTEXT_ERROR)) if e]
    evidence += log
    if not evidence:
        return None
    if waiting is not None and waiting.high > 0:
        evidence.append(
            view.evidence(
                "waiting",
                f"{count(waiting.first)} then {count(waiting.last)} requests wait; {running_text(view)}",
                quantity=Quantity.WAITING,
                strength=1,
                value=waiting.last,
                unit="requests",
                threshold=0.0,
            )
        )
    alone = not preemptions and out is None and blocked is None and not log
    if alone and wait.of_everything < LITTLE_WAITS and not (known(wait.ttft) and wait.ttft > wait.bound.bound):
        return None
    if alone and _seldom(wait, limits):
        return None
    weak = alone and _at_a_limit(view)
    once = 0 < preemptions < FEW_PREEMPTIONS and wait.of_everything < SHARE_SUPPORT
    return Hypothesis(
        kind=Kind.KV_PRESSURE,
        detail=detail,
        scope=Scope(model=view.model or None, replica=view.name),
        summary=_kv_summary(wait, preemptions),
        evidence=tuple(evidence),
        share=_lost_to_kv(wait),
        next_test="watch preemptions and KV use for a minute with the longest request stopped or with fewer sequences",
        ceiling=Confidence.POSSIBLE if weak or once else Confidence.CONFIRMED,
        capped=(
            "running is flat, so a sequence limit would look the same"
            if weak
            else "so few may be chance"
            if once
            else ""
        ),
        confounders=("preempted requests wait again inside decode time, not in queue time (vLLM)",),
    )


def paused(view: ReplicaView) -> Track | None:
    """Requests that began and were taken out of the batch for lack of room; None when there were none."""
    track = view.track(Quantity.SWAPPED)
    return track if track is not None and track.high > 0 else None


def _seldom(wait: Wait, limits: Limits) -> bool:
    """Now and then one request waits: no pressure while first tokens come in time, or once nobody waits any more."""
    waiting = wait.view.waiting
    if waiting is None or waiting.mean >= 1:
        return False
    return _all_in_time(wait, limits) or (not known(wait.ttft) and waiting.last == 0)


def _all_in_time(wait: Wait, limits: Limits) -> bool:
    """First tokens and token gaps are both measured and both within their bounds: nobody feels the preemptions."""
    view = wait.view
    if not known(wait.ttft) or not known(view.per_token) or wait.ttft > wait.bound.bound:
        return False
    slow = view.per_token > per_token_reference(view, Peers(()), limits).bound
    return not slow or few_prompts_decide(view, view.per_token, limits)


def _head_blocked(wait: Wait) -> Evidence | None:
    """Nobody is admitted although steps move, the KV cache is well filled and slots are free."""
    view = wait.view
    kv, waiting, running = view.kv, view.waiting, view.running
    if kv is None or running is None or waiting is None or waiting.low == 0 or kv.low < KV_HIGH:
        return None
    admitted = value_or(wait.admissions, 1.0)
    if admitted > 0 or not view.moved:
        return None
    limit = view.sequence_limit
    free = known(limit) and running.high < limit
    return view.evidence(
        "head-of-queue",
        f"no request was admitted although {count(running.last)} of "
        f"{count(limit) if known(limit) else 'an unknown number of'} slots are used: the next one does not fit",
        quantity=Quantity.KV_USAGE,
        strength=3 if free else 2,
        value=kv.last,
        unit="share",
        threshold=KV_HIGH,
    )


def _at_a_limit(view: ReplicaView) -> bool:
    waiting, kv = view.waiting, view.kv
    return view.flat_batch and waiting is not None and waiting.low > 0 and (kv is None or kv.high < 0.95)


def _lost_to_kv(wait: Wait) -> Share | None:
    """Waiting time, in front of the batch or out of it, plus what preemption adds to each token."""
    view = wait.view
    excess = 0.0
    before = view.per_token_before
    if known(view.per_token) and known(before) and view.per_token > 0:
        excess = max(1.0 - before / view.per_token, 0.0)
    waits = together([view.queued, paused(view)])
    inside = (waits.mean if waits is not None else 0.0) + wait.running
    if waits is None or inside <= 0:
        return share_between(excess, (0.0,), inside, "time in the engine") if excess > 0 else None
    least, most = gauge_bounds(waits, [view.running])
    waited = waits.mean / inside
    value = waited + (1.0 - waited) * excess
    if value <= 0:
        return None
    return share_between(value, (least, most + (1.0 - most) * excess), inside, "time in the engine")


def _kv_summary(wait: Wait, preemptions: float) -> str:
    kv = wait.view.kv
    level = f"KV cache {percent(kv.last)} full" if kv else "KV cache full"
    if preemptions:
        return f"{level}, {many(preemptions, 'preemption')}: requests are computed again"
    out = paused(wait.view)
    if out is not None:
        them = many(out.last or out.high, "request")
        return f"{level}: {them} {verb(out.last or out.high, 'is', 'are')} taken out of the batch for lack of room"
    waiting = wait.view.waiting
    who = f"{many(waiting.last, 'request')} {verb(waiting.last, 'waits', 'wait')}" if waiting else "requests wait"
    return f"{level}: {who} for room in it"


def _log_evidence(view: ReplicaView, mark: LogMark) -> Evidence | None:
    for log in view.logs:
        times = log.counts.get(mark, 0)
        event = log.last(mark)
        if times and event is not None:
            return Evidence(
                id=f"engine.log.{mark.value.replace(' ', '-')}",
                direction=Direction.FOR,
                strength=3 if mark is LogMark.KV_FULL else 2,
                family=Family.ENGINE,
                text=f"the log says {times} times: {event.text}",
                value=float(times),
                unit="lines",
                n=log.lines,
                source=f"{log.source} line {event.line}",
            )
    return None


def kv_trouble_in_log(view: ReplicaView) -> list[Hypothesis]:
    """KV trouble that only the log tells (llama.cpp exports neither KV use nor preemptions)."""
    full = _log_evidence(view, LogMark.KV_FULL)
    if full is None:
        return []
    context = _log_evidence(view, LogMark.CONTEXT_ERROR)
    return [
        Hypothesis(
            kind=Kind.KV_PRESSURE,
            detail="context-overflow" if context else "admission",
            scope=Scope(model=view.model or None, replica=view.name),
            summary="the engine's log says that the KV cache ran out of room",
            evidence=(full, context) if context else (full,),
            next_test="send one request alone: it must fit; then as many at once as there are slots",
        )
    ]


def running_text(view: ReplicaView) -> str:
    """The batch in words, with its limit where that is known."""
    running = view.running
    if running is None:
        return "running is not exported"
    limit = view.sequence_limit
    of = f" of {count(limit)}" if known(limit) else ""
    if view.flat_batch:
        return f"running is flat at {count(running.high)}{of}"
    return f"running {count(running.first)} then {count(running.last)}{of}"
