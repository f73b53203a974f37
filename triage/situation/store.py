"""Recent scrapes of live targets, and the Situation they make."""

from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from triage.domain.absence import known
from triage.domain.limits import Limits
from triage.domain.monitoring import MonitoringReading
from triage.domain.quantity import Quantity
from triage.domain.reading import EngineReading, PageReading, Scrape
from triage.domain.situation import GpuWindow, NotSeen, Replica, Situation, TargetStatus
from triage.domain.stream import ProbeReading, StreamReading
from triage.domain.target import Failure, Target, TargetState
from triage.domain.window import Window
from triage.situation.baselines import OwnPast, Pasts, choose
from triage.situation.costs import costs_of_absent, costs_of_source
from triage.situation.statuses import status_of, without_page
from triage.situation.trail import Trail
from triage.situation.windows import GAP_FACTOR, Moment, build_window, follow

_TRAILED = (
    Quantity.RUNNING,
    Quantity.WAITING,
    Quantity.KV_USAGE,
    Quantity.GENERATION_TOKENS,
    Quantity.GENERATION_TOKENS_LIVE,
)
# Probe results older than this say nothing about now.
_PROBE_LIFETIME_S = 120.0
# Where somebody else scrapes, a window holds at least so many of their scrapes: of fewer, one that was lost leaves
# nothing to compare.
_SCRAPES_A_WINDOW = 4
# Targets that a monitoring server told of, and that neither answered nor failed for so long, were scaled away.
_FORGET_S = 300.0


class _Series:
    """Moments of one model on one target."""

    def __init__(self) -> None:
        self.moments: deque[Moment] = deque()
        self.past = OwnPast()

    def add(self, at: float, reading: EngineReading, keep_s: float) -> None:
        self.past.add(at, reading)
        self.moments.append(follow(self.moments[-1] if self.moments else None, at, reading))
        while len(self.moments) > 2 and self.moments[1].at <= at - keep_s:
            self.moments.popleft()


