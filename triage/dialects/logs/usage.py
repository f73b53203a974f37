"""Token usage of single requests, as gateways and people log it: how much of a prompt the prefix cache found."""

from collections.abc import Mapping
from typing import Any

import msgspec

from triage.domain.prompts import Reuse
from triage.domain.text import clean

# The newest records are kept, and of very long lines none.
_MOST_RECORDS = 2000
_LONGEST_LINE = 16 * 1024
_NEEDLES = ("cached_tokens", "cache_read_input_tokens")
# Who sent it, surest name first; gateways and libraries use all of them.
_SENDERS = ("client", "conversation", "session", "session_id", "user_agent", "user-agent", "user", "key_alias")


def read_usage(text: str) -> tuple[Reuse, ...]:
    """JSON lines that say how much of each prompt was cached, the newest ones, oldest first."""
    starts: set[int] = set()
    for needle in _NEEDLES:
        end, left = len(text), _MOST_RECORDS
        while left and (at := text.rfind(needle, 0, end)) >= 0:
            end = text.rfind("\n", 0, at) + 1
            starts.add(end)
            left -= 1
    found = (_decoded(text, start) for start in sorted(starts)[-_MOST_RECORDS:])
    return tuple(reuse for reuse in found if reuse is not None)


def _decoded(text: str, start: int) -> Reuse | None:
    """The record on the line that begins there."""
    stop = text.find("\n", start, start + _LONGEST_LINE)
    line = text[start : stop if stop >= 0 else start + _LONGEST_LINE].strip()
    try:
        return reuse_of(msgspec.json.decode(line))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def reuse_of(record: Any) -> Reuse | None:
    """One record of token usage, flat or with a `usage` object as OpenAI and Anthropic write it; None when it is none.

    Anthropic's input tokens do not contain the cached ones.
    """
    if not isinstance(record, Mapping):
        return None
    usage = record.get("usage")
    counts: Mapping[str, Any] = usage if isinstance(usage, Mapping) else record
    details = counts.get("prompt_tokens_details", counts.get("input_tokens_details"))
    cached = _whole((details if isinstance(details, Mapping) else counts).get("cached_tokens"))
    prompt = _whole(counts.get("prompt_tokens", counts.get("input_tokens")))
    read = _whole(counts.get("cache_read_input_tokens"))
    if read is not None and prompt is not None:
        cached, prompt = read, prompt + read + (_whole(counts.get("cache_creation_input_tokens")) or 0)
    if prompt is None or cached is None or cached > prompt:
        return None
    sender = next((name for key in _SENDERS if (name := _name(record.get(key)))), "")
    return Reuse(sender, prompt, cached, _whole(record.get("turn")))


def _name(value: Any) -> str:
    return clean(value, 80) if isinstance(value, str) else ""


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**12:
        return None
    return int(value)
