"""Answers that stopped before they were finished, under HTTP 200."""

import re
from collections.abc import Sequence

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.text import count, many, seconds
from triage.diagnosis.thresholds import SAME_TEXT
from triage.diagnosis.witness import Side, answer_evidence, probe_evidence, side_of
from triage.domain.logs import LogKind, LogMark, LogReading
from triage.domain.situation import Situation
from triage.domain.stream import Completeness, ProbeReading, StreamReading
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope

# How clients, proxies and libraries say that a body ended before its end: curl 18, 56 and 92, httpx and aiohttp,
# Go, Envoy and nginx, HTTP/2 resets.
_CUT = re.compile(
    r"closed without|without (?:a )?(?:\[done\]|finish|terminat)|incomplete (?:chunked )?read|unexpected eof"
    r"|outstanding read data|transfer closed|payload is not completed|prematurely"
    r"|connection (?:was )?(?:reset|cut|lost)|reset by peer|broken pipe|rst_stream|stream (?:was )?reset"
    r"|internal_error|goaway|disconnect|truncated",
    re.IGNORECASE,
)
# The one who asked ended it.
_LEFT = re.compile(
    r"(?:client|user) (?:disconnect|closed|left|stopped|cancel|gave up|time)|curl: \(28\)", re.IGNORECASE
)
# vLLM's words for a stream that ended in an exception, which its client sees as an error event or as nothing.
_STREAM_FAILED = "stream generator"


def judge_truncated(situation: Situation, gateway_unread: bool, leaving: bool) -> Hypothesis | None:
    """Cut answers, and the hop behind which they were whole; None when none was seen.

    leaving: the engine saw requests go unfinished, so whatever cut them stands in front of it.
    """
    streams = situation.streams
    cut = [(stream, found) for stream in streams if (found := _cut(stream)) is not None]
    evidence = [item for _, item in cut]
    evidence += [item for probe in situation.probes if (item := _probe_cut(probe)) is not None]
    evidence += _engine_says(situation.logs)
    if not evidence:
        return None
    hop, detail, where = _between([stream for stream, _ in cut], streams)
    if not detail and cut:
        detail = _how(cut[0][0])
    masked = _masked([stream for stream, _ in cut], streams)
    evidence += masked
    ceiling, capped = Confidence.CONFIRMED, ""
    if detail != "engine-side" and gateway_unread:
        ceiling, capped = Confidence.POSSIBLE, "who ended it stands in the gateway's log, which was not read"
    elif detail != "engine-side" and leaving:
        ceiling, capped = Confidence.POSSIBLE, "the engine saw requests leave as well: a limit in front of it may cut"
    models = {stream.model for stream, _ in cut if stream.model}
    whole = sum(stream.completeness is Completeness.COMPLETE for stream in streams)
    return Hypothesis(
        kind=Kind.TRUNCATED_STREAM,
        detail=detail or None,
        scope=Scope(model=models.pop() if len(models) == 1 else None, hop=hop),
        summary=_summary(evidence[0], where, len(cut), whole),
        evidence=tuple(evidence),
        next_test="send the same request at every hop from the outside in: the first whole answer names the hop before",
        tested=bool(masked),
        ceiling=ceiling,
        capped=capped,
        confounders=("a client that stops reading leaves the same log lines as a server that stops writing",),
    )


def _cut(stream: StreamReading) -> Evidence | None:
    """Why this answer counts as cut; None when it does not. One that never began is a failed request instead."""
    shown = stream.visible_chars + stream.reasoning_chars + stream.tool_calls
    at = f" after {seconds(stream.closed_s)}" if stream.closed_s else ""
    match stream.completeness:
        case Completeness.TRUNCATED:
            strength = 3 if shown else 2 if stream.events else 0
        case Completeness.ABORTED:
            # Some servers never send a finish reason, and one body is not cut: only an abort that is named decides.
            strength = 3 if stream.finish_reason and not stream.whole else 1 if stream.whole else 2
        case Completeness.ERROR if stream.status is None or stream.status < 400:
            strength = 3 if shown else 0
        case _:
            return None
    if not strength:
        return None
    text = f"an answer of {many(stream.chunks, 'chunk')} ended{at}: {stream.detail or stream.completeness.value}"
    return answer_evidence(stream, "cut", text, strength, value=stream.closed_s, unit="s")


