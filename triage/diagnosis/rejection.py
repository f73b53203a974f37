"""Valid work that is refused. A request that is wrong and is told so is not over-rejection."""

from collections.abc import Sequence
from typing import NamedTuple

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.refusals import Reason, Refusal, why_refused
from triage.diagnosis.text import count, many, percent
from triage.diagnosis.thresholds import REFUSED_LEAST, REFUSED_SHARE
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import value_or
from triage.domain.logs import LogKind, LogMark
from triage.domain.quantity import Quantity
from triage.domain.situation import Situation
from triage.domain.stream import ProbeReading
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope

_NEXT = {
    Reason.CONTEXT: "count input tokens of the refused requests and compare with the context that clients are told of",
    Reason.CAPACITY: "send one request now: answered means that only peaks are refused; then compare queue and limit",
    Reason.RATE: "ask whose budget it is: the caller's key, a whole tenant or everybody together",
    Reason.CREDENTIALS: "compare the clocks of the identity server and of the hop that refused (date header of each)",
}
_DETAILS = {
    Reason.CONTEXT: "context-limit",
    Reason.CAPACITY: "queue-full",
    Reason.RATE: "rate-limit",
    Reason.CREDENTIALS: "expired-credentials",
}


class _Said(NamedTuple):
    """One refusal as somebody received it."""

    refusal: Refusal
    status: int | None
    text: str
    source: str


def judge_rejection(situation: Situation, views: Sequence[ReplicaView]) -> list[Hypothesis]:
    """One hypothesis for each reason that refusals name."""
    said = _refusals(situation)
    found = []
    for reason in Reason:
        own = [item for item in said if item.refusal.reason is reason]
        evidence = _evidence(reason, own, situation, views)
        if not evidence:
            continue
        ceiling, capped = _ceiling(reason, own, _other_reasons(situation, own))
        models = {view.model for view in views if view.model} or {model.name for model in situation.served_models}
        found.append(
            Hypothesis(
                kind=Kind.OVER_REJECTION,
                detail=_DETAILS[reason],
                scope=Scope(model=models.pop() if len(models) == 1 else None),
                summary=max(evidence, key=lambda item: item.strength).text,
                evidence=tuple(evidence),
                next_test=_NEXT[reason],
                ceiling=ceiling,
                capped=capped,
                confounders=("refusals make a service look fast: they are in no latency histogram",),
            )
        )
    return found


def _refusals(situation: Situation) -> list[_Said]:
    """Refusals in kept bodies, in probes and in streams that carried nothing else."""
    bodies = [(e.message, e.status, e.source) for e in situation.error_answers]
    bodies += [
        (f"{probe.body} {probe.error}", probe.status, probe.source)
        for probe in situation.probes
        if probe.generates and (probe.status or 0) >= 400 and _sound_credentials(probe)
    ]
    bodies += [
        (stream.error, stream.status, stream.source)
        for stream in situation.streams
        if stream.error and not stream.visible_chars and not stream.reasoning_chars and not stream.tool_calls
    ]
    return [
        _Said(refusal, status, words.strip(), source)
        for words, status, source in bodies
        if (refusal := why_refused(words)) is not None
    ]


def _sound_credentials(probe: ProbeReading) -> bool:
    """Not sent on purpose with credentials that must be refused."""
    return not probe.auth or probe.auth.lower().startswith("valid")


def _evidence(
    reason: Reason, said: Sequence[_Said], situation: Situation, views: Sequence[ReplicaView]
) -> list[Evidence]:
    evidence: dict[str, Evidence] = {}
    for item in said:
        found = _body(item, situation)
        if found.id not in evidence or found.strength > evidence[found.id].strength:
            evidence[found.id] = found
    rest: list[Evidence] = []
    if reason is Reason.CONTEXT and said:
        rest = [item for item in map(_refused, views) if item is not None]
    elif reason is Reason.CAPACITY:
        rest = [item for item in map(_turned_away, views) if item is not None]
        rest += _busy_lines(situation) if said else []
    elif reason is Reason.RATE and said:
        rest = [item for item in map(_has_room, views) if item is not None]
    return [*evidence.values(), *rest]


