"""One event of any inference API, in one vocabulary."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from triage.domain.stream import ServerTimes
from triage.domain.text import clean

# Finish reasons of the APIs, in the words of OpenAI's chat API. "abort" and "error" are no answers.
# OpenAI and Anthropic references; vLLM RequestStatus; SGLang FINISH_ABORT; llama.cpp stop_type; TGI FinishReason.
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "word": "stop",
    "completed": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "limit": "length",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "refusal": "content_filter",
    "aborted": "abort",
    "cancelled": "abort",
    "canceled": "abort",
    "failed": "error",
}
# A count above this is no token count.
_LARGEST_COUNT = 10**12


class ToolPart(NamedTuple):
    """A piece of one tool call. key: which call. whole: its arguments came as an object, not as text."""

    key: str
    name: str = ""
    arguments: str = ""
    whole: bool = False
    id: str = ""


class Usage(NamedTuple):
    """Token counts as the server reports them; None where it does not. prompt includes cached tokens."""

    prompt: int | None = None
    completion: int | None = None
    reasoning: int | None = None


class Chunk(NamedTuple):
    """What one event carries. thought: reasoning took place without text. done: the protocol's terminator.

    finish: in the words of OpenAI's chat API, "" when the event does not finish anything.
    begun, ended: choices that this event belongs to, and those that it finishes, where an answer can have several.
    times: the server's own; a later event's count up to it and replace an earlier one's.
    """

    protocol: str
    reasoning: str = ""
    thought: bool = False
    content: str = ""
    tools: tuple[ToolPart, ...] = ()
    finish: str = ""
    usage: Usage | None = None
    error: str = ""
    model: str = ""
    done: bool = False
    ping: bool = False
    begun: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()
    times: ServerTimes | None = None


def finish_word(reason: Any) -> str:
    """A finish reason in OpenAI's words; "" when there is none."""
    if not isinstance(reason, str) or not reason:
        return ""
    word = clean(reason.lower(), 40)
    return _FINISH.get(word, word)


def text_of(value: Any) -> str:
    """Text given as a string, as an object with `text`, or as a list of such parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return text_of(value.get("text"))
    if isinstance(value, list):
        return "".join(map(text_of, value))
    return ""


def count_of(value: Any) -> int | None:
    """A token count, or None for anything that cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST_COUNT:
        return None
    return int(value)


def object_of(value: Any) -> Mapping[str, Any]:
    """The object itself, or an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def model_of(payload: Mapping[str, Any]) -> str:
    name = payload.get("model")
    return clean(name, 120) if isinstance(name, str) else ""


def error_of(value: Any) -> str:
    """The words of an error given as text or as an object; "" when there is none."""
    if isinstance(value, str):
        return clean(value, 300)
    if isinstance(value, Mapping):
        for key in ("message", "detail", "error", "type", "code"):
            words = value.get(key)
            if isinstance(words, str) and words:
                return clean(words, 300)
        return "an error without a message"
    return ""
