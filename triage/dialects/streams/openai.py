"""OpenAI's chat and legacy completion events, with the reasoning fields that servers add.

Where reasoning appears: vLLM `reasoning_content`, both, then `reasoning`; SGLang, TensorRT-LLM,
llama.cpp, Dynamo `reasoning_content`; LiteLLM and gateways also `thinking_blocks`; OpenRouter
`reasoning_details`. Servers that send two of them send the same text twice: the first one counts.
"""

from collections.abc import Mapping
from typing import Any

from triage.dialects.streams.chunk import (
    Chunk,
    ToolPart,
    Usage,
    count_of,
    finish_word,
    list_of,
    model_of,
    object_of,
    text_of,
)
from triage.dialects.streams.durations import llamacpp_times

CHAT = "openai-chat"
COMPLETIONS = "openai-completions"
# n > this is no serving request.
_MOST_CHOICES = 64


def read_openai(payload: Mapping[str, Any]) -> Chunk:
    """A chunk, or a whole body, that has `choices`."""
    reasoning = content = finish = ""
    thought = False
    tools: list[ToolPart] = []
    begun: list[int] = []
    ended: list[int] = []
    protocol = COMPLETIONS if str(payload.get("object", "")).startswith("text_completion") else CHAT
    for position, item in enumerate(list_of(payload.get("choices"))[:_MOST_CHOICES]):
        choice = object_of(item)
        index = count_of(choice.get("index"))
        place = position if index is None else index
        message = choice.get("delta", choice.get("message"))
        if isinstance(message, Mapping):
            words, seen = _reasoning(message)
            reasoning += words
            thought = thought or seen
            content += _visible(message)
            tools += _tools(message, place)
        else:
            protocol = COMPLETIONS
            content += text_of(choice.get("text"))
        word = finish_word(choice.get("finish_reason"))
        finish = _worse(finish, word)
        begun.append(place)
        if word:
            ended.append(place)
    return Chunk(
        protocol=protocol,
        reasoning=reasoning,
        thought=thought,
        content=content,
        tools=tuple(tools),
        finish=finish,
        usage=usage_of(payload),
        model=model_of(payload),
        begun=tuple(begun),
        ended=tuple(ended),
        times=llamacpp_times(payload),
    )


def _worse(one: str, other: str) -> str:
    """Of the finish reasons of several choices the one that is no answer, else the first."""
    return other if not one or other in ("abort", "error") else one


def usage_of(payload: Mapping[str, Any]) -> Usage | None:
    """`usage` of the chat and Responses APIs; without it llama.cpp's `timings`, which count the same tokens."""
    usage = payload.get("usage")
    if isinstance(usage, Mapping):
        details = object_of(usage.get("completion_tokens_details")) or object_of(usage.get("output_tokens_details"))
        reasoning = count_of(details.get("reasoning_tokens"))
        return Usage(
            prompt=count_of(usage.get("prompt_tokens", usage.get("input_tokens"))),
            completion=count_of(usage.get("completion_tokens", usage.get("output_tokens"))),
            # SGLang 0.5.3 and later: at the top level, zero when it was not counted.
            reasoning=reasoning if reasoning is not None else count_of(usage.get("reasoning_tokens")),
        )
    timings = payload.get("timings")
    if isinstance(timings, Mapping):
        computed, cached = count_of(timings.get("prompt_n")), count_of(timings.get("cache_n"))
        prompt = None if computed is None else computed + (cached or 0)
        return Usage(prompt, count_of(timings.get("predicted_n")))
    return None


def _reasoning(message: Mapping[str, Any]) -> tuple[str, bool]:
    """Text of the first reasoning field that has any, and whether reasoning without text was seen."""
    for key in ("reasoning_content", "reasoning"):
        text = text_of(message.get(key))
        if text:
            return text, False
    details = [object_of(item) for item in list_of(message.get("reasoning_details"))]
    blocks = [object_of(item) for item in list_of(message.get("thinking_blocks"))]
    parts = [object_of(p) for p in list_of(message.get("content")) if object_of(p).get("type") in _THINKING_PARTS]
    text = "".join(text_of(item.get("text")) or text_of(item.get("summary")) for item in details)
    text = text or "".join(text_of(item.get("thinking")) for item in blocks + parts)
    return text, not text and any(item.get("data") for item in details + blocks)


# Mistral writes reasoning as a part of the content list; LiteLLM passes Anthropic's type on.
_THINKING_PARTS = ("thinking", "reasoning", "redacted_thinking")


def _visible(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in content if object_of(part).get("type") not in _THINKING_PARTS]
    return text_of(content) or text_of(message.get("refusal"))


def _tools(message: Mapping[str, Any], choice: int) -> list[ToolPart]:
    parts = []
    for position, item in enumerate(list_of(message.get("tool_calls"))):
        call = object_of(item)
        index = count_of(call.get("index"))
        part = _tool(f"{choice}.{position if index is None else index}", call.get("function"))
        parts.append(part._replace(id=text_of(call.get("id"))))
    if isinstance(message.get("function_call"), Mapping):
        parts.append(_tool(f"{choice}.f", message["function_call"]))
    return parts


def _tool(key: str, function: Any) -> ToolPart:
    arguments = object_of(function).get("arguments")
    return ToolPart(
        key, text_of(object_of(function).get("name")), text_of(arguments), whole=isinstance(arguments, Mapping)
    )
