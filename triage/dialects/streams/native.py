"""The engines' own APIs: Ollama chat and generate (newline-delimited JSON), llama.cpp completion."""

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
from triage.dialects.streams.durations import llamacpp_times, ollama_times

OLLAMA = "ollama"
LLAMACPP = "llama.cpp"


def read_ollama(payload: Mapping[str, Any]) -> Chunk:
    """A line, or a whole body, that has a boolean `done`. eval_count includes thinking."""
    message = payload.get("message")
    source = message if isinstance(message, Mapping) else payload
    done = payload.get("done") is True
    tools = tuple(
        ToolPart(str(n), text_of(object_of(object_of(call).get("function")).get("name")), whole=True)
        for n, call in enumerate(list_of(source.get("tool_calls")))
    )
    finish = (finish_word(payload.get("done_reason")) or "stop") if done else ""
    return Chunk(
        OLLAMA,
        reasoning=text_of(source.get("thinking")),
        content=text_of(source.get("content") if source is message else source.get("response")),
        tools=tools,
        finish=finish,
        usage=Usage(count_of(payload.get("prompt_eval_count")), count_of(payload.get("eval_count"))) if done else None,
        model=model_of(payload),
        done=done,
        times=ollama_times(payload) if done else None,
    )


def read_llamacpp(payload: Mapping[str, Any]) -> Chunk:
    """An event, or a whole body, with `content` and a boolean `stop` (POST /completion)."""
    done = payload.get("stop") is True
    finish = ""
    if done:
        # Before stop_type there were three booleans.
        finish = finish_word(payload.get("stop_type")) or ("length" if payload.get("stopped_limit") else "stop")
        finish = "abort" if finish == "none" else finish
    return Chunk(
        LLAMACPP,
        content=text_of(payload.get("content")),
        finish=finish,
        usage=Usage(count_of(payload.get("tokens_evaluated")), count_of(payload.get("tokens_predicted")))
        if done
        else None,
        model=model_of(payload),
        done=done,
        times=llamacpp_times(payload) if done else None,
    )
