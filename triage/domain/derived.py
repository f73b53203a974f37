"""Numbers that are derived from a window, the same for every judgement and every screen."""

from triage.domain.absence import NO_WINDOW, NOT_APPLICABLE, NOT_EXPORTED, Number, known, value_or
from triage.domain.histogram import MINIMUM_FOR_MEAN
from triage.domain.quantity import Quantity
from triage.domain.window import Window


def last(window: Window, quantity: Quantity) -> Number:
    """A gauge at the last reading."""
    track = window.gauge(quantity)
    return NOT_EXPORTED if track is None else track.last


def per_token(window: Window) -> Number:
    """Mean seconds per output token: from the inter-token histogram, else per request, else from counters."""
    inter_token = window.mean(Quantity.ITL)
    if known(inter_token):
        return inter_token
    per_request = window.mean(Quantity.REQUEST_TPOT)
    if known(per_request):
        return per_request
    seconds, tokens = window.delta(Quantity.GENERATION_SECONDS), window.delta(Quantity.GENERATION_TOKENS)
    if known(seconds) and known(tokens) and tokens >= MINIMUM_FOR_MEAN:
        return seconds / tokens
    return inter_token


def generated(window: Window) -> Number:
    """Output tokens in the window; a counter that moves per step wins over one that moves at finish."""
    for quantity in (Quantity.GENERATION_TOKENS_LIVE, Quantity.GENERATION_TOKENS):
        tokens = window.delta(quantity)
        if known(tokens):
            return tokens
    # One inter-token observation per token but the first of each request.
    gaps = window.delta(Quantity.ITL)
    return (
        gaps + value_or(window.delta(Quantity.TTFT), 0.0) if known(gaps) else window.delta(Quantity.GENERATION_TOKENS)
    )


def speed(window: Window) -> Number:
    """Output tokens per second over the usable part of the window."""
    tokens = generated(window)
    if not known(tokens):
        return tokens
    return tokens / window.seconds if window.seconds > 0 else NO_WINDOW


def hit_share(window: Window) -> Number:
    """Prefix cache hits over what was looked up inside the window, in tokens, else in blocks; 0..1.

    Without counters the engine's own gauge, unless it is idle and the gauge shows its last work.
    """
    queries, hits = window.delta(Quantity.PREFIX_QUERIES), window.delta(Quantity.PREFIX_HITS)
    if known(queries) and known(hits):
        return hits / queries if queries > 0 else NO_WINDOW
    found, missed = window.delta(Quantity.PREFIX_BLOCK_HITS), window.delta(Quantity.PREFIX_BLOCK_MISSES)
    if known(found) and known(missed):
        return found / (found + missed) if found + missed > 0 else NO_WINDOW
    running = window.gauge(Quantity.RUNNING)
    if Quantity.HIT_RATE in window.last.lingering and running is not None and running.high == 0:
        return NOT_APPLICABLE
    return last(window, Quantity.HIT_RATE)
