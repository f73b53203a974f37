"""Requests that wait inside the engine, and which resource they wait for."""

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.peers import Peers
from triage.diagnosis.reference import per_token_reference, ttft_bound, usual_ttft
from triage.diagnosis.text import count, many, percent, seconds, verb
from triage.diagnosis.thresholds import (
    KV_FULL,
    KV_HIGH,
    KV_LOW,
    PREEMPTIONS_PER_FINISHED,
    SHARE_SUPPORT,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import Number, known, value_or
from triage.domain.limits import Limits
from triage.domain.logs import LogMark
from triage.domain.quantity import Quantity
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope, Share

_SEEN_LATE = "queue time is recorded when a request finishes: those that still wait are not in it"
_EARLY_CLOCK = "the engine's first-token time starts at its own front end and counts reasoning tokens"


class Wait:
    """How long requests wait for room on one replica, by the gauges and by the histograms."""

    def __init__(self, view: ReplicaView, limits: Limits) -> None:
        self.view = view
        self.bound = ttft_bound(view, limits)
        self.usual = usual_ttft(view)
        waiting, running = view.queued, view.running
        self.waiting = waiting.mean if waiting else 0.0
        self.running = running.mean if running else 0.0
        in_system = self.waiting + self.running
        # Little's law: of all requests inside, the waiting ones spend this share of everybody's time.
        self.of_everything = self.waiting / in_system if in_system else 0.0
        self.queue_mean = view.window.mean(Quantity.QUEUE_TIME)
        self.ttft = view.ttft
        self.prefill_mean = view.window.mean(Quantity.PREFILL_TIME)
        self.admissions = view.window.delta(Quantity.TTFT)

    def share(self) -> Share | None:
        """Waiting's share of the time to first token, else of the whole time in the engine."""
        found: list[float] = []
        if known(self.ttft) and self.ttft > 0:
            if known(self.queue_mean):
                found.append(min(self.queue_mean / self.ttft, 1.0))
            if self.view.always_waiting:
                # All waiting lies before the first token, so its share there is at least its share of the whole.
                found.append(self.of_everything)
                if known(self.prefill_mean) and self._queue_fills(self.ttft):
                    found.append(max(1.0 - self.prefill_mean / self.ttft, 0.0))
        waiting, running = self.view.queued, self.view.running
        if found:
            return Share(max(found), min(found), max(found), "time to first token")
        if waiting is None or running is None or waiting.mean == 0:
            return None
        low = waiting.low / max(waiting.low + running.high, 1.0)
        high = waiting.high / max(waiting.high + running.low, 1.0)
        return Share(self.of_everything, min(low, high), max(low, high), "time in the engine")

    def felt(self) -> bool:
        """Long enough to matter: first tokens are above their bound, or nothing says how long they take."""
        if known(self.ttft):
            return self.ttft > self.bound.bound
        return self.view.always_waiting

    def _queue_fills(self, ttft: float) -> bool:
        """The queue is long enough for what prefill leaves over; else that time is spent in front of the scheduler."""
        live = self.live_queue_time()
        return not known(live) or live >= SHARE_SUPPORT * ttft

    def live_queue_time(self) -> Number:
        """Little: waiting over admissions per second; sees the requests that still wait."""
        admissions = self.view.window.rate(Quantity.TTFT)
        if known(admissions) and admissions > 0:
            return self.waiting / admissions
        return admissions if not known(admissions) else float("inf")


def judge_waits(view: ReplicaView, limits: Limits, gateway_unread: bool) -> list[Hypothesis]:
    """Queueing and KV pressure of one replica. gateway_unread: a gateway log exists that nobody read."""
    waiting = view.queued
    preemptions = value_or(view.window.delta(Quantity.PREEMPTIONS), 0.0)
    queued = view.window.mean(Quantity.QUEUE_TIME)
    if not preemptions and (waiting is None or waiting.high == 0) and not (known(queued) and queued > 0.3):
        return _from_log(view)
    wait = Wait(view, limits)
    kv = _kv_pressure(wait, preemptions, limits)
    found = [kv] if kv is not None else _from_log(view)
    if waiting is not None and (waiting.high > 0 or known(queued)) and wait.felt():
        queueing = _queueing(wait, found[0] if found else None, gateway_unread)
        # Below that share the wait is not what the user feels.
        if queueing.share is None or queueing.share.high >= SHARE_SUPPORT:
            found.append(queueing)
    return found


# ---- KV pressure


def _kv_pressure(wait: Wait, preemptions: float, limits: Limits) -> Hypothesis | None:
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
                f"{count(waiting.first)} then {count(waiting.last)} requests wait; {_running_text(view)}",
                quantity=Quantity.WAITING,
                strength=1,
                value=waiting.last,
                unit="requests",
                threshold=0.0,
            )
        )
    weak = not preemptions and blocked is None and not log and _at_a_limit(view)
    return Hypothesis(
        kind=Kind.KV_PRESSURE,
        detail=detail,
        scope=Scope(model=view.model or None, replica=view.name),
        summary=_kv_summary(wait, preemptions),
        evidence=tuple(evidence),
        share=_lost_to_kv(wait),
        next_test="watch preemptions and KV use for a minute with the longest request stopped or with fewer sequences",
        ceiling=Confidence.POSSIBLE if weak else Confidence.CONFIRMED,
        capped="running is flat, so a sequence limit would look the same" if weak else "",
        confounders=("preempted requests wait again inside decode time, not in queue time (vLLM)",),
    )


