"""Engines that are still starting: how far they got, whether they move, and what takes the time."""

from collections.abc import Sequence

from triage.diagnosis.death import is_current_engine_log, last_words
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.recompile import cache_lost
from triage.diagnosis.text import count, many, percent, seconds
from triage.diagnosis.thresholds import (
    START_REPEATS,
    START_SILENT_S,
    START_STEP_SILENT_S,
    START_STEPS_SILENT,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.calendar import second_of_year, seconds_between
from triage.domain.logs import LogKind, LogReading, PhaseRecord, Start, StartEnd, StartPhase
from triage.domain.situation import Situation
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope

_WORDS = {
    StartPhase.LAUNCH: "the process is being launched",
    StartPhase.WEIGHTS_DOWNLOAD: "weights are being downloaded",
    StartPhase.WEIGHTS_LOAD: "weights are being read",
    StartPhase.COMPILE: "the model is being compiled",
    StartPhase.WARM_UP: "it is being profiled and warmed up",
    StartPhase.GRAPH_CAPTURE: "graphs are being captured",
}
_NEXT = "read the log again in two minutes: the phase or its progress must have moved"


def judge_start(situation: Situation, views: Sequence[ReplicaView]) -> list[Hypothesis]:
    """One hypothesis for each engine whose own log ends inside its start."""
    return [
        _starting(log, log.starts[-1], situation, views)
        for log in situation.logs
        if is_current_engine_log(log) and log.starts and log.starts[-1].end is StartEnd.OPEN
    ]


def standing_starts(situation: Situation) -> list[str]:
    """Starts that have not moved for longer than any of their phases should take, as said in a finding."""
    found = []
    for log in situation.logs:
        if is_current_engine_log(log) and log.starts and log.starts[-1].end is StartEnd.OPEN:
            start = log.starts[-1]
            silent = _silent_for(log, start, situation.at)
            if silent is not None and silent > _patience(start, _earlier(log, situation.logs)):
                newest = start.newest
                found.append(f"{log.source}: {_WORDS[newest.phase]}, and nothing has moved for {seconds(silent)}")
    return found


def _starting(log: LogReading, start: Start, situation: Situation, views: Sequence[ReplicaView]) -> Hypothesis:
    earlier = _earlier(log, situation.logs)
    lost = cache_lost(log, start, earlier)
    evidence = [_progress(log, start), *lost, *_took_before(earlier), *_serves(log, situation, views)]
    doubt = _doubt(log, start, earlier, situation, views)
    detail = start.newest.phase.value if start.newest.phase is not StartPhase.LAUNCH else None
    return Hypothesis(
        kind=Kind.COLD_START,
        detail="cache-empty" if any(item.strength >= 3 for item in lost) else detail,
        scope=Scope(replica=None if log.target in ("default", "") else log.target),
        summary=f"the engine is still starting: {_how_far(start)}" + (f"; {lost[0].text}" if lost else ""),
        evidence=tuple(evidence),
        next_test=_NEXT,
        ceiling=Confidence.POSSIBLE if doubt else Confidence.CONFIRMED,
        capped=doubt,
        confounders=(
            "a container that is killed before it is ready looks the same from inside: look at its restarts",
            "silence of minutes and an idle GPU are normal while it compiles",
        ),
    )


def _progress(log: LogReading, start: Start) -> Evidence:
    """How far it got. Two phases, or a figure that changed, are progress; a single line is not."""
    moved = any(phase.changes for phase in start.phases)
    phases = [phase for phase in start.phases if phase.phase is not StartPhase.LAUNCH]
    moves = moved or len(phases) >= 2 or any(phase.took_s is not None for phase in phases)
    newest = start.newest
    return Evidence(
        id="engine.log.start-progress" if moves else "engine.log.start",
        direction=Direction.FOR,
        strength=3 if moves else 1,
        family=Family.ENGINE,
        text=f"the log ends inside a start: {_phases(start)}",
        value=newest.done,
        unit="steps" if newest.done is not None else "",
        threshold=newest.total,
        n=sum(phase.lines for phase in start.phases),
        source=f"{log.source} line {newest.line}",
    )


def _doubt(
    log: LogReading,
    start: Start,
    earlier: Sequence[Start],
    situation: Situation,
    views: Sequence[ReplicaView],
) -> str:
    """Why it may be something else than a start that goes on; "" when nothing speaks for that."""
    silent = _silent_for(log, start, situation.at)
    if silent is not None and silent > _patience(start, earlier):
        return f"nothing has moved for {seconds(silent)}: a start that hangs looks the same"
    if silent is not None and silent < -START_SILENT_S:
        return "the log is newer than the rest of the evidence"
    if any(past.end is not StartEnd.READY for past in earlier):
        return "an earlier start did not get ready either: a container that is killed again and again looks the same"
    if log.target in ("default", "") and len(views) > 1:
        return "which replica the log is from is not known"
    if any(other.kind is LogKind.KERNEL for other in situation.logs):
        return "the kernel's log was not judged: it may tell of a device error"
    if any(gpu.last.fields.get("DEV_XID_ERRORS", 0.0) > 0 for gpu in situation.gpus):
        return "a device error stands beside it"
    return ""


def _serves(log: LogReading, situation: Situation, views: Sequence[ReplicaView]) -> list[Evidence]:
    """Signs that it is past its start, or gone: the log is older than they are."""
    found = []
    mine = [view for view in views if not view.is_frontend and (view.name == log.target or len(views) == 1)]
    if mine:
        found.append(_against(log, "its metrics page was read: an engine that is starting has none", mine[0].name))
    answered = [probe for probe in situation.probes if probe.got_token and (probe.target == log.target or not views)]
    if answered:
        found.append(_against(log, "it answered a request with tokens", answered[0].source))
    killed = [other for other in situation.logs if other.kind is LogKind.KERNEL and last_words(other) is not None]
    if killed:
        found.append(_against(log, "the kernel killed a process for memory", killed[0].source))
    return found


def _against(log: LogReading, text: str, source: str) -> Evidence:
    return Evidence(
        id="engine.past-start",
        direction=Direction.AGAINST,
        strength=3,
        family=Family.ENGINE,
        text=text,
        source=source or log.source,
    )


def _silent_for(log: LogReading, start: Start, at: float | None) -> float | None:
    """Seconds from the start's last line to the newest sign of time: a later line, or other evidence. None without.

    A log's clock may be of another time zone than the rest; then this is off by hours, and the start is doubted.
    """
    if start.last is None:
        return None
    ages = []
    if log.last_clock is not None and log.last_clock != start.last:
        ages.append(seconds_between(start.last, log.last_clock) if start.calendar else log.last_clock - start.last)
    now = None if at is None or not start.calendar else second_of_year(at)
    if now is not None:
        ages.append(seconds_between(start.last, now))
    return max(ages, default=None, key=abs)


def _patience(start: Start, earlier: Sequence[Start]) -> float:
    """Seconds of silence that the phase it is in may have."""
    newest = start.newest
    if newest.step_s is not None and newest.left:
        return max(START_STEP_SILENT_S, START_STEPS_SILENT * newest.step_s)
    # Behind the last step or report the next phase runs, which reports when it is over.
    took = [phase.took_s or 0.0 for past in earlier for phase in past.phases]
    return max(START_SILENT_S, START_REPEATS * max(took, default=0.0))


def _earlier(log: LogReading, logs: Sequence[LogReading]) -> list[Start]:
    """Starts before this one: in the same log, and of the container before it."""
    before = [start for other in logs if other.source.startswith("previous") for start in other.starts]
    return [*before, *log.starts[:-1]]


def _took_before(earlier: Sequence[Start]) -> list[Evidence]:
    """How long a start took that got ready: what is left of this one can be told from it."""
    ready = [(past, took) for past in earlier if past.end is StartEnd.READY and (took := _duration(past)) is not None]
    if not ready:
        return []
    past, took = ready[-1]
    return [
        Evidence(
            id="engine.log.start-before",
            direction=Direction.FOR,
            strength=1,
            family=Family.ENGINE,
            text=f"an earlier start took {seconds(took)} until it was ready: {_phases(past)}",
            value=took,
            unit="s",
            n=len(ready),
        )
    ]


def _duration(start: Start) -> float | None:
    """Seconds from its first to its last line with a clock; None when they are one or none."""
    if start.first is None or start.last is None or start.first == start.last:
        return None
    return seconds_between(start.first, start.last) if start.calendar else start.last - start.first


def _how_far(start: Start) -> str:
    """The phase it is in, for a person who asks how long it will take."""
    newest = start.newest
    took, figure = _duration(start), _figure(newest)
    since = f" {seconds(took)} after its first line" if took is not None else ""
    pace = newest.step_s
    left = f", about {seconds(newest.left * pace)} to go at this pace" if newest.left and pace is not None else ""
    return f"{_WORDS[newest.phase]}{since}{f' ({figure})' if figure else ''}{left}"


def _phases(start: Start) -> str:
    return ", ".join(f"{phase.phase.value}{_told(phase)}" for phase in start.phases)


def _told(phase: PhaseRecord) -> str:
    took = seconds(phase.took_s) if phase.took_s is not None else ""
    said = ", ".join(part for part in (_figure(phase), took) if part)
    return f" ({said})" if said else ""


def _figure(phase: PhaseRecord) -> str:
    if phase.done is None or phase.total is None:
        return ""
    if phase.total == 100:
        return percent(phase.done / 100)
    return f"{count(phase.done)} of {many(phase.total, 'step')}"