class _TargetMemory:
    """What is remembered of one target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.series: dict[tuple[str, str], _Series] = {}
        self.pages: deque[PageReading] = deque(maxlen=2)
        self.answered_at: float | None = None
        self.failure: Failure | None = None
        self.trails: dict[Quantity, Trail] = {}
        self.every_s: float | None = None
        self.heard_at = 0.0


class Store:
    """Fed with scrapes by the monitor; asked for a Situation once a round."""

    def __init__(self, targets: Iterable[Target], *, window_s: float, limits: Limits) -> None:
        self.window_s = window_s
        self.limits = limits
        self._memory = {target.name: _TargetMemory(target) for target in targets}
        self._probe_failed = ""
        # The newest answer of each target and model: an older one is no news beside it.
        self._answers: dict[tuple[str, str], tuple[float, ProbeReading, StreamReading | None]] = {}
        self._monitoring: MonitoringReading | None = None
        self._pasts = Pasts(())

    def add(self, readings: Sequence[Scrape | MonitoringReading]) -> None:
        """Take the results of one round; every target fails alone. Scrapes of one target: oldest first."""
        for one in readings:
            if isinstance(one, MonitoringReading):
                self._told(one)
                continue
            memory = self._memory.setdefault(one.target.name, _TargetMemory(one.target))
            memory.failure, memory.every_s, memory.heard_at = one.failure, one.every_s, one.at
            if one.page is not None:
                self._answered(memory, one, one.page)

    def add_probe(self, at: float, probe: ProbeReading, stream: StreamReading | None) -> None:
        """A probe's result counts until the next one of the same target and model, at most two minutes."""
        self._answers[probe.target, stream.model if stream else ""] = (at, probe, stream)
        self._probe_failed = ""

    def probe_failed(self, why: str) -> None:
        """A probe was asked for and could not be sent."""
        self._probe_failed = why

    def trail(self, target: str, quantity: Quantity) -> tuple[tuple[float, float], ...]:
        """(unix seconds, value), oldest first; counters are kept as they are."""
        memory = self._memory.get(target)
        trail = memory.trails.get(quantity) if memory else None
        return trail.points() if trail else ()

    def situation(self, at: float, interval_s: float, not_seen: Sequence[NotSeen] = ()) -> Situation:
        """Everything known at `at` (unix seconds). interval_s: distance of scrapes, to tell gaps and stale ones."""
        replicas: list[Replica] = []
        statuses: list[TargetStatus] = []
        gpus: list[GpuWindow] = []
        self._forget(at)
        for memory in self._memory.values():
            pace_s = memory.every_s or interval_s
            patience, span_s = GAP_FACTOR * pace_s, self._span(memory)
            page = memory.pages[-1] if memory.pages else None
            statuses.append(
                status_of(memory.target, page, memory.failure, answered_at=memory.answered_at, at=at, patience=patience)
            )
            for series in memory.series.values():
                age = at - series.moments[-1].at
                if age > max(patience, span_s):
                    continue  # older than two intervals and than the window: it says nothing about now
                window = build_window(_within(series.moments, at, span_s), interval_s=pace_s)
                replicas.append(self._replica(memory, series, window, age))
            if memory.pages and memory.pages[-1].gpus:
                gpus += _gpu_windows(memory.pages)
        # A copy, because a probe may end while this runs in a thread.
        answers = [answer for answer in tuple(self._answers.values()) if at - answer[0] <= _PROBE_LIFETIME_S]
        told = self._monitoring
        present = {
            "engine metrics": bool(replicas),
            "probe": bool(answers),
            "gateway log": False,
            "kubernetes": False,
            "gpu": bool(gpus),
        }
        said = {one.source for one in not_seen}  # the caller knows more of these than that they are not there
        present |= dict.fromkeys(present.keys() & said, True)
        tried = {"engine metrics": without_page(statuses) or "nothing answered"}
        if self._probe_failed:
            tried["probe"] = self._probe_failed
        return Situation(
            at=at,
            window_s=max((r.window.seconds for r in replicas), default=0.0),
            limits=self.limits,
            replicas=tuple(replicas),
            targets=tuple(statuses),
            streams=tuple(stream for _, _, stream in answers if stream is not None),
            probes=tuple(probe for _, probe, _ in answers),
            gpus=tuple(gpus),
            loaded_models=tuple(
                model
                for status in statuses
                if status.processes is not None and status.state is TargetState.OK
                for model in status.processes.models
            ),
            monitored=told.targets or () if told is not None else (),
            alerts=told.alerts or () if told is not None else (),
            not_seen=(*not_seen, *_troubles(told), *costs_of_absent(present, tried)),
        )

    def _span(self, memory: _TargetMemory) -> float:
        return max(self.window_s, _SCRAPES_A_WINDOW * memory.every_s) if memory.every_s else self.window_s

    def _replica(self, memory: _TargetMemory, series: _Series, window: Window, age: float) -> Replica:
        model = _model(memory, window.last)
        kept = self._pasts.usual(memory.target.name, window.last.engine, window.last.model)
        usual = choose(window, (kept, series.past.usual()))
        if usual is None:
            return Replica(memory.target, model, window, age)
        return Replica(memory.target, model, window, age, usual.window, usual.name)

    def _told(self, reading: MonitoringReading) -> None:
        """What this look did not ask for still holds from the last one."""
        before = self._monitoring
        if before is not None:
            reading = msgspec.structs.replace(
                reading,
                targets=before.targets if reading.targets is None else reading.targets,
                alerts=before.alerts if reading.alerts is None else reading.alerts,
            )
        if reading.past is not None:
            self._pasts = Pasts(reading.past)
            reading = msgspec.structs.replace(reading, past=None)
        self._monitoring = reading

    def _forget(self, at: float) -> None:
        gone = [
            name
            for name, memory in self._memory.items()
            if memory.every_s is not None and at - memory.heard_at > _FORGET_S + memory.every_s
        ]
        for name in gone:
            del self._memory[name]

    def _answered(self, memory: _TargetMemory, scrape: Scrape, page: PageReading) -> None:
        memory.answered_at = scrape.at
        memory.pages.append(page)
        for reading in page.engines:
            series = memory.series.setdefault((reading.engine, reading.model), _Series())
            series.add(scrape.at, reading, self._span(memory))
            for quantity in _TRAILED:
                value = reading.get(quantity)
                if known(value):
                    memory.trails.setdefault(quantity, Trail()).add(scrape.at, value)


def _troubles(told: MonitoringReading | None) -> list[NotSeen]:
    """What a monitoring server could not say, and what that may hide."""
    if told is None:
        return []
    costs = costs_of_source("engine metrics")
    return [NotSeen(told.source, str(one), costs if one.blind else (), expected=one.blind) for one in told.troubles]


def _within(moments: Sequence[Moment], at: float, window_s: float) -> list[Moment]:
    """The moments of the window, with the one just before it, so that the whole window is covered."""
    inside = [moment for moment in moments if moment.at >= at - window_s]
    if len(inside) < len(moments) and inside:
        before = moments[len(moments) - len(inside) - 1]
        return [before, *inside]
    return inside or [moments[-1]]


def _model(memory: _TargetMemory, reading: EngineReading) -> str:
    return reading.model or memory.target.model or ""


def _gpu_windows(pages: Sequence[PageReading]) -> list[GpuWindow]:
    first = {(g.node, g.device, g.uuid): g for g in pages[0].gpus}
    return [GpuWindow(first.get((g.node, g.device, g.uuid), g), g) for g in pages[-1].gpus]
