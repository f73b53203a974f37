"""One streamed answer: its milestones and whether it was complete."""

from enum import StrEnum

import msgspec

# Source of what our own probe measured. Its token budget is ours, not a user's.
OWN_PROBE = "probe"


class Completeness(StrEnum):
    """diagnosis.md 1. HTTP 200 and [DONE] do not mean complete."""

    COMPLETE = "complete"
    LENGTH_IN_TOOL = "length in tool call"
    ABORTED = "aborted"
    ERROR = "error inside the stream"
    TRUNCATED = "truncated"
    NO_TERMINATOR = "no terminator"
    EMPTY = "empty"
    REASONING_ATE_BUDGET = "reasoning ate the budget"
    BILLED_NOT_SHOWN = "billed, not shown"
    OPEN = "not finished when the recording ended"


class ServerTimes(msgspec.Struct, frozen=True):
    """How the server says it spent its time on one answer, in seconds. Its own clock, without the way to the client.

    total_s: from the request's arrival to the answer's end, None where the server does not say. load_s: until the
    model was in memory, waiting for room there included. prompt_s: prefill. decode_s: all tokens after it.
    decode_tokens: how many those are.
    """

    prompt_s: float
    decode_s: float
    decode_tokens: int
    load_s: float = 0.0
    total_s: float | None = None

    @property
    def queue_s(self) -> float | None:
        """What no phase accounts for: waiting for a free slot, and the little that preparing a request takes."""
        if self.total_s is None:
            return None
        return max(self.total_s - self.load_s - self.prompt_s - self.decode_s, 0.0)

    @property
    def before_s(self) -> float:
        """Before the first token, as far as the server says."""
        return self.load_s + self.prompt_s + (self.queue_s or 0.0)

    @property
    def whole_s(self) -> float:
        """The answer's time: the total, or the sum of the known phases."""
        return self.before_s + self.decode_s

    @property
    def per_token_s(self) -> float | None:
        return self.decode_s / self.decode_tokens if self.decode_tokens else None


class StreamReading(msgspec.Struct, frozen=True):
    """Seconds count from the request; None where the mark was never reached or not recorded.

    Texts are counted, never kept: reasoning_chars and visible_chars are numbers of characters.
    *_tokens come from the usage field, never from counting chunks. chunks: data events that carried
    text of either channel.
    """

    source: str
    target: str
    model: str
    protocol: str
    completeness: Completeness
    timed: bool
    first_event_s: float | None = None
    first_reasoning_s: float | None = None
    last_reasoning_s: float | None = None
    first_visible_s: float | None = None
    first_tool_s: float | None = None
    last_token_s: float | None = None
    closed_s: float | None = None
    chunks: int = 0
    reasoning_chars: int = 0
    visible_chars: int = 0
    tool_calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish_reason: str | None = None
    error: str | None = None
    events: int = 0
    status: int | None = None
    detail: str = ""
    markup: str = ""  # tool-call marker in the visible text, outside of code and quotes
    written_call: str = ""  # name of a function that is called in the visible text
    hidden_call: str = ""  # the same in the reasoning
    broken_arguments: str = ""  # which tool call's arguments are no JSON object, in words
    whole: bool = False  # one body, not a stream
    left: bool = False  # the recording says that the client itself ended it
    server: ServerTimes | None = None  # where the answer carries the server's own times


class RequestReading(msgspec.Struct, frozen=True):
    """What one request asked for; its texts are not kept.

    offers_tools: None where the body does not say. tools: their names, where it gives them.
    max_tokens: the most the answer may have, reasoning included.
    """

    source: str
    model: str
    offers_tools: bool | None = None
    tools: tuple[str, ...] = ()
    max_tokens: int | None = None


class ErrorAnswer(msgspec.Struct, frozen=True):
    """A body that says why a request got no answer. word: its type or code, as sent."""

    source: str
    status: int | None
    message: str
    word: str = ""


class AnswerCounts(msgspec.Struct, frozen=True):
    """Answers counted by somebody. total: all of them, or None. empty: those without content, by finish reason."""

    source: str
    total: float | None
    empty: dict[str, float] = {}


class ServedModel(msgspec.Struct, frozen=True):
    """A model as a model list names it. context: the longest sequence it is said to take, in tokens."""

    source: str
    name: str
    context: int | None = None


class ProbeReading(msgspec.Struct, frozen=True):
    """One probe result, ours or a person's. at: unix seconds or None. auth: how it was authenticated, as said.

    model: that was asked for, "" when unknown.
    """

    source: str
    target: str
    method: str
    path: str
    status: int | None
    total_s: float | None = None
    first_token_s: float | None = None
    output_tokens: int | None = None
    at: float | None = None
    error: str = ""
    body: str = ""
    note: str = ""
    auth: str = ""
    model: str = ""

    @property
    def generates(self) -> bool:
        """True for a request that asks the model for tokens."""
        return self.method == "POST" and self.path.rstrip("/").endswith(
            ("/completions", "/messages", "/responses", "/generate", "/api/chat", "/completion", "/infer")
        )

    @property
    def got_token(self) -> bool:
        """A positive answer: at least one token came."""
        return self.first_token_s is not None or bool(self.output_tokens)
