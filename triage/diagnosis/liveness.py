"""Work accepted and nothing moving."""

import re
from collections.abc import Sequence

from triage.diagnosis.devices import gpu_evidence
from triage.diagnosis.frozen import frozen_gauges, page_is_old, stale_page
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.text import count, many, seconds, verb
from triage.diagnosis.thresholds import STALL_SECONDS, TAIL_SECONDS
from triage.diagnosis.view import ReplicaView
from triage.diagnosis.witness import probe_evidence, through_gateway
from triage.domain.absence import known
from triage.domain.logs import LogMark
from triage.domain.quantity import Quantity
from triage.domain.situation import GpuWindow, Situation, TargetStatus
from triage.domain.stream import ProbeReading
from triage.domain.target import TargetState
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope

# How people note that a request was taken and nothing came.
_NOTHING_CAME = re.compile(
    r"\bno (?:event|byte|token|data|answer|response|output)|\bh[au]ngs?\b|tim(?:ed|e)[ -]?out", re.I
)
# Counters that move with every step.
_LIVE = (Quantity.ENGINE_STEPS, Quantity.GENERATION_TOKENS_LIVE, Quantity.GENERATION_TOKENS)


def judge_standstill(view: ReplicaView, situation: Situation, alone: bool) -> list[Hypothesis]:
    """Work was accepted and nothing moved: a stall, or gauges that nobody writes any more."""
    if page_is_old(view):
        return [stale_page(view)]
    answered, hung = _newest(
        [p for p in situation.probes if p.generates and (p.got_token or hung_up(p)) and _reaches(p, view, alone)]
    )
    asleep = view.track(Quantity.AWAKE)
    if asleep is not None and asleep.last == 0:
        return [_asleep(view)]
    stuck = _stuck_rank(view)
    if stuck is not None:
        return [stuck]
    still = view.busy and view.moved is False
    if not still and view.standing_for >= TAIL_SECONDS:
        # It worked in this window and stands now. What answered before that says nothing of now.
        since = (situation.at or 0.0) - view.standing_for
        still, answered = True, [probe for probe in answered if probe.at is not None and probe.at > since]
    unknown = view.moved is None and view.comparable and view.busy
    if not still and not (unknown and hung):
        return []
    if still and answered:
        return [frozen_gauges(view, answered)]
    return [_stalled(view, situation.gpus if alone else (), hung, still)]


def _newest(probes: Sequence[ProbeReading]) -> tuple[list[ProbeReading], list[ProbeReading]]:
    """(answered, hung): only the outcome of the newest request counts; an answer from before says nothing of now."""
    newest = max(enumerate(probes), key=lambda pair: (pair[1].at or 0.0, pair[0]), default=None)
    if newest is None:
        return [], []
    answered = newest[1].got_token
    kept = [probe for probe in probes if probe.got_token is answered]
    return (kept, []) if answered else ([], kept)


def _stalled(view: ReplicaView, gpus: Sequence[GpuWindow], hung: Sequence[ProbeReading], still: bool) -> Hypothesis:
    running, waiting = view.running, view.queued
    inside = view.inside
    there = f"{many(inside, 'request')} {verb(inside, 'is', 'are')} inside"
    span = view.standing_for if view.moved and still else view.window.seconds
    evidence = []
    if still:
        evidence.append(
            view.evidence(
                "no-progress",
                f"{there} and no token, step or finish in {seconds(span)}",
                quantity=view.work_quantity,
                strength=3,
                value=0.0,
                unit="tokens",
                n=view.window.readings,
            )
        )
    elif running is not None:
        evidence.append(
            view.evidence(
                "running",
                f"{many(running.last, 'request')} running",
                quantity=Quantity.RUNNING,
                strength=1,
                value=running.last,
                unit="requests",
            )
        )
    evidence += [
        probe_evidence(probe, "no-token", f"{probe.target}: accepted, no token in {seconds(probe.total_s or 0)}", 3)
        for probe in hung[:1]
    ]
    # Before it stopped, a queue may have grown for any reason.
    grew = waiting is not None and waiting.last > waiting.first and not view.moved
    if grew and waiting is not None:
        evidence.append(
            view.evidence(
                "queue-grows",
                f"the queue grew from {count(waiting.first)} to {count(waiting.last)}",
                quantity=Quantity.WAITING,
                value=waiting.last,
                unit="requests",
            )
        )
    warned = [event for log in view.logs if (event := log.last(LogMark.STALL_WARNING)) is not None]
    if warned:
        evidence.append(
            Evidence(
                id="engine.log.stall-warning",
                direction=Direction.FOR,
                strength=2,
                family=Family.ENGINE,
                text=f"the log says: {warned[0].text}",
                source=f"{view.logs[0].source} line {warned[0].line}",
            )
        )
    halted = still and _halted(view)
    idle_cpu = view.window.quiet.get(Quantity.ENGINE_CPU, 0.0)
    if halted:
        evidence.append(
            view.evidence(
                "no-cpu",
                f"the process that makes the steps took no CPU time in {seconds(idle_cpu)}, and the page is fresh",
                quantity=Quantity.ENGINE_CPU,
                strength=3,
                value=0.0,
                unit="s",
            )
        )
    hot = [gpu for gpu in gpus if gpu.last.fields.get("DEV_GPU_UTIL", 0) >= 90] if still else []
    evidence += [gpu_evidence(gpu, "busy", "its kernel is still resident", strength=1) for gpu in hot[:1]]
    # Gauges that nobody rewrites after all clients left look the same; then no probe hangs, nothing new
    # arrives, and the device idles (cases.md, recurring traps).
    sure = bool(hung) or grew or bool(warned) or bool(hot) or halted
    short = span < STALL_SECONDS
    return Hypothesis(
        kind=Kind.ENGINE_STALLED,
        detail="no-steps" if still else "no-token",
        scope=Scope(model=view.model or None, replica=view.name),
        summary=f"{there} and nothing has moved for {seconds(span)}",
        evidence=tuple(evidence),
        next_test="" if hung else "send one short request to the replica and wait 20 s for its first token",
        tested=bool(hung),
        ceiling=Confidence.POSSIBLE if short or not sure else Confidence.CONFIRMED,
        capped=(
            f"that is shorter than {seconds(STALL_SECONDS)}"
            if short
            else ""
            if sure
            else "gauges that stopped being written look the same: a probe separates them"
        ),
        confounders=("health routes answer 200 during a stall", "phase histograms look perfect during a stall"),
    )


