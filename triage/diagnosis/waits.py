"""Requests that wait inside the engine, and which resource they wait for."""

from collections.abc import Sequence

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.kv import judge_kv, kv_trouble_in_log, paused, running_text
from triage.diagnosis.text import count, many, percent, seconds, verb
from triage.diagnosis.thresholds import (
    KV_LOW,
    SHARE_SUPPORT,
)
from triage.diagnosis.view import ReplicaView
from triage.diagnosis.wait import Wait
from triage.diagnosis.waited_for import reserves_room, waited_for
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.situation import AdapterUse, Situation
from triage.domain.verdict import Confidence, Direction, Evidence, Kind, Scope, Share

_SEEN_LATE = "queue time is recorded when a request finishes: those that still wait are not in it"
_EARLY_CLOCK = "the engine's first-token time starts at its own front end and counts reasoning tokens"


def judge_waits(view: ReplicaView, situation: Situation, alone: bool, gateway_unread: bool) -> list[Hypothesis]:
    """Queueing and KV pressure of one replica.

    alone: it is the only engine. gateway_unread: a gateway log exists that nobody read.
    """
    limits = situation.limits
    waiting = view.queued
    preemptions = value_or(view.window.delta(Quantity.PREEMPTIONS), 0.0)
    queued = view.window.mean(Quantity.QUEUE_TIME)
    nobody = (waiting is None or waiting.high == 0) and not (known(queued) and queued > 0.3)
    if not preemptions and nobody and paused(view) is None:
        return kv_trouble_in_log(view)
    wait = Wait(view, limits)
    kv = judge_kv(wait, preemptions, limits)
    found = [kv] if kv is not None else kv_trouble_in_log(view)
    if waiting is not None and (waiting.high > 0 or known(queued)) and wait.felt():
        adapters = situation.adapters if alone else ()
        queueing = _queueing(wait, found[0] if found else None, gateway_unread, adapters)
        # Below that share the wait is not what the user feels.
        if queueing.share is None or wait.at_most(queueing.share) >= SHARE_SUPPORT:
            found.append(queueing)
    return found


def _queueing(wait: Wait, kv: Hypothesis | None, gateway_unread: bool, adapters: Sequence[AdapterUse]) -> Hypothesis:
    view = wait.view
    waiting = view.queued
    assert waiting is not None
    evidence: list[Evidence] = []
    flat = view.flat_batch and waiting.low > 0
    if waiting.high > 0:
        evidence.append(
            view.evidence(
                "waiting",
                f"{count(waiting.first)} then {count(waiting.last)} requests wait; {running_text(view)}",
                quantity=Quantity.WAITING,
                strength=3 if view.always_waiting and view.moved else 1,
                value=waiting.last,
                unit="requests",
                threshold=0.0,
            )
        )
    else:
        # What finished did wait, but in no reading did anybody: the queue is over, or comes in short bursts.
        evidence.append(
            view.evidence(
                "nobody-waits",
                f"no request waited in any of {waiting.n} readings",
                quantity=Quantity.WAITING,
                strength=3,
                direction=Direction.AGAINST,
                value=0.0,
                unit="requests",
                n=waiting.n,
            )
        )
    if known(wait.queue_mean):
        n = int(value_or(view.window.delta(Quantity.QUEUE_TIME), 0))
        evidence.append(
            view.evidence(
                "queue-time",
                f"requests that finished had waited {seconds(wait.queue_mean)} each",
                quantity=Quantity.QUEUE_TIME,
                value=wait.queue_mean,
                unit="s",
                n=n,
            )
        )
    live = wait.live_queue_time()
    if known(live) and view.always_waiting and live != float("inf"):
        evidence.append(
            view.evidence(
                "queue-now",
                f"at this rate of first tokens the queue is {seconds(live)} long",
                quantity=Quantity.TTFT,
                strength=1,
                value=live,
                unit="s",
                n=int(value_or(view.window.delta(Quantity.TTFT), 0)),
            )
        )
    if view.kv is not None and view.kv.high < KV_LOW and waiting.low > 0:
        evidence.append(
            view.evidence(
                "kv-free",
                f"the KV cache is only {percent(view.kv.high)} full{_room_says(view)}",
                quantity=Quantity.KV_USAGE,
                strength=1,
                value=view.kv.high,
                unit="share",
                threshold=KV_LOW,
            )
        )
    if kv is not None:
        evidence.append(
            view.evidence(
                "bound-by-kv",
                "the KV cache binds this wait",
                quantity=Quantity.KV_USAGE,
                strength=3 if kv.confidence() is not Confidence.POSSIBLE else 2,
                direction=Direction.AGAINST,
            )
        )
    once = view.window.single or view.loaded_readings == 1
    if kv is not None:
        doubt = "a full KV cache would look the same"
    elif gateway_unread:
        doubt = "the gateway log was not read, so retries could be the load"
    else:
        doubt = "seen in one reading only" if waiting.high > 0 and once else ""
    share = wait.share()
    reason = waited_for(view, adapters, flat)
    evidence += reason.evidence
    return Hypothesis(
        kind=Kind.QUEUEING,
        detail=reason.detail,
        scope=Scope(model=view.model or None, replica=view.name),
        summary=_queue_summary(wait, share, reason.words),
        evidence=tuple(evidence),
        share=share if share is None or share.value >= SHARE_SUPPORT or view.always_waiting else None,
        next_test=reason.next_test,
        ceiling=Confidence.POSSIBLE if doubt else Confidence.CONFIRMED,
        capped=doubt,
        confounders=(_SEEN_LATE, _EARLY_CLOCK),
    )


def _room_says(view: ReplicaView) -> str:
    return (
        ", but what running requests have reserved is not in it"
        if reserves_room(view)
        else (": room is not what they wait for")
    )


def _queue_summary(wait: Wait, share: Share | None, reason: str) -> str:
    waiting = wait.view.queued
    wait_text = f"requests waited {reason}"
    if waiting is not None and waiting.last:
        wait_text = f"{many(waiting.last, 'request')} {verb(waiting.last, 'waits', 'wait')} {reason}"
    if known(wait.ttft):
        part = f"; {percent(share.value)} of the {share.of} is waiting" if share else ""
        return f"first token takes {seconds(wait.ttft)} (bound {seconds(wait.bound.bound)}): {wait_text}{part}"
    part = f", {percent(share.value)} of the {share.of}" if share else ""
    return f"{wait_text}{part}"
