"""Conversations that have grown: each token then reads a longer history from memory."""

from typing import NamedTuple

from triage.diagnosis.hits import prompt_length_before, prompt_length_in
from triage.diagnosis.text import count
from triage.diagnosis.thresholds import CONTEXT_GREW, UNCHANGED
from triage.diagnosis.view import ReplicaView
from triage.domain.quantity import Quantity
from triage.domain.verdict import Evidence
from triage.domain.window import Window

_LINES = 4  # reports of a log in which a trend can be told from chance


class _Growth(NamedTuple):
    """times: context per request, now over then; words: what it was read from."""

    times: float
    words: str
    quantity: Quantity


def grown_context(view: ReplicaView, slower: float) -> list[Evidence]:
    """Context per request grew enough to explain the slower token. slower: time per token over its reference.

    A token's time cannot grow by more than its context does: weights are read as before.
    """
    growth = _growth(view)
    if growth is None or growth.times < CONTEXT_GREW:
        return []
    explains = slower <= UNCHANGED * growth.times
    return [
        view.evidence(
            "context",
            f"each request holds {growth.times:.1f} × the context it held {growth.words}"
            + ("" if explains else ", which is too little to explain it"),
            quantity=growth.quantity,
            strength=2 if explains else 1,
            value=growth.times,
            unit="times",
            threshold=CONTEXT_GREW,
        )
    ]


def _growth(view: ReplicaView) -> _Growth | None:
    now = _kv_per_request(view.window)
    earlier = view.replica.baseline
    then = _kv_per_request(earlier) if earlier is not None else None
    if now is not None and then is not None:
        return _Growth(now / then, f"in {view.replica.baseline_name}", Quantity.KV_USAGE)
    held = [
        line.kv_usage / line.running for line in view.throughput if line.kv_usage and line.running and line.running > 0
    ]
    if len(held) >= _LINES:
        start = min(held[: len(held) // 2])
        return _Growth(held[-1] / start, "earlier in its log", Quantity.KV_USAGE)
    length = prompt_length_in(view.window)
    before = prompt_length_before(view.window)
    if length is None or before is None:
        return None
    words = f"since its start (prompts of {count(length)} tokens, {count(before)} then)"
    return _Growth(length / before, words, Quantity.PROMPT_LENGTH)


def _kv_per_request(window: Window) -> float | None:
    kv, running = window.gauge(Quantity.KV_USAGE), window.gauge(Quantity.RUNNING)
    if kv is None or running is None or kv.mean <= 0 or running.mean <= 0:
        return None
    return kv.mean / running.mean
