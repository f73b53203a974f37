"""What a front end's own numbers break, and what breaks between prefill and decode, without naming a cause."""

from triage.diagnosis.fronts import nobody_ready
from triage.diagnosis.text import count, many, seconds
from triage.diagnosis.thresholds import HANDOFFS_FAILED, PICKER_BLIND
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.verdict import Direction, Evidence

# Requests that a front end took, or turned away.
_ARRIVED = (Quantity.FAILED, Quantity.REJECTED, Quantity.HTTP_FAILED, Quantity.HTTP_REFUSED, Quantity.E2E)


def handoff_stock(view: ReplicaView, bound: float) -> list[Evidence]:
    """Transfers between prefill and decode that failed. bound: share of finished requests that may fail."""
    failed = value_or(view.window.delta(Quantity.HANDOFF_FAILED), 0.0)
    finished = value_or(view.finished, 0.0)
    if failed < HANDOFFS_FAILED or failed <= bound * finished:
        return []
    text = f"{view.prefix}{many(failed, 'hand-over')} between prefill and decode failed ({count(finished)} finished)"
    return [_against(view, "handoff-failed", text, Quantity.HANDOFF_FAILED, failed, bound * finished)]


def front_stock(view: ReplicaView, bound: float) -> tuple[list[Evidence], list[str]]:
    """(what is broken, why health cannot be read) of one front end. bound: seconds to the first token."""
    broken, unreadable = [], []
    arrived = _arrived(view)
    if nobody_ready(view) and arrived:
        text = f"{view.prefix}no engine is ready behind it, and {arrived}"
        broken.append(_against(view, "no-endpoint", text, Quantity.READY_ENDPOINTS, 0.0, 1.0))
    elif nobody_ready(view):
        unreadable.append(f"{view.prefix}no engine is ready behind it")
    held, wait = view.track(Quantity.GATEWAY_QUEUE), view.window.mean(Quantity.GATEWAY_QUEUE_TIME)
    if known(wait) and wait > bound:
        text = f"{view.prefix}requests are held {seconds(wait)} in front of the engines (bound {seconds(bound)})"
        broken.append(_against(view, "held-long", text, Quantity.GATEWAY_QUEUE_TIME, wait, bound))
    elif held is not None and held.low > 0 and not known(wait) and not known(view.ttft):
        text = f"{view.prefix}requests are held in front of the engines in every reading"
        broken.append(_against(view, "always-held", text, Quantity.GATEWAY_QUEUE, held.last, 0.0))
    errors = view.window.rate(Quantity.PICKER_ERRORS)
    if known(errors) and errors >= PICKER_BLIND:
        unreadable.append(
            f"{view.prefix}{errors:.0f} reads of the engines fail each second: it routes by what it last knew"
        )
    return broken, unreadable


def _arrived(view: ReplicaView) -> str:
    """Work that came while nobody was there for it, in words; '' when none did."""
    inside = max((track.last for q in _WAITING if (track := view.track(q)) is not None), default=0.0)
    if inside > 0:
        return f"{many(inside, 'request')} inside"
    came = max((value_or(view.window.delta(quantity), 0.0) for quantity in _ARRIVED), default=0.0)
    return f"{many(came, 'request')} came" if came > 0 else ""


_WAITING = (Quantity.INFLIGHT, Quantity.GATEWAY_QUEUE, Quantity.QUEUED)


def _against(view: ReplicaView, name: str, text: str, quantity: Quantity, value: float, threshold: float) -> Evidence:
    return view.evidence(
        name, text, quantity=quantity, direction=Direction.AGAINST, value=value, threshold=threshold, strength=2
    )
