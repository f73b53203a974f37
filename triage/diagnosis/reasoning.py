"""Tokens that go where the user does not see them."""

from collections.abc import Sequence

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.peers import Peers
from triage.diagnosis.reference import per_token_reference
from triage.diagnosis.text import count, percent, seconds
from triage.diagnosis.thresholds import DIAL_MINIMUM, REASONING_SHARE
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.stream import OWN_PROBE, Completeness, StreamReading
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope, Share

# From this many times the bound on, a single late answer is enough.
_CLEARLY_LATE = 2.0


def judge_reasoning(
    streams: Sequence[StreamReading], views: Sequence[ReplicaView], limits: Limits
) -> Hypothesis | None:
    """Hidden reasoning in the observed answers of one model, or None.

    An engine's own metrics cannot tell reasoning from visible tokens; only an answer can.
    """
    if any(_ended_unseen(stream) for stream in streams):
        return None
    hiding = [(stream, share) for stream in streams if (share := _hidden_share(stream, limits)) is not None]
    # Thinking that was not streamed is only counted: how long it took has to be worked out.
    estimated = not hiding
    if estimated:
        shares = [(stream, _unstreamed_share(stream, views, limits)) for stream in streams]
        hiding = [(stream, share) for stream, share in shares if share is not None]
    if not hiding:
        return None
    evidence = [_stream_evidence(stream, share, 2 if estimated else 3) for stream, share in hiding]
    evidence += _engine_is_quick(views, limits)
    evidence += _only_slow_tokens([stream for stream, _ in hiding], views, limits)
    clear = [s for s in streams if s.first_visible_s is not None and s.first_visible_s <= limits.first_visible_p95_s]
    if len(clear) > len(hiding):
        evidence.append(
            Evidence(
                id="probe.others-visible",
                direction=Direction.AGAINST,
                strength=2,
                family=Family.PROBE,
                text=f"{len(clear)} other answers showed text within {seconds(limits.first_visible_p95_s)}",
                n=len(clear),
                source=clear[0].source,
            )
        )
    parts = sorted(share for _, share in hiding)
    worst = max(hiding, key=lambda pair: pair[1])[0]
    spent = any(s.completeness is Completeness.REASONING_ATE_BUDGET and s.source != OWN_PROBE for s, _ in hiding)
    # The bound is for the 95th percentile; one answer a little above it is not yet a breach.
    untimed = estimated and not worst.timed
    single = len(hiding) == 1 and not spent and _waited(worst) < _CLEARLY_LATE * limits.first_visible_p95_s
    return Hypothesis(
        kind=Kind.HIDDEN_REASONING,
        detail="budget-spent" if spent else "long-reasoning",
        scope=Scope(model=worst.model or (views[0].model if views else "") or None),
        summary=_summary(worst, spent) if not estimated else _estimate_summary(worst),
        evidence=tuple(evidence),
        share=Share(parts[len(parts) // 2], parts[0], parts[-1], "time to the first visible token"),
        next_test="send the same request once with reasoning switched off: text must come at once",
        tested=not estimated,
        ceiling=Confidence.POSSIBLE if single or untimed else Confidence.CONFIRMED,
        capped="" if untimed else "one answer, not far above the bound" if single else "",
        confounders=("a probe's prompt is short; users' prompts may be thought about longer or shorter",),
    )


def _ended_unseen(stream: StreamReading) -> bool:
    """It stopped by itself with nothing visible: the whole answer stands in the reasoning field.

    That is a parser or template fault (the answer never arrives), not time spent on thinking.
    """
    return stream.completeness is Completeness.EMPTY and stream.reasoning_chars > 0


def _hidden_share(stream: StreamReading, limits: Limits) -> float | None:
    """Part of the time before the first visible token that was reasoning; None when the user did not wait for it."""
    tokens = _token_share(stream)
    never_visible = stream.visible_chars == 0 and stream.tool_calls == 0
    if stream.reasoning_chars == 0 and not (stream.reasoning_tokens and never_visible):
        return None
    if not stream.timed or stream.first_reasoning_s is None:
        # An answer without times: hidden when nothing is visible and reasoning is most of what was paid for.
        return tokens if never_visible and tokens is not None and tokens >= REASONING_SHARE else None
    seen = stream.first_visible_s if stream.first_visible_s is not None else stream.first_tool_s
    end = _waited(stream)
    in_time = end <= limits.first_visible_p95_s
    # Nothing visible in time: a fault when it was the user's budget that ran out, not when it was our probe's.
    if in_time and (seen is not None or stream.source == OWN_PROBE):
        return None
    if end <= 0:
        return tokens
    share = (end - stream.first_reasoning_s) / end
    return share if share >= REASONING_SHARE else None


def _unstreamed_share(stream: StreamReading, views: Sequence[ReplicaView], limits: Limits) -> float | None:
    """Part of the wait that reasoning tokens took which were billed and not streamed, at the speed of the other tokens.

    Without times in the answer: the reasoning's share of its tokens, when they alone took longer than the bound.
    """
    thought, total = stream.reasoning_tokens, stream.completion_tokens
    # A whole answer carries its reasoning as text: that does not say when it came.
    if not thought or not total or (stream.reasoning_chars and stream.timed):
        return None
    first, last = stream.first_visible_s, stream.last_token_s
    shown = total - thought
    per_token = None
    if first is not None and last is not None and last > first and shown > DIAL_MINIMUM:
        per_token = (last - first) / (shown - 1)
    else:
        per_token = next((view.per_token for view in views if known(view.per_token)), None)
    if per_token is None:
        return None
    thinking = thought * per_token
    if first is None:
        share = min(thought / total, 1.0)
        return share if thinking > limits.first_visible_p95_s and share >= REASONING_SHARE else None
    share = min(thinking / first, 1.0) if first > limits.first_visible_p95_s else 0.0
    return share if share >= REASONING_SHARE else None


def _waited(stream: StreamReading) -> float:
    """Seconds until something was visible, or until the last token when nothing ever was."""
    for mark in (stream.first_visible_s, stream.first_tool_s, stream.last_reasoning_s, stream.last_token_s):
        if mark is not None:
            return mark
    return stream.first_reasoning_s or 0.0


def _token_share(stream: StreamReading) -> float | None:
    if stream.reasoning_tokens and stream.completion_tokens:
        return min(stream.reasoning_tokens / stream.completion_tokens, 1.0)
    written = stream.reasoning_chars + stream.visible_chars
    return stream.reasoning_chars / written if written else None


def _stream_evidence(stream: StreamReading, share: float, strength: int) -> Evidence:
    first = (
        f"first token after {seconds(stream.first_reasoning_s)}" if stream.first_reasoning_s is not None else "answer"
    )
    if stream.first_visible_s is not None:
        seen = f"first visible one after {seconds(stream.first_visible_s)}"
    elif stream.completeness is Completeness.OPEN:
        seen = "none visible yet"
    else:
        seen = f"none visible until it ended ({stream.finish_reason or stream.completeness.value})"
    tokens = ""
    if stream.reasoning_tokens and stream.completion_tokens:
        tokens = f"; {count(stream.reasoning_tokens)} of {count(stream.completion_tokens)} tokens are reasoning"
    return Evidence(
        id="probe.reasoning",
        direction=Direction.FOR,
        strength=strength,
        family=Family.PROBE,
        text=f"{first}, {seen}: {percent(share)} of that time is reasoning{tokens}",
        value=share,
        unit="share",
        threshold=REASONING_SHARE,
        n=stream.chunks or None,
        source=stream.source,
    )


def _engine_is_quick(views: Sequence[ReplicaView], limits: Limits) -> list[Evidence]:
    """The engine's own first token is early while the user's is late: what lies between is reasoning."""
    for view in views:
        if known(view.ttft) and view.ttft <= limits.first_visible_p95_s:
            return [
                view.evidence(
                    "first-token-early",
                    f"the engine's first token of any kind takes {seconds(view.ttft)}",
                    quantity=Quantity.TTFT,
                    strength=2,
                    value=view.ttft,
                    unit="s",
                    threshold=limits.first_visible_p95_s,
                )
            ]
        if view.waiting is not None and view.waiting.high == 0 and known(view.generated) and view.generated > 0:
            return [
                view.evidence(
                    "tokens-flow",
                    f"{count(view.generated)} tokens were generated and no request waits",
                    quantity=Quantity.GENERATION_TOKENS,
                    strength=2,
                    value=view.generated,
                    unit="tokens",
                )
            ]
    return []


def _only_slow_tokens(hiding: Sequence[StreamReading], views: Sequence[ReplicaView], limits: Limits) -> list[Evidence]:
    """Tokens are slow, and at their usual speed the reasoning would be over in time: then decode is the cause."""
    peers = Peers(views)
    for view in views:
        reference = per_token_reference(view, peers, limits)
        if not known(view.per_token) or view.per_token <= reference.bound:
            continue
        usual = [_at_usual_speed(stream, reference.value / view.per_token) for stream in hiding]
        if all(wait <= limits.first_visible_p95_s for wait in usual):
            return [
                view.evidence(
                    "tokens-slow",
                    f"{seconds(view.per_token)} between tokens against {seconds(reference.value)} "
                    f"({reference.name}): at that speed the first visible token would take {seconds(max(usual))}",
                    quantity=Quantity.ITL,
                    strength=3,
                    direction=Direction.AGAINST,
                    value=view.per_token,
                    unit="s",
                    threshold=reference.bound,
                )
            ]
    return []


def _at_usual_speed(stream: StreamReading, factor: float) -> float:
    first = stream.first_reasoning_s or 0.0
    return first + (_waited(stream) - first) * factor


def _estimate_summary(stream: StreamReading) -> str:
    thought, total = stream.reasoning_tokens or 0, stream.completion_tokens or 0
    first = stream.first_visible_s
    when = f"first visible token after {seconds(first)}: " if first is not None else ""
    return f"{when}{count(thought)} of {count(total)} tokens are reasoning that the user does not see"


def _summary(stream: StreamReading, spent: bool) -> str:
    if spent:
        return "the whole token budget went to reasoning: the answer has no visible text"
    if stream.first_visible_s is None and stream.first_reasoning_s is None:
        return _estimate_summary(stream)  # it was billed, and nothing of it came
    if stream.first_visible_s is None:
        return f"tokens flow from the start, and in {seconds(_waited(stream))} all of them are reasoning"
    waited = stream.first_visible_s - (stream.first_reasoning_s or 0.0)
    return (
        f"first visible token after {seconds(stream.first_visible_s)}: {seconds(waited)} of it is reasoning "
        "that the user does not see"
    )
