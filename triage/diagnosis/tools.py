"""Tool calls that the model made and the client did not get as calls."""

from collections.abc import Sequence
from typing import NamedTuple

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.text import count, many
from triage.diagnosis.witness import answer_evidence
from triage.domain.situation import Situation
from triage.domain.stream import OWN_PROBE, Completeness, RequestReading, StreamReading
from triage.domain.verdict import Evidence, Kind, Scope


class _Failure(NamedTuple):
    stream: StreamReading
    detail: str
    evidence: Evidence


def judge_tools(situation: Situation) -> tuple[Hypothesis | None, list[StreamReading]]:
    """(hypothesis, answers that it explains). Whether tools were offered is told from the kept requests."""
    found = [
        failure
        for stream in situation.streams
        if stream.source != OWN_PROBE
        and (failure := _failure(stream, request_of(stream, situation.requests, situation.streams))) is not None
    ]
    if not found:
        return None, []
    found.sort(key=lambda failure: -failure.evidence.strength)
    worst = found[0]
    control = _control(worst.stream, situation.streams)
    evidence = [failure.evidence for failure in found]
    if control is not None:
        how = "in one body" if control.whole else "in a stream"
        text = f"the same model's answer {how} ({control.protocol}) carries a well-formed call"
        evidence.append(answer_evidence(control, "call-well-formed", text, 1))
    models = {failure.stream.model for failure in found if failure.stream.model}
    path = _path(worst.stream, control) if control is not None else ""
    return (
        Hypothesis(
            kind=Kind.TOOL_CALL_FAILURE,
            detail=worst.detail,
            scope=Scope(model=models.pop() if len(models) == 1 else None),
            summary=f"{worst.evidence.text}{path}",
            evidence=tuple(evidence),
            next_test="send the same request with tools once streamed and once not, straight to the engine",
            tested=control is not None,
            confounders=("models write bad calls too: the same prompt at temperature 0 tells a model from a parser",),
        ),
        [failure.stream for failure in found if failure.evidence.strength >= 3],
    )


def request_of(
    stream: StreamReading, requests: Sequence[RequestReading], streams: Sequence[StreamReading]
) -> RequestReading | None:
    """The request that belongs to an answer: the same words behind 'request' and 'response', else the only one."""
    label = _label(stream.source)
    for request in requests:
        if label and _label(request.source) == label:
            return request
    others = {_label(other.source) for other in streams}
    unclaimed = [r for r in requests if not _label(r.source) or _label(r.source) not in others]
    fitting = [r for r in unclaimed if not r.model or not stream.model or r.model == stream.model]
    return fitting[0] if len({(r.offers_tools, r.tools, r.max_tokens) for r in fitting}) == 1 else None


def _label(source: str) -> str:
    """'request-think.json' and 'response-think.json' are one exchange."""
    return "-".join(source.rpartition(".")[0].split("-")[1:])


def _failure(stream: StreamReading, request: RequestReading | None) -> _Failure | None:
    offered = request.offers_tools if request is not None else None
    for judge in (_broken, _missing, _written, _swallowed):
        failure = judge(stream, request, offered)
        if failure is not None:
            return failure
    return None


def _broken(stream: StreamReading, request: RequestReading | None, offered: bool | None) -> _Failure | None:
    """Arguments that no client can read. Of a stream that was cut they are cut as well: that is another cause."""
    del offered
    if stream.completeness is not Completeness.LENGTH_IN_TOOL:
        return None
    budget = request.max_tokens if request is not None else None
    spent = budget is not None and stream.completion_tokens is not None and stream.completion_tokens >= budget
    if stream.finish_reason == "length" or spent:
        tokens = f" of {count(stream.completion_tokens)} tokens" if stream.completion_tokens is not None else ""
        text = f"the token limit ended the answer{tokens} inside a tool call: {stream.broken_arguments}"
        return _found(stream, "cut-by-limit", text, 3)
    return _found(stream, "broken-arguments", f"a tool call in an answer that ended in order: {_why(stream)}", 3)


def _why(stream: StreamReading) -> str:
    return stream.broken_arguments or stream.detail


def _missing(stream: StreamReading, request: RequestReading | None, offered: bool | None) -> _Failure | None:
    del request, offered
    if stream.finish_reason != "tool_calls" or stream.tool_calls or stream.written_call:
        return None
    if stream.completeness not in (Completeness.COMPLETE, Completeness.EMPTY, Completeness.NO_TERMINATOR):
        return None
    return _found(stream, "call-lost", "an answer ended for a tool call and carries none", 3)


def _written(stream: StreamReading, request: RequestReading | None, offered: bool | None) -> _Failure | None:
    """A call stands in the visible text. Without a request nobody knows whether it was meant as one."""
    if not (stream.markup or stream.written_call) or stream.tool_calls or offered is False:
        return None
    known = request.tools if request is not None else ()
    named = stream.written_call.rpartition(".")[2] or stream.written_call
    ours = stream.written_call in known or named in known
    if not stream.markup:
        # JSON or Python that looks like a call may as well be what was asked for.
        if not ours:
            return None
        return _found(stream, "not-parsed", f"a call of {named} stands in the visible text, without a marker", 3)
    what = f"a call of {named}" if named else "a marker of a tool call"
    text = f"{what} stands in the visible text ({stream.markup})"
    if not named:
        return _found(stream, "not-parsed", text, 2) if offered else None
    return _found(stream, "not-parsed", text, 3 if offered and (ours or not known) else 2)


def _swallowed(stream: StreamReading, request: RequestReading | None, offered: bool | None) -> _Failure | None:
    """Tokens were made, tools were offered, and neither text nor a call came."""
    del request
    if stream.completeness is not Completeness.EMPTY or offered is False or stream.finish_reason == "length":
        return None
    if stream.hidden_call:
        text = f"a call of {stream.hidden_call} stands in the reasoning field, and nothing else came"
        return _found(stream, "not-parsed", text, 3 if offered else 2)
    if offered and stream.completion_tokens and not stream.reasoning_chars:
        tokens = many(stream.completion_tokens, "token")
        return _found(stream, "call-lost", f"tools were offered, and {tokens} brought neither text nor a call", 2)
    return None


def _found(stream: StreamReading, detail: str, text: str, strength: int) -> _Failure:
    return _Failure(stream, detail, answer_evidence(stream, detail, text, strength))


def _control(failed: StreamReading, streams: Sequence[StreamReading]) -> StreamReading | None:
    """An answer of the same model over another path that carries a whole call: the model can write one."""
    return next(
        (
            stream
            for stream in streams
            if stream.completeness is Completeness.COMPLETE
            and stream.tool_calls
            and (not stream.model or not failed.model or stream.model == failed.model)
            and (stream.whole, stream.protocol) != (failed.whole, failed.protocol)
        ),
        None,
    )


def _path(failed: StreamReading, control: StreamReading) -> str:
    """Which path is well, for the summary."""
    if failed.protocol != control.protocol:
        return f"; over {control.protocol} it is well"
    return "; not streamed it is well" if control.whole else "; streamed it is well"
