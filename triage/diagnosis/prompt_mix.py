"""How much prompt an engine computes beside each token that it generates."""

from triage.diagnosis.thresholds import QUANTILE_MINIMUM
from triage.domain.absence import NO_WINDOW, NOT_EXPORTED, Number, known, value_or
from triage.domain.quantity import Quantity
from triage.domain.window import Window


def computed_prompt(window: Window) -> Number:
    """Prompt tokens that were really computed: without prefix-cache hits."""
    computed = window.delta(Quantity.PROMPT_TOKENS_COMPUTED)
    if known(computed):
        return computed
    prompt = window.delta(Quantity.PROMPT_TOKENS)
    if not known(prompt):
        return prompt
    cached = window.delta(Quantity.PROMPT_TOKENS_CACHED)
    if not known(cached):
        cached = window.delta(Quantity.PREFIX_HITS)
    return max(prompt - value_or(cached, 0.0), 0.0)


def prompt_per_generated(computed: Number, generated: Number) -> Number:
    """Computed prompt tokens for each generated one; huge when nothing was generated."""
    if not known(computed) or not known(generated):
        return NO_WINDOW
    return computed / max(generated, 1.0)


def prompt_per_generated_before(window: Window) -> Number:
    """The same since start, up to the window's first reading; absent with too little to be usual."""
    values = window.first.values
    generated = values.get(Quantity.GENERATION_TOKENS, 0.0)
    computed = values.get(Quantity.PROMPT_TOKENS_COMPUTED)
    if computed is None:
        cached = values.get(Quantity.PROMPT_TOKENS_CACHED, values.get(Quantity.PREFIX_HITS, 0.0))
        computed = max(values.get(Quantity.PROMPT_TOKENS, 0.0) - cached, 0.0)
    return computed / generated if generated >= QUANTILE_MINIMUM and computed else NOT_EXPORTED
