"""OpenAI Responses events and bodies, as vLLM and SGLang serve them."""

from collections.abc import Mapping
from typing import Any

from triage.dialects.streams.chunk import (
    Chunk,
    ToolPart,
    count_of,
    error_of,
    finish_word,
    list_of,
    model_of,
    object_of,
    text_of,
)
from triage.dialects.streams.openai import usage_of

RESPONSES = "openai-responses"
_END = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_REASONING = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta", "response.reasoning.delta")
_VISIBLE = ("response.output_text.delta", "response.refusal.delta")
_NOT_YET = ("queued", "in_progress")
# A custom tool takes free text: nothing about it can be checked.
_FREE_TOOL = "custom_tool_call"


def read_response_event(payload: Mapping[str, Any]) -> Chunk:
    """An event whose `type` begins with 'response.', or a bare {"type": "error"} of this API."""
    kind = payload.get("type")
    key = str(count_of(payload.get("output_index")) or 0)
    if kind in _END:
        return read_response_body(object_of(payload.get("response")), str(kind).removeprefix("response."))
    if kind in _REASONING:
        return Chunk(RESPONSES, reasoning=text_of(payload.get("delta")))
    if kind in _VISIBLE:
        return Chunk(RESPONSES, content=text_of(payload.get("delta")))
    if kind == "response.function_call_arguments.delta":
        return Chunk(RESPONSES, tools=(ToolPart(key, arguments=text_of(payload.get("delta"))),))
    if kind == "response.output_item.added":
        item = object_of(payload.get("item"))
        tools = (_tool(item, key),) if _is_tool(item) else ()
        return Chunk(RESPONSES, tools=tools)
    if kind == "error":
        return Chunk(RESPONSES, error=error_of(payload.get("error")) or error_of(payload))
    return Chunk(RESPONSES, model=model_of(object_of(payload.get("response"))))


def read_response_body(body: Mapping[str, Any], ended: str = "") -> Chunk:
    """A whole response object. ended: completed, incomplete, failed or cancelled; its `status` when not given.

    At the end of a stream this repeats what the deltas carried: the observer takes its text only when
    there were none.
    """
    reasoning = content = ""
    tools: list[ToolPart] = []
    for position, entry in enumerate(list_of(body.get("output"))):
        item = object_of(entry)
        if item.get("type") == "reasoning":
            reasoning += text_of(item.get("content")) or text_of(item.get("summary"))
        elif _is_tool(item):
            tools.append(_tool(item, str(position)))
        else:
            content += text_of(item.get("content"))
    status = ended or str(body.get("status") or "completed")
    reason = object_of(body.get("incomplete_details")).get("reason") if status == "incomplete" else status
    # A body that is asked for while the answer is made, or will be, finishes nothing.
    finish = "" if status in _NOT_YET else finish_word(reason) or "length"
    return Chunk(
        RESPONSES,
        reasoning=reasoning,
        content=content,
        tools=tuple(tools),
        finish="tool_calls" if tools and finish == "stop" else finish,
        usage=usage_of(body),
        error=error_of(body.get("error")) or ("the response failed" if status == "failed" else ""),
        model=model_of(body),
        done=status not in _NOT_YET,
    )


def _is_tool(item: Mapping[str, Any]) -> bool:
    return item.get("type") in ("function_call", "mcp_call", _FREE_TOOL)


def _tool(item: Mapping[str, Any], key: str) -> ToolPart:
    arguments = text_of(item.get("arguments"))
    free = item.get("type") == _FREE_TOOL
    return ToolPart(key, text_of(item.get("name")), arguments, whole=free, id=text_of(item.get("call_id")))
