"""Whether an engine did anything in its window."""

from triage.domain.absence import Number, known, value_or
from triage.domain.quantity import Quantity
from triage.domain.window import Window

# Counters that stand for work done, in the order in which a person would believe them.
_PROGRESS = (
    Quantity.ENGINE_STEPS,
    Quantity.GENERATION_TOKENS_LIVE,
    Quantity.GENERATION_TOKENS,
    Quantity.PROMPT_TOKENS_COMPUTED,
    Quantity.PROMPT_TOKENS,
    Quantity.ITL,
    Quantity.TTFT,
)
# Of these, the ones that move when work begins or ends: during a long answer they stand still and prove nothing.
# The front end observes first tokens and gaps; answers that are not streamed reach it in rare lumps (SGLang).
_PROVES_ONLY_BY_MOVING = frozenset(
    {Quantity.PROMPT_TOKENS_COMPUTED, Quantity.PROMPT_TOKENS, Quantity.ITL, Quantity.TTFT}
)


def moved(window: Window, finished: Number) -> bool | None:
    """Whether any progress counter moved; None when no counter is exported that must move with work."""
    seen = False
    for quantity in _PROGRESS:
        change = window.delta(quantity)
        if known(change):
            if change > 0:
                return True
            seen = seen or (quantity not in window.last.late and quantity not in _PROVES_ONLY_BY_MOVING)
    # Requests that ended because the client left are counted as finished by some engines: no work was done.
    if known(finished) and finished > value_or(window.delta(Quantity.ABORTED), 0.0):
        return True
    return False if seen else None
