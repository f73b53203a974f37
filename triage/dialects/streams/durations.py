"""The server's own times in an answer: Ollama's durations, llama.cpp's timings (metrics.md 8)."""

from collections.abc import Mapping
from typing import Any

from triage.dialects.streams.chunk import count_of
from triage.domain.stream import ServerTimes

_NS, _MS = 1e-9, 1e-3
# An answer of more than a week is a wrong number.
_LONGEST_S = 7 * 86400.0
# Phases are measured by two processes: they may add up to a little more than the whole, not to another time.
_ROUNDING_S = 0.05
_ROUNDING = 0.02


def ollama_times(payload: Mapping[str, Any]) -> ServerTimes | None:
    """From the last object of /api/chat and /api/generate; None when it has none or they contradict one another.

    Fields with the value 0 are left out by the server: a model that was loaded, a prompt that was cached.
    """
    if "total_duration" not in payload:
        return None
    total = _seconds(payload.get("total_duration"), _NS)
    phases = [_seconds(payload.get(key, 0), _NS) for key in ("load_duration", "prompt_eval_duration", "eval_duration")]
    tokens = count_of(payload.get("eval_count", 0))
    load, prompt, decode = phases
    if not total or load is None or prompt is None or decode is None or tokens is None:
        return None
    if load + prompt + decode > total * (1 + _ROUNDING) + _ROUNDING_S:
        return None
    return ServerTimes(prompt, decode, tokens, load, total)


def llamacpp_times(payload: Mapping[str, Any]) -> ServerTimes | None:
    """From `timings` of llama.cpp's own routes and of its OpenAI ones. It gives neither a total nor a wait."""
    timings = payload.get("timings")
    if not isinstance(timings, Mapping):
        return None
    prompt, decode = (_seconds(timings.get(key), _MS) for key in ("prompt_ms", "predicted_ms"))
    tokens = count_of(timings.get("predicted_n"))
    if prompt is None or decode is None or tokens is None or not prompt + decode:
        return None
    return ServerTimes(prompt, decode, tokens)


def _seconds(value: Any, unit: float) -> float | None:
    """A duration, or None for anything that cannot be one: negative, not finite, longer than a week."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LONGEST_S / unit:
        return None
    return value * unit
