"""What requests of an evidence folder have in common from their beginning. Only lengths leave this file."""

from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from typing import Any

import msgspec

from triage.dialects.logs.usage import reuse_of
from triage.domain.prompts import PromptPair, Reuse

# What the model sees first comes first, whatever the order in the body.
_PARTS = ("system", "instructions", "tools", "messages", "prompt", "input", "contents")
_MOST_PAIRS = 10
_LONGEST = 4 * 1024 * 1024
# Two prompts agree again when so many characters in a row are equal, at most so far behind the first difference.
_AGREE, _APART = 32, 512


def read_reuse(data: Any, source: str) -> list[Reuse]:
    """A list of requests with their prompt and cached tokens. Raises ValueError when it has none."""
    del source
    items = data if isinstance(data, list) else [data]
    found = [reuse for item in items if (reuse := reuse_of(item)) is not None]
    if not found:
        raise ValueError("no request with prompt and cached tokens in it")
    return found


def prompt_text(body: Any) -> bytes:
    """The prompt of a request body as one text; empty when it has none."""
    if not isinstance(body, Mapping):
        return b""
    return b"\n".join(msgspec.json.encode(body[part]) for part in _PARTS if body.get(part))[:_LONGEST]


def compare_prompts(prompts: Sequence[tuple[str, bytes]]) -> tuple[PromptPair, ...]:
    """Each two of them, at most ten pairs; equal ones and empty ones are left out."""
    pairs = ((a, b) for a, b in combinations(prompts, 2) if a[1] and b[1] and a[1] != b[1])
    return tuple(_pair(first, second) for first, second in islice(pairs, _MOST_PAIRS))


def _pair(first: tuple[str, bytes], second: tuple[str, bytes]) -> PromptPair:
    one, other = first[1], second[1]
    shared = _run(one, other)
    changed, rest = 0, 0
    low = other[shared : shared + _APART + _AGREE]
    for skipped in range(_APART):
        piece = one[shared + skipped : shared + skipped + _AGREE]
        if len(piece) < _AGREE:
            break
        found = low.find(piece)
        if found >= 0:
            changed = max(skipped, found)
            rest = _run(one[shared + skipped :], other[shared + found :])
            break
    return PromptPair(first[0], second[0], min(len(one), len(other)), shared, changed, rest)


def _run(one: bytes, other: bytes) -> int:
    """How many bytes are equal from the beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
