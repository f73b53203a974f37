"""Which API a payload belongs to, told from the payload alone."""

from collections.abc import Mapping
from typing import Any

from triage.dialects.streams.anthropic import TYPES, read_anthropic
from triage.dialects.streams.chunk import Chunk, error_of
from triage.dialects.streams.native import read_llamacpp, read_ollama
from triage.dialects.streams.openai import read_openai
from triage.dialects.streams.responses import read_response_body, read_response_event


def read_payload(payload: Mapping[str, Any], event: str = "") -> Chunk | None:
    """One decoded event or body in the common vocabulary, or None when no known API writes such a thing.

    event: the name given by an `event:` line.
    """
    kind = payload.get("type")
    if isinstance(kind, str):
        if kind.startswith("response.") or (kind == "error" and "sequence_number" in payload):
            return read_response_event(payload)
        if kind in TYPES:
            return read_anthropic(payload)
    if payload.get("error") or payload.get("object") == "error" or event == "error":
        # vLLM, SGLang, Dynamo, LiteLLM: HTTP 200 was sent long ago, so the error comes as an event.
        return Chunk("", error=error_of(payload.get("error")) or error_of(payload))
    if isinstance(payload.get("choices"), list):
        return read_openai(payload)
    if payload.get("object") == "response" and isinstance(payload.get("output"), list):
        return read_response_body(payload)
    if isinstance(payload.get("done"), bool):
        return read_ollama(payload)
    if isinstance(payload.get("stop"), bool) and isinstance(payload.get("content"), str):
        return read_llamacpp(payload)
    return None
