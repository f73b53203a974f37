"""The watcher watched: metrics that are missing, and names that dashboards still use after a rename."""

import re
from collections.abc import Sequence

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.text import many, verb
from triage.diagnosis.view import UNNAMED_TARGET
from triage.diagnosis.witness import through_gateway
from triage.domain.logs import LogKind, LogMark
from triage.domain.situation import MonitoredTarget, QueriedMetric, Situation, TargetStatus
from triage.domain.stream import Completeness
from triage.domain.target import FailureReason, TargetState
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope

# Failures that say "the server is there and does not serve metrics on this route".
_ENDPOINT_FAILURES = frozenset(
    {
        FailureReason.NOT_FOUND,
        FailureReason.SERVER_ERROR,
        FailureReason.CLIENT_ERROR,
        FailureReason.NOT_METRICS,
        FailureReason.EMPTY,
        FailureReason.TOO_LARGE,
        FailureReason.UNAUTHORIZED,
        FailureReason.FORBIDDEN,
    }
)
_PROFILING = "PROF_"
_LEAVES_OUT = re.compile(r"Not collecting|\bDCP\b|PROF_|profiling|not enabled|Skipping line", re.I)
# What any program's client library and web framework export; an engine's server does so too, before its own.
_RUNTIME = ("python_", "process_", "go_", "promhttp_", "http_", "scrape_")
# A scrape error that only something that answers can cause; 502 to 504 are a proxy's.
_ROUTE_ANSWERS = re.compile(r"HTTP status (?!50[234])\d|start token|Content-Type|parse|invalid metric|duplicate", re.I)


def judge_missing(situation: Situation) -> list[Hypothesis]:
    """Expected series that are absent: endpoint off or failing, not scraped, wrong target, partial."""
    found = [_endpoint(status, situation) for status in situation.targets if _serves_no_metrics(status)]
    down = [target for target in situation.monitored if target.health == "down"]
    served = _answers(situation)
    if down and served is not None:
        # Refused or timed out, it is down for monitoring as it may be for users, unless it gave the answer itself.
        itself = len(situation.monitored) == 1 and served.strength >= 3
        answering = [target for target in down if _ROUTE_ANSWERS.search(target.error)]
        if answering or itself:
            found.append(_not_scraped(answering or down, served, route_answers=bool(answering)))
    partial = _partial(situation)
    if partial is not None:
        found.append(partial)
    return found


def judge_relabelled(situation: Situation) -> list[Hypothesis]:
    """Pages that carry an engine's series under names that no engine exports."""
    return [
        Hypothesis(
            kind=Kind.METRICS_RENAMED,
            detail="relabelled",
            scope=Scope(replica=status.target.name),
            summary=f"{status.target.name} has an engine's series under other names: {status.relabelled}",
            evidence=(
                Evidence(
                    id="engine.relabelled",
                    direction=Direction.FOR,
                    strength=3,
                    family=Family.ENGINE,
                    text=status.relabelled,
                    source=status.target.url or status.target.name,
                    age_s=status.age_s,
                ),
            ),
            next_test="read the page of the engine itself, without the proxy or collector: its names must be the usual",
            ceiling=Confidence.LIKELY,
            capped="the engine's own page was not read",
        )
        for status in situation.targets
        if status.state is TargetState.NO_METRICS and status.relabelled
    ]


def judge_renamed(situation: Situation) -> Hypothesis | None:
    """Queries whose names are gone from a rich page that carries their successors."""
    stale = [
        (query, metric)
        for query in situation.queries
        if query.empty is not False
        for metric in query.metrics
        if metric.exported is False and (metric.renamed_to or metric.removed)
    ]
    if not stale:
        return None
    evidence = []
    for query, metric in stale:
        if metric.renamed_to:
            text = f"{metric.name} is not exported any more; {' and '.join(metric.renamed_to)} is"
        else:
            text = f"{metric.name} was removed without a successor ({metric.note})"
        evidence.append(
            Evidence(
                id=f"engine.renamed.{metric.name}",
                direction=Direction.FOR,
                strength=3 if metric.renamed_to else 1,
                family=Family.ENGINE,
                text=text,
                source=f"{query.source}: {query.expression}",
            )
        )
    return Hypothesis(
        kind=Kind.METRICS_RENAMED,
        detail="dashboard-query",
        scope=Scope(),
        summary=_renamed_summary([metric for _, metric in stale]),
        evidence=tuple(evidence),
        next_test="run the query with the new name: it must return series",
        tested=any(query.empty for query, _ in stale),
    )


def _renamed_summary(stale: Sequence[QueriedMetric]) -> str:
    renamed = [metric for metric in stale if metric.renamed_to]
    if len(stale) == 1 and renamed:
        return f"a dashboard asks for {stale[0].name}, which the page calls {' and '.join(stale[0].renamed_to)}"
    live_on = f"{len(renamed)} of them live on under another name" if len(renamed) != 1 else "one has another name now"
    return (
        f"{many(len(stale), 'name')} in dashboard queries {verb(len(stale), 'is', 'are')} gone from the page; {live_on}"
    )


# ---- missing


def is_foreign(status: TargetStatus) -> bool:
    """Its page has other software's metrics: an engine that is not read yet, a router, a gateway, an exporter."""
    if status.relabelled:
        return False
    return status.state is TargetState.NO_METRICS and any(not f.startswith(_RUNTIME) for f in status.families)


