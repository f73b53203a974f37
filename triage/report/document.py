"""The JSON form of a diagnosis: `triage.diagnosis/1`. Its JSON Schema is made from these types."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from triage.domain.absence import known
from triage.domain.quantity import Quantity
from triage.domain.situation import Replica, Situation, TargetStatus
from triage.domain.target import TargetState
from triage.domain.verdict import Confidence, Diagnosis, Evidence, Kind, Scope, Share, Verdict
from triage.domain.window import Window
from triage.report import times

SCHEMA = "triage.diagnosis/1"

# Means shown beside the gauges and rates of a target: quantity to its name in `readings`.
_MEANS: Mapping[Quantity, str] = {
    Quantity.TTFT: "ttft_mean_s",
    Quantity.ITL: "itl_mean_s",
    Quantity.QUEUE_TIME: "queue_time_mean_s",
    Quantity.PREFILL_TIME: "prefill_time_mean_s",
    Quantity.E2E: "e2e_mean_s",
}


class VerdictEntry(msgspec.Struct, frozen=True):
    kind: Kind
    detail: str | None
    confidence: Confidence | None
    scope: Scope
    summary: str
    share: Share | None
    evidence: tuple[Evidence, ...]
    runbook: str | None
    next_test: str
    confounders: tuple[str, ...]


class RuledOutEntry(msgspec.Struct, frozen=True):
    kind: Kind
    because: str
    scope: Scope


class NotSeenEntry(msgspec.Struct, frozen=True):
    """expected: it was configured or lies in the folder."""

    source: str
    why: str
    costs: tuple[str, ...]
    expected: bool


class TargetEntry(msgspec.Struct, frozen=True):
    """readings: gauges at the end of the window, counter increases as `<name>_delta`, means as `<name>_mean_s`.

    A name that is missing was not exported or cannot be known; it is never 0 for that reason.
    """

    name: str
    url: str
    engine: str
    dialect: str
    version: str
    model: str
    role: str
    state: TargetState
    why: str | None
    age_s: float | None
    readings: dict[str, float]
    baseline: dict[str, float] | None = None
    baseline_name: str | None = None


class AlertEntry(msgspec.Struct, frozen=True):
    """What a monitoring server concluded; the diagnosis does not rest on it. since: ISO 8601 or null."""

    name: str
    state: str
    since: str | None
    labels: dict[str, str]
    summary: str
    expression: str
    source: str


class DiagnosisDocument(msgspec.Struct, frozen=True):
    """at: ISO 8601 UTC or null when the evidence carries no time. assumed_interval: the distance of the
    readings is the default, not in the evidence; rates rest on it."""

    at: str | None
    window_s: float
    assumed_interval: bool
    verdicts: tuple[VerdictEntry, ...]
    ruled_out: tuple[RuledOutEntry, ...]
    not_seen: tuple[NotSeenEntry, ...]
    targets: tuple[TargetEntry, ...]
    alerts: tuple[AlertEntry, ...] = ()
    schema: Literal["triage.diagnosis/1"] = "triage.diagnosis/1"


def document(situation: Situation, diagnosis: Diagnosis) -> DiagnosisDocument:
    return DiagnosisDocument(
        at=iso(diagnosis.at),
        window_s=_tidy(diagnosis.window_s),
        assumed_interval=any(replica.window.assumed for replica in situation.replicas),
        verdicts=tuple(map(_verdict, diagnosis.verdicts)),
        ruled_out=tuple(RuledOutEntry(out.kind, out.because, out.scope) for out in diagnosis.ruled_out),
        not_seen=tuple(NotSeenEntry(s.source, s.why, s.costs, s.expected) for s in diagnosis.not_seen),
        targets=tuple(_targets(situation)),
        alerts=tuple(
            AlertEntry(a.name, a.state, iso(a.since), dict(a.labels), a.summary, a.expression, a.source)
            for a in situation.alerts
        ),
    )


def to_json(situation: Situation, diagnosis: Diagnosis) -> bytes:
    """One JSON object, keys in the documented order, indented by two, a line break at the end."""
    built = msgspec.to_builtins(document(situation, diagnosis))
    ordered = {"schema": SCHEMA} | {key: value for key, value in built.items() if key != "schema"}
    return msgspec.json.format(msgspec.json.encode(ordered), indent=2) + b"\n"


def json_schema() -> dict[str, object]:
    return msgspec.json.schema(DiagnosisDocument)


def iso(at: float | None) -> str | None:
    return None if at is None else times.iso(at)


def _verdict(verdict: Verdict) -> VerdictEntry:
    share = verdict.share
    return VerdictEntry(
        kind=verdict.kind,
        detail=verdict.detail,
        confidence=verdict.confidence,
        scope=verdict.scope,
        summary=verdict.summary,
        share=None if share is None else Share(_tidy(share.value), _tidy(share.low), _tidy(share.high), share.of),
        evidence=tuple(
            msgspec.structs.replace(
                item,
                value=None if item.value is None else _tidy(item.value),
                threshold=None if item.threshold is None else _tidy(item.threshold),
            )
            for item in verdict.evidence
        ),
        runbook=verdict.runbook,
        next_test=verdict.next_test,
        confounders=verdict.confounders,
    )


def _targets(situation: Situation) -> list[TargetEntry]:
    by_name: dict[str, list[Replica]] = {}
    for replica in situation.replicas:
        by_name.setdefault(replica.target.name, []).append(replica)
    entries = []
    for status in situation.targets:
        replicas = by_name.get(status.target.name, [])
        if replicas:
            entries += [_replica(status, replica) for replica in replicas]
        else:
            entries.append(_bare(status))
    return entries


def _replica(status: TargetStatus, replica: Replica) -> TargetEntry:
    last = replica.window.last
    return TargetEntry(
        name=status.target.name,
        url=status.target.url,
        engine=last.engine,
        dialect=last.dialect,
        version=last.version,
        model=replica.model,
        role=last.role.value,
        state=status.state,
        why=str(status.failure) if status.failure else None,
        age_s=status.age_s,
        readings=readings_of(replica.window),
        baseline=readings_of(replica.baseline) if replica.baseline is not None else None,
        baseline_name=replica.baseline_name if replica.baseline is not None else None,
    )


def _bare(status: TargetStatus) -> TargetEntry:
    told = status.processes
    return TargetEntry(
        name=status.target.name,
        url=status.target.url,
        engine=status.engine,
        dialect=status.dialect,
        version=told.version if told is not None else "",
        model=", ".join(model.name for model in told.models) if told is not None else "",
        role="",
        state=status.state,
        why=str(status.failure) if status.failure else None,
        age_s=status.age_s,
        readings={},
    )


def readings_of(window: Window) -> dict[str, float]:
    found: dict[str, float] = {}
    for quantity, track in window.gauges.items():
        found[quantity.value] = _tidy(track.last)
    for quantity, value in window.deltas.items():
        found[f"{quantity.value}_delta"] = _tidy(value)
    for quantity, name in _MEANS.items():
        mean = window.mean(quantity)
        if known(mean):
            found[name] = _tidy(mean)
    return found


def _tidy(value: float) -> float:
    """Six significant digits: enough for a person, and the same bytes on every machine."""
    return float(f"{value:.6g}") if value == value and abs(value) != float("inf") else value
