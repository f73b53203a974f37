"""Whether an engine did anything in its window."""

from triage.domain.absence import Number, known, value_or
from triage.domain.quantity import PROGRESS, Quantity
from triage.domain.window import Window

# Of the counters of work, the ones that move when work begins or ends: during a long answer they stand still
# and prove nothing. The front end observes first tokens and gaps; answers that are not streamed reach it in rare
# lumps (SGLang).
_PROVES_ONLY_BY_MOVING = frozenset(
    {Quantity.PROMPT_TOKENS_COMPUTED, Quantity.PROMPT_TOKENS, Quantity.ITL, Quantity.TTFT}
)


def moved(window: Window, finished: Number) -> bool | None:
    """Whether any progress counter moved; None when no counter is exported that must move with work."""
    seen = False
    for quantity in PROGRESS:
        change = window.delta(quantity)
        if known(change):
            if change > 0:
                return True
            seen = seen or (quantity not in window.last.late and quantity not in _PROVES_ONLY_BY_MOVING)
    if window.quiet.get(Quantity.KV_USAGE, window.seconds) < window.seconds:
        return True
    # Requests that ended because the client left are counted as finished by some engines: no work was done.
    if known(finished) and finished > value_or(window.delta(Quantity.ABORTED), 0.0):
        return True
    return False if seen else None


def standing_for(window: Window) -> float:
    """Seconds at the end of the window in which no counter of work moved; 0 when none is there that must move."""
    telling = [q for q in window.quiet if q not in window.last.late and q not in _PROVES_ONLY_BY_MOVING]
    if not any(quantity in PROGRESS for quantity in telling):
        return 0.0
    return min(
        seconds for quantity, seconds in window.quiet.items() if quantity in PROGRESS or quantity is Quantity.KV_USAGE
    )
