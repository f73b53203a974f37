"""What positive evidence with an adequate sample excludes. Absence of data excludes nothing."""

from collections import defaultdict
from collections.abc import Sequence

from triage.diagnosis.kv import paused
from triage.diagnosis.peers import Peers
from triage.diagnosis.reference import per_token_reference, ttft_bound
from triage.diagnosis.text import count, percent, seconds
from triage.diagnosis.thresholds import KV_LOW, QUANTILE_MINIMUM, STALL_SECONDS, UNCHANGED, WEAK_BELOW
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.verdict import Kind, RuledOut, Scope


def rule_out(views: Sequence[ReplicaView], limits: Limits) -> list[RuledOut]:
    """For each model, the kinds that all of its replicas speak against."""
    found: list[RuledOut] = []
    by_model: dict[str, list[ReplicaView]] = defaultdict(list)
    for view in views:
        if not view.is_frontend:
            by_model[view.model].append(view)
    for model, own in by_model.items():
        peers = Peers(own)
        for kind, test in _TESTS:
            reason = test(own[0], peers, limits)
            if reason is not None and all(test(view, peers, limits) is not None for view in own[1:]):
                found.append(RuledOut(kind, reason, Scope(model=model or None)))
    return found


def _stalled(view: ReplicaView, peers: Peers, limits: Limits) -> str | None:
    del peers, limits
    if not view.moved or view.window.seconds < STALL_SECONDS:
        return None
    if known(view.generated) and view.generated > 0:
        return f"{count(view.generated)} tokens in {seconds(view.window.seconds)}"
    steps = view.window.delta(Quantity.ENGINE_STEPS)
    return f"{count(steps)} engine steps in {seconds(view.window.seconds)}" if known(steps) and steps else None


def _queueing(view: ReplicaView, peers: Peers, limits: Limits) -> str | None:
    del peers
    waiting = view.waiting
    if waiting is None or waiting.high > 0 or waiting.n < 2 or not view.moved:
        return None
    queued = view.window.mean(Quantity.QUEUE_TIME, WEAK_BELOW)
    if known(queued):
        small = queued <= 0.1 * ttft_bound(view, limits).bound
        return f"no request waits; queue time {seconds(queued)}" if small else None
    return "no request waits in any reading" if waiting.n >= 3 else None


def _decode(view: ReplicaView, peers: Peers, limits: Limits) -> str | None:
    if not known(view.per_token) or view.per_token_n < QUANTILE_MINIMUM:
        return None
    reference = per_token_reference(view, peers, limits)
    usual = view.per_token <= min(UNCHANGED * reference.value, reference.bound)
    return f"{seconds(view.per_token)} between tokens, {reference.name} {seconds(reference.value)}" if usual else None


def _kv(view: ReplicaView, peers: Peers, limits: Limits) -> str | None:
    del peers, limits
    preemptions = view.window.delta(Quantity.PREEMPTIONS)
    if not view.moved or view.kv is None or view.kv.high >= KV_LOW or (known(preemptions) and preemptions > 0):
        return None
    if paused(view) is not None:
        return None
    return f"KV cache {percent(view.kv.high)} full, no preemption" if known(preemptions) else None


def _prefill(view: ReplicaView, peers: Peers, limits: Limits) -> str | None:
    del peers
    count_ = value_or(view.window.delta(Quantity.PREFILL_TIME), 0.0)
    mean = view.window.mean(Quantity.PREFILL_TIME, WEAK_BELOW)
    if not known(mean) or count_ < WEAK_BELOW or mean > 0.1 * ttft_bound(view, limits).bound:
        return None
    return f"prefill takes {seconds(mean)}"


_TESTS = (
    (Kind.ENGINE_STALLED, _stalled),
    (Kind.QUEUEING, _queueing),
    (Kind.SLOW_DECODE, _decode),
    (Kind.KV_PRESSURE, _kv),
    (Kind.SLOW_PREFILL, _prefill),
)