def _body(item: _Said, situation: Situation) -> Evidence:
    """What a refusal proves by itself: that the work was valid (3), or only that it was refused (2)."""
    status = f"{item.status}: " if item.status is not None else ""
    refusal = item.refusal
    text, strength = f"a request was refused: {status}{item.text}", 2
    if refusal.reason is Reason.CAPACITY:
        strength = 3
    elif refusal.reason is Reason.CREDENTIALS:
        strength = 3 if "not yet valid" in item.text.lower() or "before issued" in item.text.lower() else 2
    elif refusal.reason is Reason.CONTEXT and refusal.limit is not None:
        limit, prompt = refusal.limit, refusal.prompt
        promised = _promised(situation)
        if prompt is not None and prompt < limit:
            answer = f"the {count(refusal.answer)} for its answer" if refusal.answer else "what its answer may take"
            kept = f"with {answer} it does not"
            text = f"a prompt of {count(prompt)} tokens fits the context of {count(limit)}; {kept}"
            strength = 3
        elif promised is not None and promised > limit and (prompt is None or prompt < promised):
            text = f"the model list promises {count(promised)} tokens, requests above {count(limit)} are refused"
            strength = 3
    return Evidence(
        id="probe.refused",
        direction=Direction.FOR,
        strength=strength,
        family=Family.PROBE,
        text=text,
        value=None if refusal.prompt is None else float(refusal.prompt),
        unit="tokens" if refusal.prompt is not None else "",
        threshold=None if refusal.limit is None else float(refusal.limit),
        n=1,
        source=item.source,
    )


def _promised(situation: Situation) -> int | None:
    """The context that clients are told of; None when nobody says, or several things are said."""
    contexts = {model.context for model in situation.served_models if model.context is not None}
    return contexts.pop() if len(contexts) == 1 else None


def _refused(view: ReplicaView) -> Evidence | None:
    """A good part of all HTTP requests is refused: then it is not one client's mistake."""
    refused = value_or(view.window.delta(Quantity.HTTP_REFUSED), 0.0)
    answers = refused + value_or(view.window.delta(Quantity.HTTP_ANSWERED), 0.0)
    if refused < REFUSED_LEAST or refused < REFUSED_SHARE * answers:
        return None
    share = refused / answers
    text = f"{view.prefix}{count(refused)} of {count(answers)} HTTP requests ({percent(share)}) were refused (4xx)"
    return view.evidence(
        "refused", text, quantity=Quantity.HTTP_REFUSED, strength=3, value=share, unit="share", threshold=REFUSED_SHARE
    )


def _turned_away(view: ReplicaView) -> Evidence | None:
    """The engine's own count of requests that its queue limits turned away."""
    rejected = value_or(view.window.delta(Quantity.REJECTED), 0.0)
    if rejected < REFUSED_LEAST:
        return None
    text = f"{view.prefix}{many(rejected, 'request')} turned away by the engine's queue limit"
    return view.evidence("rejected", text, quantity=Quantity.REJECTED, strength=3, value=rejected, unit="requests")


def _busy_lines(situation: Situation) -> list[Evidence]:
    """The engine's log has 503 among answers that it gave: it is alive and refuses."""
    for log in situation.logs:
        if log.kind is not LogKind.ENGINE or log.last_progress_line is None:
            continue
        lines = [e for e in log.events if e.mark is LogMark.REQUEST_ERROR and " 503" in e.text]
        if lines:
            return [
                Evidence(
                    id="engine.log.busy",
                    direction=Direction.FOR,
                    strength=2,
                    family=Family.ENGINE,
                    text=f"its log has {many(len(lines), 'answer')} 503 beside answers that were given",
                    value=float(len(lines)),
                    unit="lines",
                    n=log.lines,
                    source=f"{log.source} line {lines[-1].line}",
                )
            ]
    return []


def _has_room(view: ReplicaView) -> Evidence | None:
    """Nothing waits in the engine while requests are refused in front of it."""
    waiting = view.queued
    if waiting is None or waiting.high > 0 or not view.comparable:
        return None
    text = f"{view.prefix}nothing waits in the engine, so it could have served them"
    return view.evidence("room", text, quantity=Quantity.WAITING, strength=1, value=0.0, unit="requests")


def _other_reasons(situation: Situation, said: Sequence[_Said]) -> bool:
    """Refusals were kept that do not name this reason."""
    mine = {(item.source, item.text) for item in said}
    return any((error.source, error.message.strip()) not in mine for error in situation.error_answers)


def _ceiling(reason: Reason, said: Sequence[_Said], others: bool) -> tuple[Confidence, str]:
    if reason is Reason.RATE:
        return Confidence.POSSIBLE, "a budget per caller may be meant to refuse"
    if reason is Reason.CONTEXT and others and not any(_fits(item.refusal) for item in said):
        return Confidence.POSSIBLE, "requests are refused for other reasons as well"
    if reason is Reason.CONTEXT and not any(_fits(item.refusal) for item in said):
        return Confidence.LIKELY, "a counter does not say why each of them was refused"
    return Confidence.CONFIRMED, ""


def _fits(refusal: Refusal) -> bool:
    return refusal.prompt is not None and refusal.limit is not None and refusal.prompt < refusal.limit
