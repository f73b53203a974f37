"""Where the time of one call went."""

import math
from enum import StrEnum

from triage.lab.batching.clocks import Clock, Moment, between
from triage.lab.batching.request import Sequence
from triage.lab.world.call import Attempt, Call


class Part(StrEnum):
    """Of a user's time until there is something to see, and of the time of each token after that."""

    EARLIER = "earlier tries"
    FRONT = "front end"
    WAIT_SEQUENCES = "waiting for a slot"
    WAIT_KV = "waiting for KV room"
    WAIT_BUDGET = "waiting for prompts of others"
    HALTED = "scheduler stood still"
    PREFILL = "own prompt"
    AWAY = "preempted"
    REASONING = "reasoning"
    HELD = "held back by the gateway"
    TOKENS = "tokens as fast as they should be"
    GPU = "slow GPU"
    HOST = "slow host"
    DRAFTS = "lost drafts"
    PROMPTS = "prompts of others in the step"


_WAITS = {
    Clock.WAIT_SEQUENCES: Part.WAIT_SEQUENCES,
    Clock.WAIT_KV: Part.WAIT_KV,
    Clock.WAIT_BUDGET: Part.WAIT_BUDGET,
    Clock.HALTED: Part.HALTED,
}
_SLOW = {Clock.GPU: Part.GPU, Clock.HOST: Part.HOST, Clock.HALTED: Part.HALTED}
_SLOW_DECODE = {**_SLOW, Clock.DRAFTS: Part.DRAFTS, Clock.PROMPTS: Part.PROMPTS}

Seconds = dict[Part, float]


def shown_at(call: Call) -> float:
    """When there was something to see; of an answer that is wanted whole, when its first token was there."""
    if call.request.streaming:
        return call.first_visible
    return call.answer.first_token if call.answer is not None else math.nan


def until_visible(call: Call, now: float) -> Seconds:
    """Seconds from sending until there was something to see, or until the end or now when nothing came."""
    parts: Seconds = {}
    shown = shown_at(call)
    end = shown if not math.isnan(shown) else call.ended if not call.open else now
    if not call.attempts:
        return parts
    last = call.attempts[-1]
    _add(parts, Part.EARLIER, last.started - call.sent)
    sequence = last.sequence
    if sequence is None:
        return parts
    came = [sequence.queued, sequence.scheduled, sequence.first_token, sequence.first_visible]
    queued, scheduled, first, visible = [min(mark, end) if not math.isnan(mark) else end for mark in came]
    _add(parts, Part.FRONT, queued - last.started)
    _wait(parts, scheduled - queued, sequence.at_queued, sequence.at_scheduled or last.at_end)
    _prefill(parts, first - scheduled, sequence, last)
    if sequence.request.reasoning_tokens:
        _decode(parts, visible - first, sequence, last, Part.REASONING)
    _add(parts, Part.HELD, end - visible)
    return parts


def of_tokens(call: Call) -> Seconds:
    """Seconds between the first and the last token of a whole answer, by what they were spent on."""
    parts: Seconds = {}
    attempt = call.attempts[-1] if call.attempts else None
    if attempt is not None and attempt.sequence is not None and not math.isnan(attempt.sequence.finished):
        sequence = attempt.sequence
        if not math.isnan(sequence.first_token):
            _decode(parts, sequence.finished - sequence.first_token, sequence, attempt, Part.TOKENS)
    return parts


def _add(parts: Seconds, part: Part, seconds: float) -> None:
    if seconds > 0:
        parts[part] = parts.get(part, 0.0) + seconds


def _wait(parts: Seconds, seconds: float, one: Moment | None, other: Moment | None) -> None:
    """What no clock accounts for is the step that was under way when the request came."""
    ran = _ran(one, other, _WAITS)
    whole = sum(ran.values())
    scale = min(seconds / whole, 1.0) if whole > 0 else 0.0
    for part, time in ran.items():
        _add(parts, part, time * scale)
    _add(parts, Part.FRONT, seconds - whole * scale)


def _prefill(parts: Seconds, seconds: float, sequence: Sequence, attempt: Attempt) -> None:
    left = _slow(parts, seconds, _ran(sequence.at_scheduled, sequence.at_first or attempt.at_end, _SLOW))
    _add(parts, Part.PREFILL, left)


def _decode(parts: Seconds, seconds: float, sequence: Sequence, attempt: Attempt, rest: Part) -> None:
    """Clocks are known for the whole answer; a part of it gets its share of them."""
    if seconds <= 0:
        return
    end = sequence.finished if not math.isnan(sequence.finished) else attempt.ended
    whole = end - sequence.first_token
    share = min(seconds / whole, 1.0) if whole > 0 else 1.0
    ran = {part: time * share for part, time in _ran(sequence.at_first, attempt.at_end, _SLOW_DECODE).items()}
    if sequence.away_s:
        ran[Part.AWAY] = sequence.away_s * share
    _add(parts, rest, _slow(parts, seconds, ran))


def _slow(parts: Seconds, seconds: float, ran: Seconds) -> float:
    """Book what clocks ran for, never more than there was; what is left."""
    whole = sum(ran.values())
    scale = min(seconds / whole, 1.0) if whole > 0 else 0.0
    for part, time in ran.items():
        _add(parts, part, time * scale)
    return seconds - whole * scale


def _ran(one: Moment | None, other: Moment | None, names: dict[Clock, Part]) -> Seconds:
    if one is None or other is None:
        return {}
    return {names[clock]: time for clock, time in between(one, other).items() if clock in names}
