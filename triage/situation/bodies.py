"""Bodies that a person kept: requests, refusals, model lists, counts of answers. Texts are counted, never kept."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from triage.domain.stream import AnswerCounts, ErrorAnswer, RequestReading, ServedModel
from triage.domain.text import clean

_PROMPTS = ("messages", "prompt", "input", "inputs", "contents")
# The same limit in the words of the APIs: OpenAI, Responses, TGI, llama.cpp; Ollama has it under `options`.
_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens", "n_predict", "num_predict")
# vLLM and SGLang; Ollama and OpenRouter; gateways.
_CONTEXTS = ("max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens", "n_ctx")
_FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter", "abort", "error"})
_TOTALS = frozenset({"completions", "answers", "responses", "requests", "total", "chats"})
_STATUS_IN_NAME = re.compile(r"(?<!\d)([45]\d\d)(?!\d)")


def read_request(data: Any, source: str) -> RequestReading | None:
    """A request body of any of the inference APIs, or None when it is none."""
    if not isinstance(data, Mapping) or not any(key in data for key in _PROMPTS):
        return None
    tools = data.get("tools", data.get("functions"))
    choice = data.get("tool_choice", data.get("function_call"))
    refused = choice == "none" or (isinstance(choice, Mapping) and choice.get("type") == "none")
    options = data.get("options")
    limits = (data, options if isinstance(options, Mapping) else {})
    limit = next((n for body in limits for key in _LIMITS if (n := _whole(body.get(key))) is not None), None)
    return RequestReading(
        source=source,
        model=_text(data.get("model"), 120),
        offers_tools=bool(tools) and not refused,
        tools=tuple(name for tool in tools if (name := _tool_name(tool))) if isinstance(tools, list) else (),
        max_tokens=limit,
    )


def read_error(data: Any, source: str) -> ErrorAnswer | None:
    """The body of a request that was refused or failed, or None when it is none. A status may stand in the file name.

    Bodies: OpenAI and Anthropic `error` objects, vLLM's flat one, Ollama's text, FastAPI's `detail`.
    """
    if not isinstance(data, Mapping):
        return None
    inner = data.get("error")
    if isinstance(inner, Mapping):
        body: Mapping[str, Any] = inner
    elif isinstance(inner, str) or data.get("object") == "error" or ("message" in data and "code" in data):
        body = data
    elif "detail" in data and len(data) <= 2:
        body = {"message": _detail(data["detail"])}
    else:
        return None
    message = _text(body.get("message"), 400) or _text(inner, 400) or _text(body.get("detail"), 400)
    word = _text(body.get("type"), 60) or _text(body.get("code"), 60)
    if not message and not word:
        return None
    named = _STATUS_IN_NAME.search(source)
    coded = (body.get("code"), body.get("status"), data.get("code"), data.get("status"), named and int(named[1]))
    status = next((n for code in coded if (n := _whole(code)) is not None and 400 <= n <= 599), None)
    return ErrorAnswer(source, status, message or word, word)


def read_models(data: Any, source: str) -> list[ServedModel]:
    """A model list: OpenAI's `data`, or Ollama's `models`. Raises ValueError when it lists nothing."""
    items = data.get("data", data.get("models")) if isinstance(data, Mapping) else data
    if not isinstance(items, list):
        raise ValueError("no list of models in it")
    found = []
    for item in items:
        name = _text(item.get("id") or item.get("name") or item.get("model"), 120) if isinstance(item, Mapping) else ""
        if name:
            meta = item.get("meta")
            places = (item, meta if isinstance(meta, Mapping) else {})
            context = next((n for place in places for key in _CONTEXTS if (n := _whole(place.get(key)))), None)
            found.append(ServedModel(source, name, context))
    if not found:
        raise ValueError("it lists no model")
    return found


def read_counts(data: Any, source: str) -> list[AnswerCounts]:
    """Answers without content by finish reason: {"chat_completions": N, "content_empty": {"finish_stop_…": N}}."""
    if not isinstance(data, Mapping):
        raise ValueError("expected an object of counts")
    empty: Counter[str] = Counter()
    for key, value in data.items():
        if "empty" in str(key).lower() and isinstance(value, Mapping):
            for name, number in value.items():
                count = _whole(number)
                if count is not None:
                    empty[_finish_in(str(name))] += count
    if not empty:
        raise ValueError("no counts of empty answers in it")
    totals = (_whole(value) for key, value in data.items() if not _TOTALS.isdisjoint(_words(str(key))))
    total = next((number for number in totals if number is not None), None)
    return [AnswerCounts(source, None if total is None else float(total), {k: float(n) for k, n in empty.items()})]


def _finish_in(name: str) -> str:
    """The finish reason in the name of a count; "" when there is none."""
    lowered = name.lower()
    for reason in ("tool_calls", "content_filter"):
        if reason in lowered:
            return reason
    return next((word for word in _words(lowered) if word in _FINISHES), "")


def _words(name: str) -> list[str]:
    return re.split(r"[^a-z]+", name.lower())


def _tool_name(tool: Any) -> str:
    """OpenAI's chat API puts the name inside `function`, Anthropic and Responses beside the type."""
    if not isinstance(tool, Mapping):
        return ""
    function = tool.get("function")
    return _text(function.get("name") if isinstance(function, Mapping) else tool.get("name"), 80)


def _detail(value: Any) -> str:
    """FastAPI: a text, or a list of objects with `msg`."""
    if isinstance(value, list):
        return "; ".join(str(item.get("msg", "")) for item in value[:3] if isinstance(item, Mapping))
    return value if isinstance(value, str) else ""


def _text(value: Any, limit: int) -> str:
    return clean(value, limit) if isinstance(value, str) else ""


def _whole(value: Any) -> int | None:
    """A count or a status, also when it is written as text; None for anything negative."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:12])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**12:
        return None
    return int(value)
