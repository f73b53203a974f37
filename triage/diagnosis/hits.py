"""How much of the prompts a prefix cache found, and how long the prompts were."""

from collections.abc import Mapping

import msgspec

from triage.diagnosis.thresholds import HIT_BLOCKS, HIT_QUERIES, LENGTH_REQUESTS
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.window import Window

# Their prompt counter leaves out what was found in the cache; those of the others contain it.
_COUNT_ONLY_COMPUTED = frozenset({"llama.cpp"})
_COUNTED = (
    Quantity.PREFIX_QUERIES,
    Quantity.PREFIX_HITS,
    Quantity.PROMPT_TOKENS,
    Quantity.PROMPT_TOKENS_COMPUTED,
    Quantity.PROMPT_TOKENS_CACHED,
    Quantity.PREFIX_BLOCK_HITS,
    Quantity.PREFIX_BLOCK_MISSES,
)


_LOOKED_UP = (Quantity.PREFIX_QUERIES, Quantity.PROMPT_TOKENS_CACHED, Quantity.PREFIX_BLOCK_HITS)


class Hits(msgspec.Struct, frozen=True):
    """asked: prompt tokens looked up; found: of these in the cache.

    blocks: both are counted in blocks of the cache (TensorRT-LLM): their ratio is the same, their number is not.
    """

    asked: float
    found: float
    blocks: bool = False

    @property
    def share(self) -> float:
        return self.found / self.asked if self.asked > 0 else 0.0

    @property
    def enough(self) -> bool:
        """One prompt does not decide the share."""
        return self.asked >= (HIT_BLOCKS if self.blocks else HIT_QUERIES)


def hits_in(window: Window) -> Hits | None:
    """In the window; None when the engine does not count it. A gauge is no count: it may be of one prompt alone."""
    if not any(quantity in window.deltas for quantity in _LOOKED_UP):
        return None
    return _hits({q: value for q in _COUNTED if known(value := window.delta(q))}, window.last.engine)


def hits_before(window: Window) -> Hits | None:
    """Since the process started, up to the window's first reading."""
    return _hits(window.first.values, window.first.engine)


def _hits(counted: Mapping[Quantity, float], engine: str) -> Hits | None:
    asked, found = counted.get(Quantity.PREFIX_QUERIES), counted.get(Quantity.PREFIX_HITS)
    if asked is not None and found is not None:
        return Hits(asked, found)
    cached, computed = counted.get(Quantity.PROMPT_TOKENS_CACHED), counted.get(Quantity.PROMPT_TOKENS_COMPUTED)
    prompt = counted.get(Quantity.PROMPT_TOKENS)
    if cached is None or (computed is None and prompt is None):
        return _blocks(counted)
    if computed is None and prompt is not None:
        computed = prompt if engine in _COUNT_ONLY_COMPUTED else max(prompt - cached, 0.0)
    return Hits(cached + (computed or 0.0), cached)


def _blocks(counted: Mapping[Quantity, float]) -> Hits | None:
    found, missed = counted.get(Quantity.PREFIX_BLOCK_HITS), counted.get(Quantity.PREFIX_BLOCK_MISSES)
    return Hits(found + missed, found, blocks=True) if found is not None and missed is not None else None


def prompt_length_in(window: Window) -> float | None:
    """Mean tokens of a prompt in the window, cached ones included; None with too few requests."""
    mean = window.mean(Quantity.PROMPT_LENGTH, LENGTH_REQUESTS)
    if known(mean):
        return mean
    requests = value_or(window.delta(Quantity.TTFT), 0.0)
    return _length(hits_in(window), window.delta(Quantity.PROMPT_TOKENS), requests)


def prompt_length_before(window: Window) -> float | None:
    """The same since the process started, up to the window's first reading."""
    mean = window.lifetime_mean(Quantity.PROMPT_LENGTH, LENGTH_REQUESTS)
    if known(mean):
        return mean
    answered = window.first.histograms.get(Quantity.TTFT)
    prompt = window.first.get(Quantity.PROMPT_TOKENS)
    return _length(hits_before(window), prompt, answered.count if answered is not None else 0.0)


def _length(hits: Hits | None, prompt: object, requests: float) -> float | None:
    if requests < LENGTH_REQUESTS:
        return None
    tokens = hits.asked if hits is not None and hits.asked > 0 and not hits.blocks else prompt
    return tokens / requests if isinstance(tokens, float | int) and tokens > 0 else None
