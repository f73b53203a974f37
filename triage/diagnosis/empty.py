"""Finished answers in which the user sees nothing, although tokens were made and paid for."""

from collections.abc import Sequence

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.text import count, many, percent
from triage.diagnosis.thresholds import EMPTY_LEAST, EMPTY_SHARE, TEXT_TOKENS
from triage.diagnosis.witness import answer_evidence
from triage.domain.situation import Situation
from triage.domain.stream import OWN_PROBE, AnswerCounts, Completeness, StreamReading
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope

_MAY_BE_THINKING = "thinking that is neither shown nor counted would look the same"


def judge_empty(situation: Situation, explained: Sequence[StreamReading]) -> Hypothesis | None:
    """Answers that ended by themselves with nothing visible. explained: answers that are empty for a known reason.

    A budget that went into thoughts is hidden reasoning, and is judged there.
    """
    empty = [s for s in situation.streams if _is_empty(s) and not any(s is other for other in explained)]
    evidence = [_evidence(stream) for stream in empty]
    for counts in situation.answer_counts:
        evidence += _counted(counts)
    if not evidence:
        return None
    evidence.sort(key=lambda item: -item.strength)
    decisive = evidence[0].strength >= 3
    unsure = not decisive and any(map(_may_be_thinking, empty))
    models = {stream.model for stream in empty if stream.model}
    shown = [s for s in situation.streams if s.visible_chars and s.completeness is Completeness.COMPLETE]
    beside = f"; {many(len(shown), 'other answer')} had text" if shown else ""
    return Hypothesis(
        kind=Kind.EMPTY_OUTPUT,
        detail=_detail(empty),
        scope=Scope(model=models.pop() if len(models) == 1 else None),
        summary=f"{evidence[0].text}{beside}",
        evidence=tuple(evidence),
        next_test="send the same request with thinking off, then without the parsers: text must come",
        ceiling=Confidence.POSSIBLE if unsure else Confidence.CONFIRMED,
        capped=_MAY_BE_THINKING if unsure else "",
        confounders=("a model may end its turn at once when the template closed it already",),
    )


def _is_empty(stream: StreamReading) -> bool:
    if stream.completeness is Completeness.BILLED_NOT_SHOWN:
        return True
    # The small budget of our own probe may run out before the first word; a user's may not.
    ran_out = stream.source == OWN_PROBE and stream.finish_reason == "length"
    return stream.completeness is Completeness.EMPTY and not ran_out


def _may_be_thinking(stream: StreamReading) -> bool:
    """Nothing in it says where its tokens went."""
    billed = stream.completeness is Completeness.BILLED_NOT_SHOWN
    return not stream.reasoning_chars and (billed or stream.finish_reason == "length")


def _evidence(stream: StreamReading) -> Evidence:
    tokens = stream.completion_tokens
    billed = f"{count(tokens)} tokens" if tokens is not None else "tokens not reported"
    finish = stream.finish_reason or "no finish reason"
    if stream.completeness is Completeness.BILLED_NOT_SHOWN:
        text, strength = f"an answer of {billed} showed {many(stream.visible_chars, 'character')}", 2
    elif stream.reasoning_chars:
        where = f"{many(stream.reasoning_chars, 'character')} in the reasoning field and none in the answer"
        text, strength = f"an answer ended by itself ({finish}, {billed}) with {where}", 3
    else:
        text = f"an answer ended ({finish}, {billed}) with no text, tool call or reasoning in any field"
        strength = 3 if tokens is not None and tokens >= TEXT_TOKENS and finish != "length" else 2
    if stream.source == OWN_PROBE:
        strength = min(strength, 2)
    value = None if tokens is None else float(tokens)
    return answer_evidence(stream, "empty", text, strength, value=value, unit="tokens")


def _counted(counts: AnswerCounts) -> list[Evidence]:
    """Somebody counted the answers without content; those at the token limit are not of this kind."""
    by_themselves = sum(number for finish, number in counts.empty.items() if finish in ("stop", "tool_calls"))
    if by_themselves < 1:
        return []
    total = f" of {count(counts.total)}" if counts.total else ""
    at_limit = counts.empty.get("length", 0.0)
    limit = f"; {count(at_limit)} more at their token limit" if at_limit else ""
    share = by_themselves / counts.total if counts.total else None
    size = f" ({percent(share)})" if share is not None and share >= 0.01 else ""
    return [
        Evidence(
            id="probe.empty-counted",
            direction=Direction.FOR,
            strength=3 if by_themselves >= EMPTY_LEAST and (share is None or share >= EMPTY_SHARE) else 2,
            family=Family.PROBE,
            text=f"{count(by_themselves)}{total} answers{size} ended by themselves without content{limit}",
            value=by_themselves,
            unit="answers",
            n=None if counts.total is None else int(counts.total),
            source=counts.source,
        )
    ]


def _detail(empty: Sequence[StreamReading]) -> str | None:
    if any(stream.reasoning_chars for stream in empty):
        return "answer-in-reasoning"
    return "text-lost" if empty else None
