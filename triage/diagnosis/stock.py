"""What speaks for and against health, witness by witness, without naming a cause."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from triage.diagnosis.answers_stock import probe_stock, sent_by_nobody, stream_stock
from triage.diagnosis.death import is_current_engine_log, last_words
from triage.diagnosis.host import cpu_evidence
from triage.diagnosis.liveness import dark_targets
from triage.diagnosis.monitoring import is_foreign
from triage.diagnosis.peers import Peers
from triage.diagnosis.replica_stock import replica_stock
from triage.diagnosis.start import standing_starts
from triage.diagnosis.text import percent
from triage.diagnosis.thresholds import (
    WHOLLY_ON_GPU,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.logs import LogKind, LogMark
from triage.domain.situation import Situation
from triage.domain.verdict import Direction, Evidence, Family

# Requests wait in every reading, and nothing says for how long.
UNMEASURED_QUEUE = "engine.always-waiting"


class Findings(msgspec.Struct, frozen=True):
    """What speaks against health without naming a cause, and what speaks for it.

    outside: clients leave or are refused; the cause may lie in front of the engine.
    false_alarm: an alarming line in a log, and why it means nothing; "" without one.
    """

    broken: tuple[Evidence, ...]
    outside: tuple[Evidence, ...]
    good: tuple[Evidence, ...]
    unreadable: tuple[str, ...]
    false_alarm: str = ""


def take_stock(situation: Situation, views: Sequence[ReplicaView]) -> Findings:
    """Everything that breaks a limit or shows one kept, over replicas, probes, streams and targets."""
    broken: list[Evidence] = []
    outside: list[Evidence] = []
    good: list[Evidence] = []
    unreadable: list[str] = []
    by_model: dict[str, list[ReplicaView]] = defaultdict(list)
    for view in views:
        by_model[view.model].append(view)
    peers = {model: Peers(own) for model, own in by_model.items()}
    for view in views:
        bad, leaving, fine, blind = replica_stock(view, peers[view.model], situation)
        broken += bad
        outside += leaving
        good += fine
        unreadable += blind
    for status in dark_targets(situation.targets):
        broken.append(
            Evidence(
                id="engine.dark",
                direction=Direction.AGAINST,
                strength=3,
                family=Family.ENGINE,
                text=f"{status.target.name} does not answer ({status.failure or status.state.value})",
                source=status.target.url or status.target.name,
                age_s=status.age_s,
            )
        )
    unreadable += [
        f"{status.target.name}: its metrics are not those of an engine that is known here"
        for status in situation.targets
        if is_foreign(status)
    ]
    unreadable += [
        f"{log.source} ends with: {fatal.text}"
        for log in situation.logs
        if log.kind is LogKind.ENGINE and (fatal := last_words(log)) is not None
    ]
    unreadable += standing_starts(situation)
    unreadable += [
        f"{log.source}: the engine was told to stop, and no other start follows"
        for log in situation.logs
        if not views and is_current_engine_log(log) and log.stopped_line is not None
    ]
    unreadable += [
        f"{model.name}: only {percent(model.on_gpu)} of it is in GPU memory, so it may be slow"
        for model in situation.loaded_models
        if model.on_gpu is not None and model.on_gpu < WHOLLY_ON_GPU
    ]
    broken += [
        Evidence(
            id="engine.target-down",
            direction=Direction.AGAINST,
            strength=2,
            family=Family.ENGINE,
            text=f"monitoring calls {target.url or target.job} down ({target.error or 'no reason given'})",
            source=target.source,
        )
        for target in situation.monitored
        if target.health == "down"
    ]
    broken += cpu_evidence(situation.containers)
    if any(map(sent_by_nobody, situation.probes)):
        unreadable.append("requests without credentials were sent on purpose, and who may reach what is not judged yet")
    for probe in situation.probes:
        if probe.generates:
            evidence, ok = probe_stock(probe, situation)
            (good if ok else broken).append(evidence)
    broken += [
        Evidence(
            id="probe.refused",
            direction=Direction.AGAINST,
            strength=2,
            family=Family.PROBE,
            text=f"a request was answered with an error{f' {error.status}' if error.status else ''}: {error.message}",
            n=1,
            source=error.source,
        )
        for error in situation.error_answers
    ]
    for stream in situation.streams:
        if not stream.timed and (stream.reasoning_tokens or stream.reasoning_chars) and stream.visible_chars:
            # When its text became visible is the question, and it does not say.
            unreadable.append(
                f"{stream.source}: part of this answer is reasoning, and it says nothing of when text came"
            )
            continue
        evidence, ok = stream_stock(stream, situation)
        (good if ok else broken).append(evidence)
    return Findings(
        tuple(broken), tuple(outside), tuple(good), tuple(dict.fromkeys(unreadable)), _false_alarm(situation, views)
    )


def _false_alarm(situation: Situation, views: Sequence[ReplicaView]) -> str:
    """Engines warn of a hang while they only wait for work."""
    warned = any(log.last(LogMark.STALL_WARNING) is not None for log in situation.logs)
    idle = bool(views) and all(view.idle for view in views)
    return "the warning in the log is harmless while nothing waits" if warned and idle else ""
