"""Why a request was refused, told from the words of the refusal."""

import re
from enum import Enum, auto
from typing import NamedTuple


class Reason(Enum):
    CONTEXT = auto()  # prompt and answer together do not fit
    CAPACITY = auto()  # a queue or all slots are full
    RATE = auto()  # a budget per caller
    CREDENTIALS = auto()  # a token that was valid, or will be


class Refusal(NamedTuple):
    """Tokens as the refusal names them, None where it does not. prompt: of the request; answer: reserved for output."""

    reason: Reason
    limit: int | None = None
    prompt: int | None = None
    answer: int | None = None


# Words of real servers. Context: vLLM, SGLang, llama.cpp, TGI, TensorRT-LLM, OpenAI, Anthropic. Capacity: Ollama
# (`ErrMaxQueue`), SGLang (`--max-queued-requests`), vLLM, TGI, Triton, Dynamo, llama.cpp, Envoy's overflow, the
# endpoint picker. Rate: Envoy, LiteLLM, OpenAI. First match wins.
_REASONS: tuple[tuple[Reason, re.Pattern[str]], ...] = tuple(
    (reason, re.compile(pattern, re.IGNORECASE))
    for reason, pattern in (
        (
            Reason.CONTEXT,
            r"maximum context length|model's context length|exceed(?:s|ed|ing)? .{0,30}context|exceed_context"
            r"|context[_ ](?:size|window|length).{0,30}exceed|prompt is too long|maximum prompt length"
            r"|should not exceed max_(?:num_tokens|seq_len|input_len)"
            r"|`?inputs`? (?:tokens \+ `?max_new_tokens`?|must have less than)|longer than the maximum model length",
        ),
        (
            Reason.CAPACITY,
            r"maximum pending requests|server busy|no slots? available|queue is full|maximum queue size|queue[_ ]limit"
            r"|\boverloaded\b|all workers are busy|too many (?:queued|pending|waiting)"
            r"|upstream[_ ]overflow|reset reason: overflow|\bsaturated\b|max_num_queued|aborted by a higher priority",
        ),
        (
            Reason.RATE,
            r"rate[ _-]?limit|too many requests|\bquota\b|(?:tokens|requests) per (?:minute|second|day)"
            r"|max parallel request limit|budget has been exceeded|exceeded (?:your|the) .{0,40}\blimit\b",
        ),
        (
            Reason.CREDENTIALS,
            r"(?:token|jwt|credential|certificate).{0,40}(?:not yet valid|used before issued|expired)",
        ),
    )
)
_N = r"([\d,]{1,12})"
_LIMIT = re.compile(
    rf"maximum context length (?:is|of) {_N}|(?:context length|context size|maximum model length(?: of)?) \(?{_N}"
    rf"|must be <= {_N}|must have less than {_N}|max_(?:num_tokens|seq_len|input_len) \({_N}|> {_N} maximum"
    rf"|maximum prompt length is {_N}",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    rf"{_N} in the messages|{_N} (?:input tokens|tokens from the input)|(?:input|request) \({_N} tokens\)"
    rf"|resulted in {_N} tokens|given: {_N}|prompt length \({_N}\)|too long: {_N} tokens|request contains {_N}",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    rf"{_N} in the completion|{_N} (?:tokens )?for the completion|too large: {_N}|{_N} `?max_new_tokens", re.IGNORECASE
)


def why_refused(words: str) -> Refusal | None:
    """What the words of a refusal say, or None when they name no reason that is known here."""
    for reason, pattern in _REASONS:
        if pattern.search(words):
            if reason is not Reason.CONTEXT:
                return Refusal(reason)
            return Refusal(reason, _number(_LIMIT, words), _number(_PROMPT, words), _number(_ANSWER, words))
    return None


def _number(pattern: re.Pattern[str], words: str) -> int | None:
    found = pattern.search(words)
    digits = next((group for group in found.groups() if group), "").replace(",", "") if found else ""
    return int(digits) if digits else None
