"""Engines whose process, worker or device context is proven gone."""

from collections.abc import Sequence

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.text import many
from triage.diagnosis.view import ReplicaView
from triage.diagnosis.witness import distinct, probe_evidence, through_gateway
from triage.domain.logs import LogEvent, LogKind, LogMark, LogReading
from triage.domain.quantity import Quantity
from triage.domain.situation import Situation, TargetStatus
from triage.domain.stream import Completeness, ProbeReading, StreamReading
from triage.domain.target import FailureReason
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope

# Words by which an API server says that its engine is gone; taken from real answers (vLLM, SGLang, Dynamo).
_GONE_WORDS = (
    "enginecore encountered",
    "enginedead",
    "engine core",
    "engine is dead",
    "engine process",
    "background loop",
    "scheduler died",
    "illegal memory access",
    "device-side assert",
    "cuda error",
)
_DEVICE_WORDS = ("cuda", "illegal memory", "device-side", "xid", "nccl", "hip error", "acceleratorerror")


def judge_dead(situation: Situation, views: Sequence[ReplicaView]) -> list[Hypothesis]:
    """One hypothesis for each engine whose process, worker or device context is proven gone."""
    found = []
    by_name = {view.name: view for view in views if not view.is_frontend}
    engines = list(by_name) or ["default"]
    closed = {status.target.name: status for status in situation.targets if _closed(status)}
    for name in dict.fromkeys((*engines, *closed)):
        view = by_name.get(name)
        alone = len(engines) == 1 and not closed
        unnamed = [] if by_name else [log for log in situation.logs if is_current_engine_log(log)]
        logs = view.logs if view is not None else unnamed
        evidence = _fatal_lines(logs) + _api_says_gone(situation.probes, name, alone)
        if not alone and view is not None and view.busy and view.moved is False:
            evidence += _said_at_the_gateway(situation, view)
        evidence += _broken_streams(situation.streams) if alone else []
        evidence += _gone_listener(closed.get(name))
        if not any(item.strength >= 3 for item in evidence):
            continue
        if name in closed and view is not None:
            evidence.append(
                view.evidence(
                    "was-serving",
                    f"it had {many(view.inside, 'request')} inside when it was last read",
                    quantity=Quantity.RUNNING,
                    strength=1,
                    value=view.inside,
                    unit="requests",
                )
            )
        elif view is not None and view.moved:
            evidence.append(
                view.evidence(
                    "tokens-move",
                    "its counters moved in this window",
                    quantity=Quantity.GENERATION_TOKENS,
                    strength=3,
                    direction=Direction.AGAINST,
                )
            )
        elif view is not None and view.busy and view.moved is False:
            evidence.append(
                view.evidence(
                    "gauges-frozen",
                    f"{many(view.running.last if view.running else 0, 'request')} inside for ever and no counter moves",
                    quantity=Quantity.RUNNING,
                    strength=2,
                )
            )
        rival = _named_cause(evidence, situation, logs)
        found.append(
            Hypothesis(
                kind=Kind.ENGINE_DEAD,
                detail=_how_dead(evidence),
                scope=Scope(model=view.model or None if view else None, replica=None if name == "default" else name),
                summary=f"the engine behind the API is gone: {_clearest(evidence).text}",
                evidence=tuple(evidence),
                next_test="send one request straight to the replica: it must fail at once, not time out",
                ceiling=Confidence.POSSIBLE if rival else Confidence.CONFIRMED,
                capped=rival,
                confounders=("/metrics and /v1/models may go on answering 200 with the last values",),
            )
        )
    return found


def _clearest(evidence: Sequence[Evidence]) -> Evidence:
    return max((item for item in evidence if item.direction is Direction.FOR), key=lambda item: item.strength)


def is_current_engine_log(log: LogReading) -> bool:
    """The running container's log, not the previous one's and not an init container's."""
    return log.kind is LogKind.ENGINE and not log.source.startswith(("previous", "init"))


def last_words(log: LogReading) -> LogEvent | None:
    """The fatal line after which the log shows no sign of work any more.

    A fatal line before the last sign of work is an earlier life of the process.
    """
    fatal = log.last(LogMark.FATAL)
    return None if fatal is None or (log.last_progress_line or 0) > fatal.line else fatal


def _fatal_lines(logs: Sequence[LogReading]) -> list[Evidence]:
    found = []
    for log in logs:
        fatal = last_words(log)
        if fatal is None:
            continue
        found.append(
            Evidence(
                id="engine.log.fatal",
                direction=Direction.FOR,
                strength=3,
                family=Family.ENGINE,
                text=f"the log says: {fatal.text}",
                value=float(log.counts.get(LogMark.FATAL, 1)),
                unit="lines",
                n=log.lines,
                source=f"{log.source} line {fatal.line}",
            )
        )
    return found


