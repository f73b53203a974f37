"""Was the answer complete? (diagnosis.md 1.) HTTP 200 and [DONE] do not say so."""

from typing import NamedTuple

from triage.dialects.streams.chunk import Usage
from triage.domain.stream import Completeness

# Nothing visible is no fault here: the answer was held back on purpose, goes on in the next turn (Anthropic), or
# nothing was asked but to load a model or to let it go (Ollama).
_SILENT_ENDS = ("content_filter", "pause_turn", "load", "unload")
# With a token limit below this a request asks for too little to expect visible text: a one-token
# probe of a reasoning model is spent on reasoning, and says nothing.
_TOO_SHORT = 5
# Text runs at 3 to 4 characters a token in English, above 1 in Chinese, about 0.8 for byte-level
# vocabularies. Fewer than half a character a token, on at least this many tokens, is not text.
_CHARS_PER_TOKEN = 0.5
_BILLED_MINIMUM = 64
# Reasoning tokens that make up the budget when none of them was shown. Engines count the tag tokens and
# the tokens of half a character as content: real vLLM said 164 of 200 when nothing else was made.
_REASONING_SHARE = 0.5


class Facts(NamedTuple):
    """What was seen. clean: the server closed in order (True), the connection was cut (False), not known (None).

    done: the protocol's terminator came. idle_s: seconds without any text before the end of the recording.
    """

    events: int
    comments: int
    broken: int
    finish: str
    done: bool
    clean: bool | None
    error: str
    reasoning_chars: int
    visible_chars: int
    tool_chars: int
    tool_calls: int
    broken_tool: str
    usage: Usage
    idle_s: float | None
    unfinished: int = 0  # choices, of several, that have no finish reason


def judge(facts: Facts) -> tuple[Completeness, str]:
    """The verdict and a sentence that says why; the sentence is "" when there is nothing to say."""
    if facts.error:
        return Completeness.ERROR, f"the answer carries an error: {facts.error}"
    if not facts.finish:
        return _unfinished(facts)
    if facts.finish in ("abort", "error"):
        return Completeness.ABORTED, f"finish reason {facts.finish}"
    if facts.unfinished and (facts.done or facts.clean is not None):
        return Completeness.TRUNCATED, f"{_choices(facts.unfinished)} without a finish reason"
    if facts.broken_tool:
        return Completeness.LENGTH_IN_TOOL, facts.broken_tool
    return _content(facts) or _ending(facts)


def _choices(number: int) -> str:
    return "one of several answers ended" if number == 1 else f"{number} of several answers ended"


def _unfinished(facts: Facts) -> tuple[Completeness, str]:
    half = ", the last event is incomplete" if facts.broken else ""
    if facts.done:
        return Completeness.ABORTED, "the terminator came without a finish reason"
    if facts.clean is None:
        if not facts.events:
            kept_alive = f", {facts.comments} keep-alive comments" if facts.comments else ""
            return Completeness.OPEN, f"no event came{kept_alive}{half}"
        silent = f"; no text in its last {facts.idle_s:.1f} s" if facts.idle_s is not None and facts.idle_s > 1 else ""
        return Completeness.OPEN, f"the recording ends before the stream{half}{silent}"
    how = "the server closed the connection" if facts.clean else "the connection was cut"
    return Completeness.TRUNCATED, f"{how} without a finish reason{half}"


def _content(facts: Facts) -> tuple[Completeness, str] | None:
    """What is wrong with a finished answer itself."""
    completion, reasoning = facts.usage.completion, facts.usage.reasoning
    received = facts.reasoning_chars + facts.visible_chars + facts.tool_chars
    if not facts.visible_chars and not facts.tool_calls:
        if completion == 0 or facts.finish in _SILENT_ENDS:
            return None
        if facts.finish == "length":
            if completion is not None and completion < _TOO_SHORT:
                return None
            ate = reasoning is not None and completion is not None and reasoning >= _REASONING_SHARE * completion
            if facts.reasoning_chars or ate:
                return Completeness.REASONING_ATE_BUDGET, f"{_tokens(facts)}, all spent before any visible text"
        if facts.reasoning_chars:
            return Completeness.EMPTY, f"finish reason {facts.finish} with reasoning and no visible text"
        return Completeness.EMPTY, f"finish reason {facts.finish}, {_tokens(facts)}, no text in any field"
    if completion is not None:
        unshown = reasoning if reasoning and not facts.reasoning_chars else 0
        unexplained = completion - unshown
        if unexplained >= _BILLED_MINIMUM and received < _CHARS_PER_TOKEN * unexplained:
            return Completeness.BILLED_NOT_SHOWN, f"{completion} tokens, only {received} characters arrived"
    return None


def _ending(facts: Facts) -> tuple[Completeness, str]:
    notes = []
    reasoning = facts.usage.reasoning
    if reasoning and not facts.reasoning_chars:
        notes.append(f"{reasoning} reasoning tokens were not streamed")
    if not facts.done:
        # A finish reason and an orderly close lose nothing: some servers and proxies leave [DONE] out (C42).
        if facts.clean is False:
            return Completeness.NO_TERMINATOR, "; ".join(["cut after the finish reason, before the terminator", *notes])
        if facts.clean is None:
            return Completeness.NO_TERMINATOR, "; ".join(["no terminator after the finish reason", *notes])
        notes.append("no terminator, but a finish reason and an orderly close")
    return Completeness.COMPLETE, "; ".join(notes)


def _tokens(facts: Facts) -> str:
    completion, reasoning = facts.usage.completion, facts.usage.reasoning
    if completion is None:
        return "tokens not reported"
    return f"{completion} tokens" + (f", {reasoning} of them reasoning" if reasoning else "")
