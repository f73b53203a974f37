"""A JSON answer where a metrics page was meant: whose it is, and where to look instead."""

from typing import Any

import msgspec

# TensorRT-LLM's iteration statistics; any two of these keys are enough (metrics.md 6).
_ITERATION_KEYS = frozenset(
    {"iter", "iterLatencyMS", "numActiveRequests", "numQueuedRequests", "kvCacheStats", "inflightBatchingStats"}
)
_ENOUGH_KEYS = 2
_DRAINING = (
    "JSON, iteration statistics as TensorRT-LLM serves them at /metrics, where every reader takes them away: "
    "use /prometheus/metrics"
)


def drains(body: bytes) -> bool:
    """Whether this is TensorRT-LLM's JSON route: reading it again would take statistics from whoever needs them.

    An idle engine answers with an empty list; no other known metrics route does.
    """
    data = _decoded(body) if body[:64].lstrip().startswith(b"[") else None
    return isinstance(data, list) and (not data or _is_iteration(data[0]))


def told_of_json(body: bytes) -> str:
    """One sentence about a JSON body, '' when it is none."""
    if not body[:64].lstrip().startswith((b"{", b"[")):
        return ""
    if drains(body):
        return _DRAINING
    data = _decoded(body)
    if isinstance(data, dict) and isinstance(data.get("models"), list):
        return "JSON, a list of models like Ollama's /api/ps, which has no metrics page: as ps.json it is read"
    return "" if data is None else "JSON, not the Prometheus text format"


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _is_iteration(item: Any) -> bool:
    return isinstance(item, dict) and len(_ITERATION_KEYS & item.keys()) >= _ENOUGH_KEYS
