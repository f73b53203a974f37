"""What one replica's numbers break and what they keep, without naming a cause."""

from triage.diagnosis.fall import fall_evidence, felt, hits_fell
from triage.diagnosis.front_stock import front_stock, handoff_stock
from triage.diagnosis.interference import frozen_share
from triage.diagnosis.peers import Peers
from triage.diagnosis.reference import few_prompts_explain, per_token_reference, ttft_bound
from triage.diagnosis.text import count, many, percent, seconds
from triage.diagnosis.thresholds import (
    ABORTED_SHARE,
    ABOVE_TOP,
    FREEZE_S,
    PATIENCE_S,
    QUANTILE_MINIMUM,
    REFUSED_LEAST,
    REFUSED_SHARE,
    SHARE_SUPPORT,
    TAIL_SECONDS,
    VANISHED_LEAST,
    VANISHED_SHARE,
    WEAK_BELOW,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.situation import Situation
from triage.domain.verdict import Direction, Evidence

_REFUSED = "engine.refused"


def replica_stock(
    view: ReplicaView, peers: Peers, situation: Situation
) -> tuple[list[Evidence], list[Evidence], list[Evidence], list[str]]:
    broken: list[Evidence] = []
    good: list[Evidence] = []
    unreadable: list[str] = []
    window = view.window
    if window.single:
        return broken, [], good, ["only one scrape: nothing can be said about change"]
    if not view.comparable:
        why = "the engine restarted inside the window" if window.restarted else "counters went back inside the window"
        return broken, [], good, [f"{view.prefix}{why if window.resets else 'no usable interval'}"]
    limits = situation.limits
    if (view.busy and view.moved is False) or view.standing_for >= TAIL_SECONDS:
        since = f" for {seconds(view.standing_for)}" if view.moved else ""
        text = f"{view.prefix}work is inside and no counter moves{since}"
        broken.append(_against(view, "no-progress", text, Quantity.RUNNING))
    bound = ttft_bound(view, limits)
    ttft = window.histograms.get(Quantity.TTFT)
    slow = ttft.quantile(0.95) if ttft is not None and ttft.count >= QUANTILE_MINIMUM else None
    if known(view.ttft) and view.ttft > bound.bound:
        text = f"{view.prefix}first token takes {seconds(view.ttft)} (bound {seconds(bound.bound)})"
        broken.append(_against(view, "first-token-slow", text, Quantity.TTFT, view.ttft, bound.bound))
    elif slow is not None and slow.low >= bound.bound:
        text = f"{view.prefix}first token p95 is above {seconds(slow.low)} (bound {seconds(bound.bound)})"
        broken.append(_against(view, "first-token-slow", text, Quantity.TTFT, slow.low, bound.bound))
    reference = per_token_reference(view, peers, limits)
    running = view.running.mean if view.running is not None else 0.0
    now = view.per_token
    slower = known(now) and now > reference.bound and view.per_token_n >= WEAK_BELOW
    if (
        known(now)
        and slower
        and not (reference.explains_by_batch(running, now) or few_prompts_explain(view, now, reference, limits))
    ):
        against = f"{seconds(reference.value)} ({reference.name})"
        text = f"{view.prefix}{seconds(now)} between tokens against {against}"
        if reference.may_explain_by_batch(now, running):
            unreadable.append(f"{text}, and how large its batch was then is not known")
        else:
            broken.append(_against(view, "token-slow", text, Quantity.ITL, now, reference.bound))
    fell = hits_fell(view)
    if fell is not None and felt(view):
        broken.append(fall_evidence(view, fell, Direction.AGAINST))
    elif fell is not None:
        good.append(fall_evidence(view, fell, Direction.AGAINST))
    frozen = frozen_share(window.histograms.get(Quantity.ITL))
    if frozen >= SHARE_SUPPORT:
        text = f"{view.prefix}{percent(frozen)} of the time between tokens passes in gaps above {seconds(FREEZE_S)}"
        broken.append(_against(view, "token-gaps", text, Quantity.ITL, frozen, SHARE_SUPPORT))
    broken += [*_failures(view, limits.failure_share), *handoff_stock(view, limits.failure_share)]
    if view.is_frontend:
        wrong, blind = front_stock(view, bound.bound)
        broken += wrong
        unreadable += blind
    leaving = _leaving(view)
    # Who waits long for an answer goes away: that needs no cause in front of the engine.
    long_wait = known(view.ttft) and view.ttft > max(bound.bound, PATIENCE_S)
    outside = [item for item in leaving if item.id == _REFUSED or not long_wait]
    broken += [item for item in leaving if item not in outside]
    measured = known(view.ttft) or known(view.per_token) or view.is_prefill_only
    if view.answers_without_tokens:
        # The whole answer is the first thing its user sees.
        e2e = window.mean(Quantity.E2E)
        measured = measured or known(e2e)
        if known(e2e) and e2e > bound.bound:
            text = f"{view.prefix}answers take {seconds(e2e)} (bound {seconds(bound.bound)})"
            broken.append(_against(view, "answer-slow", text, Quantity.E2E, e2e, bound.bound))
    if view.always_waiting and not known(view.ttft):
        broken.append(
            _against(view, "always-waiting", f"{view.prefix}requests wait in every reading", Quantity.WAITING)
        )
    if view.busy and not measured and not view.is_frontend:
        unreadable.append(_blind(view))
    elif not broken and not outside:
        good[:0] = _works(view)
    return broken, outside, good, unreadable


def _works(view: ReplicaView) -> list[Evidence]:
    if view.moved and known(view.generated) and view.generated > 0:
        times = []
        if known(view.ttft):
            times.append(f"first token {seconds(view.ttft)}")
        if known(view.per_token):
            times.append(f"{seconds(view.per_token)} between tokens")
        text = f"{view.prefix}{many(view.generated, 'token')} in {seconds(view.window.seconds)}"
        return [
            view.evidence(
                "works",
                f"{text}, {', '.join(times)}" if times else text,
                quantity=Quantity.GENERATION_TOKENS,
                value=view.generated,
                unit="tokens",
            )
        ]
    if view.moved and view.answers_without_tokens and known(view.finished):
        e2e = view.window.mean(Quantity.E2E)
        each = f", {seconds(e2e)} each" if known(e2e) else ""
        text = f"{view.prefix}{many(view.finished, 'request')} answered in {seconds(view.window.seconds)}{each}"
        return [view.evidence("works", text, quantity=Quantity.FINISHED, value=view.finished, unit="requests")]
    if view.moved and view.is_prefill_only and known(view.computed_prompt):
        text = f"{view.prefix}{count(view.computed_prompt)} prompt tokens in {seconds(view.window.seconds)}"
        return [view.evidence("works", text, quantity=Quantity.PROMPT_TOKENS, value=view.computed_prompt)]
    if view.idle:
        return [view.evidence("idle", f"{view.prefix}nothing runs or waits", quantity=Quantity.RUNNING, strength=1)]
    return []


def _blind(view: ReplicaView) -> str:
    """Why a working replica cannot be judged."""
    e2e = view.window.histograms.get(Quantity.E2E)
    above = e2e.share_above_top() if e2e is not None else 0.0
    if e2e is not None and known(above) and above > ABOVE_TOP and e2e.edges:
        mean = value_or(e2e.mean(), 0.0)
        return (
            f"{view.prefix}{percent(above)} of the answers took longer than the top bucket "
            f"({seconds(e2e.edges[-1])}): the quantile is only 'at least' that, the mean is {seconds(mean)}; "
            "neither first-token nor inter-token time is exported"
        )
    return f"{view.prefix}neither first-token nor inter-token time can be read, so slow cannot be told from busy"


def _failures(view: ReplicaView, bound: float) -> list[Evidence]:
    """Answers that failed: counted by the engine or its HTTP layer."""
    failed = value_or(view.window.delta(Quantity.HTTP_FAILED), 0.0)
    fine = value_or(view.window.delta(Quantity.HTTP_ANSWERED), 0.0)
    errors = value_or(view.window.delta(Quantity.FAILED), 0.0)
    finished = value_or(view.finished, 0.0)
    for bad, all_of_them, what, quantity in (
        (failed, failed + fine, "5xx answers", Quantity.HTTP_FAILED),
        (errors, finished, "requests ended in an error", Quantity.FAILED),
    ):
        if bad >= 3 and bad > bound * all_of_them:
            text = f"{view.prefix}{count(bad)} {what} of {count(all_of_them)}"
            return [_against(view, "failures", text, quantity, bad / all_of_them if all_of_them else None, bound)]
    return []


def share_left(view: ReplicaView) -> float:
    """Part of the requests that ended, or began, in the window and left without an answer; 0 when nothing tells."""
    running = view.running
    inside = value_or(view.window.delta(Quantity.TTFT), 0.0) + (running.first if running else 0.0)
    finished, aborted = value_or(view.finished, 0.0), value_or(view.window.delta(Quantity.ABORTED), 0.0)
    vanished = value_or(view.vanished, 0.0)
    shares = [(vanished, inside, VANISHED_LEAST), (aborted, max(finished, aborted), 3)]
    return max([bad / whole for bad, whole, least in shares if whole > 0 and bad >= least], default=0.0)


def _leaving(view: ReplicaView) -> list[Evidence]:
    """Clients that go away or are sent away: visible here, explained only in front of the engine."""
    found = []
    running = view.running
    inside = value_or(view.window.delta(Quantity.TTFT), 0.0) + (running.first if running else 0.0)
    vanished = value_or(view.vanished, 0.0)
    if vanished >= VANISHED_LEAST and vanished >= VANISHED_SHARE * inside:
        text = f"{view.prefix}{count(vanished)} of {count(inside)} started requests left without finishing"
        found.append(_against(view, "vanished", text, Quantity.TTFT, vanished, None))
    finished, aborted = value_or(view.finished, 0.0), value_or(view.window.delta(Quantity.ABORTED), 0.0)
    total = max(finished, aborted)
    if aborted >= 3 and aborted >= ABORTED_SHARE * total:
        text = f"{view.prefix}{count(aborted)} of {count(total)} requests ended because the client left"
        found.append(_against(view, "aborted", text, Quantity.ABORTED, aborted, None))
    refused = value_or(view.window.delta(Quantity.HTTP_REFUSED), 0.0)
    answers = refused + value_or(view.window.delta(Quantity.HTTP_ANSWERED), 0.0)
    if refused >= REFUSED_LEAST and refused >= REFUSED_SHARE * answers:
        text = f"{view.prefix}{count(refused)} of {count(answers)} HTTP requests were refused (4xx)"
        found.append(
            _against(
                view, _REFUSED.removeprefix("engine."), text, Quantity.HTTP_REFUSED, refused / answers, REFUSED_SHARE
            )
        )
    return found


def _against(
    view: ReplicaView,
    name: str,
    text: str,
    quantity: Quantity,
    value: float | None = None,
    threshold: float | None = None,
) -> Evidence:
    return view.evidence(
        name, text, quantity=quantity, direction=Direction.AGAINST, value=value, threshold=threshold, strength=2
    )
