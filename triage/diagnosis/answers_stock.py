"""What probes and recorded answers break and what they keep, without naming a cause."""

from triage.diagnosis.answer_times import breaks_limit
from triage.diagnosis.text import seconds
from triage.domain.situation import Situation
from triage.domain.stream import OWN_PROBE, Completeness, ProbeReading, StreamReading
from triage.domain.verdict import Direction, Evidence, Family

# Our probe ended before the model's thinking did.
ALL_REASONING = "probe.all-reasoning"
_GOOD_ENDS = frozenset({Completeness.COMPLETE, Completeness.OPEN, Completeness.NO_TERMINATOR})


def sent_by_nobody(probe: ProbeReading) -> bool:
    """Sent without credentials."""
    return probe.auth.lower() in ("none", "no key", "anonymous", "missing")


def probe_stock(probe: ProbeReading, situation: Situation) -> tuple[Evidence, bool]:
    bound = situation.limits.first_visible_p95_s
    late = probe.first_token_s is not None and probe.first_token_s > bound
    nobody = sent_by_nobody(probe)
    ok = probe.got_token and not late and (probe.status or 0) < 400 and not nobody
    if nobody and probe.got_token:
        text = f"{probe.target}: a probe without credentials was answered"
    elif ok:
        text = f"{probe.target}: a probe got its first token in {seconds(probe.first_token_s or probe.total_s or 0)}"
    elif late:
        text = f"{probe.target}: a probe waited {seconds(probe.first_token_s or 0)} for its first token"
    else:
        text = f"{probe.target}: a probe got {probe.error or probe.body or probe.status or 'no answer'}"
    return (
        Evidence(
            id="probe.token" if ok else "probe.failed",
            direction=Direction.FOR if ok else Direction.AGAINST,
            strength=3 if ok else 2,
            family=Family.PROBE,
            text=text,
            value=probe.first_token_s if probe.first_token_s is not None else probe.total_s,
            unit="s",
            threshold=bound,
            n=1,
            source=f"{probe.source} {probe.method} {probe.path}",
        ),
        ok,
    )


def stream_stock(stream: StreamReading, situation: Situation) -> tuple[Evidence, bool]:
    bound = situation.limits.first_visible_p95_s
    shown = stream.visible_chars > 0 or stream.tool_calls > 0
    late = stream.first_visible_s is not None and stream.first_visible_s > bound
    as_text = bool(stream.markup and stream.written_call)
    slow = breaks_limit(stream.server, situation.limits) if stream.server is not None else ""
    ok = stream.completeness in _GOOD_ENDS and shown and not late and not as_text and not slow
    # How far its few tokens got is our budget's doing: they came in time, and say nothing of when text comes.
    thinking = stream.source == OWN_PROBE and stream.completeness is Completeness.REASONING_ATE_BUDGET
    thinking = thinking and (stream.last_token_s or stream.closed_s or bound + 1) <= bound
    ok = ok or thinking
    if thinking:
        spent = stream.completion_tokens or "its"
        text = f"all {spent} tokens of the probe were reasoning: when text comes is not known"
    elif ok:
        first = f", first visible token after {seconds(stream.first_visible_s)}" if stream.first_visible_s else ""
        text = f"a stream was {stream.completeness.value}{first}"
    elif as_text:
        text = f"an answer shows a tool call as text ({stream.markup})"
    elif late and stream.first_visible_s is not None:
        text = f"a stream showed its first text after {seconds(stream.first_visible_s)}"
    else:
        text = f"a stream was {stream.completeness.value}" + ("" if shown else " and showed no text")
        text += f", and {slow}" if slow else ""
    return (
        Evidence(
            id=ALL_REASONING if thinking else "probe.stream" if ok else "probe.stream-bad",
            direction=Direction.FOR if ok else Direction.AGAINST,
            strength=1 if thinking else (3 if stream.timed else 1) if ok else 2,
            family=Family.PROBE,
            text=text,
            value=stream.first_visible_s,
            unit="s",
            threshold=bound,
            n=stream.chunks or None,
            source=stream.source,
        ),
        ok,
    )
