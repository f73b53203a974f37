"""Anthropic Messages events and bodies, as vLLM, SGLang and gateways serve them."""

from collections.abc import Mapping
from typing import Any

from triage.dialects.streams.chunk import (
    Chunk,
    ToolPart,
    Usage,
    count_of,
    error_of,
    finish_word,
    list_of,
    model_of,
    object_of,
    text_of,
)

MESSAGES = "anthropic-messages"
_TOOL_BLOCKS = ("tool_use", "server_tool_use", "mcp_tool_use")
TYPES = frozenset(
    {
        "message",
        "message_start",
        "message_delta",
        "message_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "ping",
        "error",
    }
)


def read_anthropic(payload: Mapping[str, Any]) -> Chunk:
    """An event or a body whose `type` is one of TYPES."""
    kind = payload.get("type")
    key = str(count_of(payload.get("index")) or 0)
    match kind:
        case "message_start":
            message = object_of(payload.get("message"))
            usage = _usage(message.get("usage"))
            # Its output_tokens is a placeholder; the true count comes with message_delta.
            return Chunk(MESSAGES, usage=usage and usage._replace(completion=None), model=model_of(message))
        case "content_block_start":
            return _block(object_of(payload.get("content_block")), key)
        case "content_block_delta":
            return _delta(object_of(payload.get("delta")), key)
        case "message_delta":
            delta = object_of(payload.get("delta"))
            return Chunk(MESSAGES, finish=finish_word(delta.get("stop_reason")), usage=_usage(payload.get("usage")))
        case "message_stop":
            return Chunk(MESSAGES, done=True)
        case "ping":
            return Chunk(MESSAGES, ping=True)
        case "error":
            return Chunk(MESSAGES, error=error_of(payload.get("error")) or error_of(payload))
        case "message":
            return _body(payload)
    return Chunk(MESSAGES)


def _block(block: Mapping[str, Any], key: str) -> Chunk:
    kind = block.get("type")
    if kind in _TOOL_BLOCKS:
        # The input is {} here and follows as text; a server that does not stream it gives it whole.
        return Chunk(MESSAGES, tools=(ToolPart(key, text_of(block.get("name")), whole=bool(block.get("input"))),))
    if kind == "redacted_thinking":
        return Chunk(MESSAGES, thought=True)
    if kind == "thinking":
        return Chunk(MESSAGES, reasoning=text_of(block.get("thinking")))
    return Chunk(MESSAGES, content=text_of(block.get("text")))


def _delta(delta: Mapping[str, Any], key: str) -> Chunk:
    match delta.get("type"):
        case "thinking_delta":
            return Chunk(MESSAGES, reasoning=text_of(delta.get("thinking")))
        case "text_delta":
            return Chunk(MESSAGES, content=text_of(delta.get("text")))
        case "input_json_delta":
            return Chunk(MESSAGES, tools=(ToolPart(key, arguments=text_of(delta.get("partial_json"))),))
    return Chunk(MESSAGES)  # signature_delta and citations are no tokens


def _body(payload: Mapping[str, Any]) -> Chunk:
    blocks = [_block(object_of(item), str(n)) for n, item in enumerate(list_of(payload.get("content")))]
    tools = tuple(tool._replace(whole=True) for block in blocks for tool in block.tools)
    return Chunk(
        MESSAGES,
        reasoning="".join(block.reasoning for block in blocks),
        thought=any(block.thought for block in blocks),
        content="".join(block.content for block in blocks),
        tools=tools,
        finish=finish_word(payload.get("stop_reason")),
        usage=_usage(payload.get("usage")),
        model=model_of(payload),
        done=True,
    )


def _usage(value: Any) -> Usage | None:
    """input_tokens leaves out what came from the cache and what was written to it."""
    usage = object_of(value)
    prompt = count_of(usage.get("input_tokens"))
    if prompt is not None:
        prompt += sum(count_of(usage.get(k)) or 0 for k in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    completion = count_of(usage.get("output_tokens"))
    return None if prompt is None and completion is None else Usage(prompt, completion)
