"""Chat and text completions on the wire: requests read, chunks and bodies written."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from triage.lab.batching.request import Request
from triage.lab.pages.forms import Flavour

_THOUGHTS = ("Let", " me", " look", " at", " this", " again", ",", " step", " by", " step", ".", " First", " then", ".")
_WORDS = ("The", " answer", " has", " a", " few", " parts", ",", " and", " each", " of", " them", " is", " short", ".")

_COUNTER = itertools.count(1)


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False


class CompletionRequest(msgspec.Struct, frozen=True):
    """The fields of both endpoints that this engine obeys; it ignores all others, as engines do."""

    model: str | None = None
    messages: list[dict[str, Any]] | None = None
    prompt: str | list[str] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    @property
    def token_limit(self) -> int | None:
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def thinks(self) -> bool:
        """False when the client turned reasoning off in the chat template."""
        return (self.chat_template_kwargs or {}).get("enable_thinking") is not False

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


def read_request(body: bytes, chat: bool) -> CompletionRequest:
    """ValueError, saying what is wrong, for a body that no engine would accept."""
    try:
        request = msgspec.json.decode(body, type=CompletionRequest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"the body cannot be read: {error}") from error
    if chat and not request.messages:
        raise ValueError("messages: at least one is needed")
    if not chat and not request.prompt:
        raise ValueError("prompt: a text is needed")
    if request.token_limit is not None and request.token_limit < 1:
        raise ValueError("max_tokens: must be at least 1")
    return request


def prompt_tokens(request: CompletionRequest) -> int:
    """About four characters a token, and four tokens around every message for the chat template."""
    if request.messages is None:
        texts = [request.prompt] if isinstance(request.prompt, str) else request.prompt or []
        return max(sum([len(text) for text in texts]) // 4, 1)
    return 3 + sum([4 + _characters(message.get("content")) // 4 for message in request.messages])


def _characters(content: object) -> int:
    if isinstance(content, str):
        return len(content)
    if isinstance(content, list):
        return sum([len(str(part.get("text", ""))) for part in content if isinstance(part, dict)])
    return 0


class Spoiled(msgspec.Struct, frozen=True):
    """What an engine's parsers do to one answer. blank: its text is lost. unparsed: a tool call stays text."""

    blank: bool = False
    unparsed: bool = False


class AnswerWriter:
    """Turns the tokens of one answer into the bytes of one HTTP body."""

    def __init__(
        self, flavour: Flavour, model: str, chat: bool, request: Request, spoiled: Spoiled | None = None
    ) -> None:
        self._flavour = flavour
        self._model = model
        self._chat = chat
        self._request = request
        self._spoiled = spoiled or Spoiled()
        self._id = f"{'chatcmpl' if chat else 'cmpl'}-{next(_COUNTER):08x}"
        self._created = int(time.time())
        self._reasoning_field = "reasoning_content" if flavour is Flavour.SGLANG else "reasoning"

    @property
    def finish_reason(self) -> str:
        reason = self._request.finish_reason
        return "stop" if reason == "tool_calls" and (self._spoiled.unparsed or self._spoiled.blank) else reason

    def opening(self) -> list[bytes]:
        """The role chunk, which leaves together with the first token."""
        return [self._chunk({"role": "assistant", "content": ""})] if self._chat else []

    def token(self, index: int) -> bytes:
        """One token's event; b"" for a token of which the client sees nothing."""
        delta = self._delta(index)
        return self._chunk(delta) if delta else b""

    def closing(self, usage: bool) -> Iterator[bytes]:
        """The finish chunk, the usage chunk when asked for, and the terminator."""
        last = {self._reasoning_field: None} if self._flavour is Flavour.SGLANG else {"content": ""}
        yield self._chunk(last if self._chat else {"content": ""}, self.finish_reason)
        if usage:
            yield _event({**self._head("chunk"), "choices": [], "usage": self._usage()})
        yield b"data: [DONE]\n\n"

    def body(self) -> bytes:
        """The whole answer at once."""
        deltas = [self._delta(index) for index in range(self._request.output_tokens)]
        visible = "".join([delta.get("content") or "" for delta in deltas])
        reasoning = "".join([delta.get(self._reasoning_field) or "" for delta in deltas])
        calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": self.finish_reason}
        if self._chat:
            choice["message"] = {
                "role": "assistant",
                "content": visible or None,
                self._reasoning_field: reasoning or None,
                **({"tool_calls": [_joined(calls)]} if calls else {}),
            }
        else:
            choice["text"] = visible
        return msgspec.json.encode({**self._head(""), "choices": [choice], "usage": self._usage()})

    def _delta(self, index: int) -> dict[str, Any]:
        request = self._request
        thought = request.reasoning_tokens
        if index < thought:
            return {self._reasoning_field: _THOUGHTS[index % len(_THOUGHTS)]} if request.shows_reasoning else {}
        place = index - thought
        if self._spoiled.blank:
            return {}
        if not request.calls_tool:
            return {"content": _WORDS[place % len(_WORDS)]}
        last = request.output_tokens - thought - 1
        if self._spoiled.unparsed:
            return {"content": _markup(place, last)}
        return {"tool_calls": [_call_piece(place, last)]}

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": finish_reason}
        if self._chat:
            choice["delta"] = delta
        else:
            choice["text"] = delta.get("content") or ""
        return _event({**self._head("chunk"), "choices": [choice]})

    def _head(self, form: str) -> dict[str, Any]:
        kind = ".".join(["chat.completion", *([form] if form else [])]) if self._chat else "text_completion"
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}

    def _usage(self) -> dict[str, Any]:
        request = self._request
        output, prompt = request.output_tokens, request.prompt_tokens
        reasoning = min(output, request.reasoning_tokens)
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "total_tokens": prompt + output,
            "completion_tokens": output,
        }
        if self._flavour is Flavour.SGLANG:
            usage["reasoning_tokens"] = reasoning
            if not reasoning:
                return usage  # SGLang 0.5.23 gives the details only when they are not zero
        if self._chat:
            usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
        return usage


def _call_piece(place: int, last: int) -> dict[str, Any]:
    """One token of a tool call: its name first, then its arguments as a JSON text in pieces."""
    if place == 0:
        return {
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path": "' if last > 0 else "{}"},
        }
    piece = '"}' if place == last else _WORDS[place % len(_WORDS)]
    return {"index": 0, "function": {"arguments": piece}}


def _joined(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    arguments = "".join([piece["function"]["arguments"] for piece in pieces])
    first = {key: value for key, value in pieces[0].items() if key != "index"}
    return {**first, "function": {"name": pieces[0]["function"]["name"], "arguments": arguments}}


def _markup(place: int, last: int) -> str:
    """The same call as the model wrote it (Hermes form)."""
    if place == 0:
        return '<tool_call>\n{"name": "read_file", "arguments": {"path": "'
    return '"}}\n</tool_call>' if place == last else _WORDS[place % len(_WORDS)]


def _event(payload: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(payload) + b"\n\n"