def _probe_cut(probe: ProbeReading) -> Evidence | None:
    """A request that was answered with 200 and tokens, and whose body then ended too early."""
    if not probe.generates or probe.status != 200 or not probe.got_token:
        return None
    if _CUT.search(probe.error) is None or _LEFT.search(probe.error) is not None:
        return None
    took = f" after {seconds(probe.total_s)}" if probe.total_s is not None else ""
    text = f"{probe.target}: an answer under HTTP 200 ended{took}: {probe.error}"
    return probe_evidence(probe, "cut", text, 3)


def _engine_says(logs: Sequence[LogReading]) -> list[Evidence]:
    """The engine's log has streams that ended in an exception; it does not say which ones."""
    found = []
    for log in logs:
        events = [e for e in log.events if e.mark is LogMark.REQUEST_ERROR and _STREAM_FAILED in e.text.lower()]
        if log.kind is LogKind.ENGINE and events:
            found.append(
                Evidence(
                    id="engine.log.stream-failed",
                    direction=Direction.FOR,
                    strength=2,
                    family=Family.ENGINE,
                    text=f"the engine's log says: {events[-1].text}",
                    value=float(len(events)),
                    unit="lines",
                    n=log.lines,
                    source=f"{log.source} line {events[-1].line}",
                )
            )
    return found


def _between(cut: Sequence[StreamReading], streams: Sequence[StreamReading]) -> tuple[str | None, str, str]:
    """(hop, detail, words) as far as recordings at two places prove it."""
    inside = [stream for stream in cut if side_of(stream.target) is Side.ENGINE]
    if inside:
        return inside[0].target, "engine-side", f"cut already where {inside[0].source} was taken, at the engine"
    outside = [stream for stream in cut if side_of(stream.target) is Side.CLIENT]
    sound = [
        stream
        for stream in streams
        if side_of(stream.target) is Side.ENGINE and stream.completeness is Completeness.COMPLETE
    ]
    for stream in outside:
        # Of another, shorter answer the end would say nothing about this one.
        same = [other for other in sound if other.visible_chars >= stream.visible_chars > 0]
        if same:
            return stream.target, "hop-between", f"{same[0].source} is whole: the cut is between there and here"
    return None, "", ""


def _masked(cut: Sequence[StreamReading], streams: Sequence[StreamReading]) -> list[Evidence]:
    """The same text reached the client with an orderly end: a hop hides that the answer was cut."""
    inside = [stream for stream in cut if side_of(stream.target) is Side.ENGINE and stream.visible_chars]
    return [
        answer_evidence(
            other,
            "clean-end",
            f"the same {count(other.visible_chars)} characters ended in order for the client: a hop hides the cut",
            1,
            value=float(other.visible_chars),
            unit="characters",
        )
        for stream in inside[:1]
        for other in streams
        if side_of(other.target) is Side.CLIENT
        and other.completeness is Completeness.COMPLETE
        and abs(other.visible_chars - stream.visible_chars) <= SAME_TEXT * stream.visible_chars
    ]


def _how(stream: StreamReading) -> str:
    if stream.completeness is Completeness.ERROR:
        return "error-event"
    return "engine-abort" if stream.completeness is Completeness.ABORTED and stream.finish_reason else ""


def _summary(first: Evidence, where: str, cut: int, whole: int) -> str:
    if not cut:
        return first.text
    beside = f"; {many(whole, 'other answer')} ended in order" if whole and not where else ""
    return f"{first.text}{f'; {where}' if where else ''}{beside}"