def _api_says_gone(probes: Sequence[ProbeReading], name: str, alone: bool) -> list[Evidence]:
    """5xx answers that name the engine; a bare 503 of a health route supports, it does not prove."""
    found = []
    for probe in probes:
        if probe.status is None or probe.status < 500 or not (alone or probe.target == name):
            continue
        if _names_engine(probe) and probe.generates and not _answered_since(probe, probes):
            found.append(
                probe_evidence(probe, "gone", f"{probe.target}: {probe.status}: {probe.body or probe.error}", 3)
            )
        elif probe.path.endswith("/health") and probe.status == 503:
            found.append(probe_evidence(probe, "health", f"{probe.target}: {probe.path} answers 503", 1))
    return distinct(found)


def _said_at_the_gateway(situation: Situation, view: ReplicaView) -> list[Evidence]:
    """Something in front handed on that an engine is gone: one that stands still with work inside may be the one."""
    found = [
        probe_evidence(probe, "gone", f"{probe.target}: {probe.status}: {probe.body or probe.error}", 3)
        for probe in situation.probes
        if probe.generates
        and through_gateway(probe)
        and (probe.status or 0) >= 500
        and _names_engine(probe)
        and not _answered_since(probe, situation.probes)
        and probe.model in ("", view.model)
    ]
    return distinct(found)


def _names_engine(probe: ProbeReading) -> bool:
    said = f"{probe.body} {probe.error}".lower()
    return any(word in said for word in _GONE_WORDS)


def _answered_since(failed: ProbeReading, probes: Sequence[ProbeReading]) -> bool:
    """The same target gave tokens after it failed: what ended was one request, or one process before this one."""
    return failed.at is not None and any(
        probe.target == failed.target and probe.got_token and probe.at is not None and probe.at > failed.at
        for probe in probes
    )


def _broken_streams(streams: Sequence[StreamReading]) -> list[Evidence]:
    found = []
    for stream in streams:
        said = (stream.error or "").lower()
        if stream.completeness is Completeness.ERROR and any(word in said for word in _GONE_WORDS):
            found.append(
                Evidence(
                    id="probe.stream-error",
                    direction=Direction.FOR,
                    strength=3,
                    family=Family.PROBE,
                    text=f"a stream under HTTP 200 ended with an error event: {stream.error}",
                    source=stream.source,
                )
            )
    return found


def _closed(status: TargetStatus) -> bool:
    """It answered before and its port refuses now."""
    refused = status.failure is not None and status.failure.reason is FailureReason.REFUSED
    return refused and status.answered_at is not None


def _gone_listener(status: TargetStatus | None) -> list[Evidence]:
    if status is None:
        return []
    return [
        Evidence(
            id="engine.refused",
            direction=Direction.FOR,
            strength=3,
            family=Family.ENGINE,
            text="it answered before; now nothing listens on its port",
            source=status.target.url or status.target.name,
            age_s=status.age_s,
        )
    ]


def _named_cause(evidence: Sequence[Evidence], situation: Situation, logs: Sequence[LogReading]) -> str:
    """Why a death has another name than "engine-dead": its own log or device says what killed it; '' otherwise.

    A process that never came up, or that memory or a device took away, is judged by those causes.
    """
    said = " ".join(item.text for item in evidence if item.id == "engine.log.fatal").lower()
    if "out of memory" in said or "outofmemory" in said:
        return "the log names memory as the cause"
    if "initialization failed" in said or "failed to start" in said or any(map(_never_served, logs)):
        return "it failed while it started"
    device = any(word in said for word in _DEVICE_WORDS)
    kernel = any(log.kind is LogKind.KERNEL for log in situation.logs)
    xid = any(gpu.last.fields.get("DEV_XID_ERRORS", 0.0) > 0 for gpu in situation.gpus)
    if xid or (device and kernel):
        return "a device error stands beside it"
    return ""


def _never_served(log: LogReading) -> bool:
    """The log has the start of the process and its end, and no sign of work between."""
    return bool(log.counts.get(LogMark.STARTING)) and log.last_progress_line is None


def _how_dead(evidence: Sequence[Evidence]) -> str:
    said = " ".join(item.text for item in evidence).lower()
    if any(word in said for word in _DEVICE_WORDS):
        return "device-lost"
    if any(item.id == "engine.refused" for item in evidence):
        return "process-gone"
    return "worker-died"