def _serves_no_metrics(status: TargetStatus) -> bool:
    if is_foreign(status) or status.relabelled:
        return False
    if status.state is TargetState.NO_METRICS:
        return True
    return status.failure is not None and status.failure.reason in _ENDPOINT_FAILURES


def _endpoint(status: TargetStatus, situation: Situation) -> Hypothesis:
    reason = status.failure.reason if status.failure else FailureReason.NOT_METRICS
    said = str(status.failure) if status.failure else "no engine series on the page"
    who = "the target" if status.target.name == UNNAMED_TARGET else status.target.name
    if status.failure is not None and reason is FailureReason.NOT_METRICS:
        said = status.failure.detail or said
    off = "--" in said or reason is FailureReason.NOT_FOUND
    # Another page than an engine's, be it HTML or an exporter of something else: the address is wrong.
    wrong = reason in (FailureReason.NOT_METRICS, FailureReason.REDIRECT)
    evidence = [
        Evidence(
            id="engine.no-metrics",
            direction=Direction.FOR,
            strength=3,
            family=Family.ENGINE,
            text=f"{status.target.name}: {said}",
            n=1,
            source=status.target.url or status.target.name,
            age_s=status.age_s,
        )
    ]
    served = _answers(situation)
    if served is not None:
        evidence.append(served)
    return Hypothesis(
        kind=Kind.METRICS_MISSING,
        detail="wrong-target" if wrong else "endpoint-off" if off else "endpoint-failing",
        scope=Scope(replica=status.target.name),
        summary=f"{who} answers, but not with an engine's metrics: {said}",
        evidence=tuple(evidence),
        next_test="send one short request: when it is answered, only the metrics are missing",
        tested=served is not None,
    )


def _not_scraped(down: Sequence[MonitoredTarget], served: Evidence, route_answers: bool) -> Hypothesis:
    first = down[0]
    return Hypothesis(
        kind=Kind.METRICS_MISSING,
        detail="endpoint-failing" if first.error else "not-scraped",
        scope=Scope(),
        summary=(
            f"monitoring cannot scrape {first.url or first.job} ({first.error or 'down'}) although the engine answers"
        ),
        evidence=(
            served,
            Evidence(
                id="engine.target-down",
                direction=Direction.FOR,
                strength=3,
                family=Family.ENGINE,
                text=f"monitoring calls it down: {first.error or 'no reason given'}",
                n=len(down),
                source=f"{first.source} {first.url}",
            ),
        ),
        next_test="GET the metrics URL by hand and read the body of the answer",
        tested=route_answers,
        ceiling=Confidence.CONFIRMED if route_answers else Confidence.LIKELY,
    )


def _answers(situation: Situation) -> Evidence | None:
    """Proof that an engine serves: a probe with tokens, or a complete stream; one sent to the engine itself first."""
    for probe in sorted(situation.probes, key=through_gateway):
        if probe.generates and (probe.got_token or (probe.status == 200 and not probe.error and probe.total_s)):
            return Evidence(
                id="probe.answers",
                direction=Direction.FOR,
                strength=2 if through_gateway(probe) else 3,
                family=Family.PROBE,
                text=f"{probe.target}: a request for tokens is answered with {probe.status}",
                value=probe.total_s,
                unit="s",
                n=1,
                source=f"{probe.source} {probe.method} {probe.path}",
            )
    for stream in situation.streams:
        if stream.completeness is Completeness.COMPLETE:
            return Evidence(
                id="probe.answers",
                direction=Direction.FOR,
                strength=3,
                family=Family.PROBE,
                text="a stream is answered to its end",
                n=stream.chunks or None,
                source=stream.source,
            )
    return None


def _partial(situation: Situation) -> Hypothesis | None:
    """Devices without profiling fields beside others that have them, or whose exporter says why it skips them."""
    lacking = [gpu.last for gpu in situation.gpus if not any(f.startswith(_PROFILING) for f in gpu.last.fields)]
    having = [gpu.last for gpu in situation.gpus if any(f.startswith(_PROFILING) for f in gpu.last.fields)]
    complaints = [
        (log, event)
        for log in situation.logs
        if log.kind is LogKind.EXPORTER
        and (event := log.last(LogMark.COLLECTION_ERROR)) is not None
        # An exporter that collects nothing at all is another trouble than fields it leaves out.
        and _LEAVES_OUT.search(event.text)
    ]
    if not lacking or not (having or complaints):
        return None
    node = lacking[0].node or lacking[0].target
    evidence = [
        Evidence(
            id="gpu.no-profiling",
            direction=Direction.FOR,
            strength=3 if having else 2,
            family=Family.GPU,
            text=f"{node}: device fields are there, profiling fields (SM, tensor, DRAM activity) are not"
            + (f"; {having[0].node or having[0].target} has them" if having else ""),
            n=len(lacking),
            source=lacking[0].source,
        )
    ]
    evidence += [
        Evidence(
            id="gpu.exporter-log",
            direction=Direction.FOR,
            strength=2 if having else 3,
            family=Family.GPU,
            text=f"the exporter's log says: {event.text}",
            source=f"{log.source} line {event.line}",
        )
        for log, event in complaints[:1]
    ]
    return Hypothesis(
        kind=Kind.METRICS_MISSING,
        detail="partial",
        scope=Scope(node=node),
        summary=f"{node} exports no GPU profiling fields: activity there is unknown, not zero",
        evidence=tuple(evidence),
        next_test="read the exporter's start lines on that node: the profiling module, the driver, the field list",
    )