def _halted(view: ReplicaView) -> bool:
    """The process that makes the steps does not run at all, as told by another one that does."""
    fresh = view.window.delta(Quantity.PROCESS_CPU)
    return view.window.quiet.get(Quantity.ENGINE_CPU, 0.0) >= TAIL_SECONDS and known(fresh) and fresh > 0


def _stuck_rank(view: ReplicaView) -> Hypothesis | None:
    """One data-parallel rank stands still with work inside while the others go on."""
    if not view.moved or view.window.seconds < STALL_SECONDS:
        return None
    for label, tracks in view.window.rank_gauges.items():
        running, waiting = tracks.get(Quantity.RUNNING), tracks.get(Quantity.WAITING)
        counted = view.window.rank_deltas.get(label, {})
        live = [counted[q] for q in _LIVE if q in counted and q not in view.window.last.late]
        if running is None or running.low <= 0 or not live or any(live):
            continue
        grew = waiting is not None and waiting.last > waiting.first
        return Hypothesis(
            kind=Kind.ENGINE_STALLED,
            detail="no-steps",
            scope=Scope(model=view.model or None, replica=view.name),
            summary=f"rank {label}: {many(running.last, 'request')} inside and nothing has moved for "
            f"{seconds(view.window.seconds)}, while other ranks go on",
            evidence=(
                view.evidence(
                    "rank-no-progress",
                    f"{label}: no token or step with {many(running.last, 'request')} running",
                    quantity=view.work_quantity,
                    strength=3,
                    value=0.0,
                    unit="tokens",
                ),
            ),
            next_test="send short requests until one lands on that rank: it must hang",
            ceiling=Confidence.CONFIRMED if grew else Confidence.POSSIBLE,
            capped="" if grew else "its gauges may only have stopped being written",
        )
    return None


def _asleep(view: ReplicaView) -> Hypothesis:
    return Hypothesis(
        kind=Kind.ENGINE_STALLED,
        detail="asleep",
        scope=Scope(model=view.model or None, replica=view.name),
        summary="the engine was put to sleep and serves nothing until it is woken",
        evidence=(
            view.evidence("asleep", "it says that it is not awake", quantity=Quantity.AWAKE, strength=3, value=0.0),
        ),
        next_test="ask who uses the sleep mode before waking it",
    )


def dark_targets(targets: Sequence[TargetStatus]) -> list[TargetStatus]:
    """Targets that do not answer at all; whether they are dead or unreachable needs another witness."""
    return [status for status in targets if status.state in (TargetState.DARK, TargetState.NEVER)]


def hung_up(probe: ProbeReading) -> bool:
    """A request for tokens that was taken and gave none until its time was up.

    A plain 200 without a word about it is no such thing: its tokens were only not counted.
    """
    silent = probe.status is None or (probe.status == 200 and bool(probe.error or _NOTHING_CAME.search(probe.note)))
    return probe.generates and silent and not probe.got_token and (probe.total_s or 0) >= 5


def _reaches(probe: ProbeReading, view: ReplicaView, alone: bool) -> bool:
    """Whether the probe speaks of this replica: sent to it, or nothing else could have answered."""
    return probe.target == view.name or (alone and not through_gateway(probe))