def _all_in_time(wait: Wait, limits: Limits) -> bool:
    """First tokens and token gaps are both measured and both within their bounds: nobody feels the preemptions."""
    view = wait.view
    if not known(wait.ttft) or not known(view.per_token) or wait.ttft > wait.bound.bound:
        return False
    return view.per_token <= per_token_reference(view, Peers(()), limits).bound


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
    """Waiting time plus what preemption adds to each token, as a share of the time in the engine."""
    view = wait.view
    excess = 0.0
    before = view.per_token_before
    if known(view.per_token) and known(before) and view.per_token > 0:
        excess = max(1.0 - before / view.per_token, 0.0)
    value = wait.of_everything + (1.0 - wait.of_everything) * excess
    if value <= 0:
        return None
    return Share(value, min(wait.of_everything, value), value, "time in the engine")


def _kv_summary(wait: Wait, preemptions: float) -> str:
    kv = wait.view.kv
    level = f"KV cache {percent(kv.last)} full" if kv else "KV cache full"
    if preemptions:
        return f"{level}, {many(preemptions, 'preemption')}: requests are computed again"
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


def _from_log(view: ReplicaView) -> list[Hypothesis]:
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


# ---- queueing


def _queueing(wait: Wait, kv: Hypothesis | None, gateway_unread: bool) -> Hypothesis:
    view = wait.view
    waiting = view.queued
    assert waiting is not None
    evidence: list[Evidence] = []
    flat = view.flat_batch and waiting.low > 0
    if waiting.high > 0:
        evidence.append(
            view.evidence(
                "waiting",
                f"{count(waiting.first)} then {count(waiting.last)} requests wait; {_running_text(view)}",
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
                f"the KV cache is only {percent(view.kv.high)} full: room is not what they wait for",
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
    if kv is not None:
        doubt = "a full KV cache would look the same"
    elif gateway_unread:
        doubt = "the gateway log was not read, so retries could be the load"
    else:
        doubt = "seen in one reading only" if waiting.high > 0 and view.loaded_readings == 1 else ""
    share = wait.share()
    detail, reason = _what_for(view, flat)
    return Hypothesis(
        kind=Kind.QUEUEING,
        detail=detail,
        scope=Scope(model=view.model or None, replica=view.name),
        summary=_queue_summary(wait, share, reason),
        evidence=tuple(evidence),
        share=share if share is None or share.value >= SHARE_SUPPORT or view.always_waiting else None,
        next_test="send one short request twice, cold and warm: both must wait equally long when it is a queue",
        ceiling=Confidence.POSSIBLE if doubt else Confidence.CONFIRMED,
        capped=doubt,
        confounders=(_SEEN_LATE, _EARLY_CLOCK),
    )


def _what_for(view: ReplicaView, flat: bool) -> tuple[str | None, str]:
    """Sub-cause and its words."""
    for quantity, detail, words in (
        (Quantity.GRAMMAR_QUEUE, "grammar-queue", "for their grammar to be compiled"),
        (Quantity.HANDOFF_QUEUE, "handoff-queue", "for the hand-over between prefill and decode"),
    ):
        track, waiting = view.track(quantity), view.queued
        if track is not None and waiting is not None and track.low > 0 and track.mean >= waiting.mean:
            return detail, words
    slots, adapters = view.track(Quantity.ADAPTER_SLOTS), view.track(Quantity.ADAPTERS_WAITING)
    if slots is not None and adapters is not None and adapters.last > 0:
        return "adapter-slots", "for a free adapter slot"
    deferred, room = view.track(Quantity.WAITING_DEFERRED), view.waiting
    if deferred is not None and deferred.mean > (room.mean if room is not None else 0.0):
        return None, "on purpose: for an adapter, a KV transfer or a grammar"
    limit = view.sequence_limit
    if known(limit) and view.running is not None and view.running.high >= limit:
        return "sequence-limit", f"for one of {count(limit)} slots"
    return ("sequence-limit", "for a slot") if flat else (None, "for a slot")


def _running_text(view: ReplicaView) -> str:
    running = view.running
    if running is None:
        return "running is not exported"
    limit = view.sequence_limit
    of = f" of {count(limit)}" if known(limit) else ""
    if view.flat_batch:
        return f"running is flat at {count(running.high)}{of}"
    return f"running {count(running.first)} then {count(running.last)}{of}"


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
