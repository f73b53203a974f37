"""What the users of a service got in a span of time."""

import math
from collections.abc import Iterable

import msgspec

from triage.lab.account.parts import Part, Seconds, of_tokens, shown_at, until_visible
from triage.lab.world.call import Call, Outcome
from triage.lab.world.service import Service


class Ledger(msgspec.Struct, frozen=True):
    """Of calls that ended in the span or are open at its end. Times in seconds.

    first_p95: until there was something to see. first_parts: sums over all calls of what that time was spent on, and
    of the slowest twentieth alone. per_token: mean over tokens. token_parts: sums. hit_share: prompt tokens found in
    prefix caches, of answered calls. failed, cut, refused, left, blank, unparsed, keyless: numbers of calls.
    walked_off: left at once, whatever was to be seen. flags: response flags of failed and cut calls, counted.
    waits: mean seconds from the engine's queue to its batch, by replica.
    tries: attempts a call; wasted: part of the engines' output and prompt tokens that nobody got.
    """

    calls: int
    answered: int
    first_p95: float
    first_parts: Seconds
    slow_parts: Seconds
    per_token: float
    token_parts: Seconds
    hit_share: float
    failed: int
    cut: int
    refused: int
    left: int
    walked_off: int
    blank: int
    unparsed: int
    tool_calls: int
    keyless: int
    flags: dict[str, int]
    waits: dict[str, float]
    tries: float
    wasted: float

    def share(self, number: int) -> float:
        return number / self.calls if self.calls else 0.0


def read_ledger(service: Service, since: float, now: float) -> Ledger:
    """The last seconds of a service, from its records."""
    over = [call for call in service.calls if call.ended >= since]
    calls = [*over, *service.open_calls.values()]
    done = [call for call in over if call.outcome is Outcome.COMPLETE]
    waits = [(_first(call, now), call) for call in calls if not _walked(call)]
    # Whoever waits for less than the others have waited tells nothing yet.
    known = [(wait, call) for wait, call in waits if not (call.open and math.isnan(shown_at(call)))]
    floor = _quantile([wait for wait, _ in known], 0.5)
    known += [(wait, call) for wait, call in waits if call.open and math.isnan(shown_at(call)) and wait > floor]
    edge = _quantile([wait for wait, _ in known], 0.95)
    prompt = sum([call.request.prompt_tokens for call in done])
    cached = sum([call.answer.cached for call in done if call.answer is not None])
    tokens, seconds = 0, 0.0
    for call in done:
        answer = call.answer
        if answer is not None and answer.counted > 1:
            tokens += answer.counted - 1
            seconds += answer.finished - answer.first_token
    bad = [call for call in over if call.outcome in (Outcome.FAILED, Outcome.CUT)]
    flags: dict[str, int] = {}
    for call in bad:
        for flag in filter(None, call.flags.split(",")):
            flags[flag] = flags.get(flag, 0) + 1
    count = {outcome: sum([call.outcome is outcome for call in over]) for outcome in Outcome}
    return Ledger(
        calls=len(calls),
        answered=len(done),
        first_p95=edge,
        first_parts=_sum([until_visible(call, now) for _, call in known]),
        slow_parts=_sum([until_visible(call, now) for wait, call in known if wait >= edge]),
        per_token=seconds / tokens if tokens else math.nan,
        token_parts=_sum([of_tokens(call) for call in done]),
        hit_share=cached / prompt if prompt else math.nan,
        failed=count[Outcome.FAILED],
        cut=count[Outcome.CUT],
        refused=count[Outcome.REFUSED],
        left=count[Outcome.LEFT],
        walked_off=sum([_walked(call) for call in over]),
        blank=sum([call.blank for call in done]),
        unparsed=sum([call.unparsed for call in done]),
        tool_calls=sum([call.request.calls_tool for call in done]),
        keyless=sum([not call.identity and call.outcome is not Outcome.REFUSED for call in over]),
        flags=flags,
        waits=_waits([call for _, call in known], now),
        tries=sum([len(call.attempts) for call in over]) / len(over) if over else 1.0,
        wasted=_wasted(over),
    )


def _walked(call: Call) -> bool:
    return call.outcome is Outcome.LEFT and call.ended >= call.walks_off_at


def _first(call: Call, now: float) -> float:
    shown = shown_at(call)
    if not math.isnan(shown):
        return shown - call.sent
    return (now if call.open else call.ended) - call.sent


def _waits(calls: Iterable[Call], now: float) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for call in calls:
        for attempt in call.attempts:
            sequence = attempt.sequence
            if sequence is not None:
                ends = (sequence.scheduled, attempt.ended, now)
                end = next(mark for mark in ends if not math.isnan(mark))
                found.setdefault(attempt.replica, []).append(max(end - sequence.queued, 0.0))
    return {name: sum(values) / len(values) for name, values in found.items()}


def _wasted(calls: Iterable[Call]) -> float:
    """Work of tries whose answer reached nobody, as part of all work. A computed prompt token counts a tenth."""
    lost = whole = 0.0
    for call in calls:
        for place, attempt in enumerate(call.attempts):
            sequence = attempt.sequence
            if sequence is None or math.isnan(sequence.scheduled):
                continue
            work = sequence.counted + 0.1 * max(sequence.prefilled - sequence.cached, 0)
            whole += work
            if place < len(call.attempts) - 1 or call.outcome in (Outcome.FAILED, Outcome.CUT):
                lost += work
    return lost / whole if whole else 0.0


def _sum(many: Iterable[Seconds]) -> Seconds:
    whole: dict[Part, float] = {}
    for one in many:
        for part, seconds in one.items():
            whole[part] = whole.get(part, 0.0) + seconds
    return whole


def _quantile(values: list[float], share: float) -> float:
    """The smallest value that so many are not above; nan of none."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)] if values else math.nan
