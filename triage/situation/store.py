"""Recent scrapes of live targets, and the Situation they make."""

from collections import deque
from collections.abc import Iterable, Sequence

from triage.domain.absence import known
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.reading import EngineReading, PageReading, Scrape
from triage.domain.situation import GpuWindow, NotSeen, Replica, Situation, TargetStatus
from triage.domain.stream import ProbeReading, StreamReading
from triage.domain.target import Failure, FailureReason, Target, TargetState
from triage.situation.costs import costs_of_absent
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


class _Series:
    """Moments of one model on one target."""

    def __init__(self) -> None:
        self.moments: deque[Moment] = deque()

    def add(self, at: float, reading: EngineReading, keep_s: float) -> None:
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


class Store:
    """Fed with scrapes by the monitor; asked for a Situation once a round."""

    def __init__(self, targets: Iterable[Target], *, window_s: float, limits: Limits) -> None:
        self.window_s = window_s
        self.limits = limits
        self._memory = {target.name: _TargetMemory(target) for target in targets}
        # The newest answer of each target and model: an older one is no news beside it.
        self._answers: dict[tuple[str, str], tuple[float, ProbeReading, StreamReading | None]] = {}

    def add(self, scrapes: Sequence[Scrape]) -> None:
        """Take the results of one round; every target fails alone."""
        for scrape in scrapes:
            memory = self._memory.setdefault(scrape.target.name, _TargetMemory(scrape.target))
            memory.failure = scrape.failure
            if scrape.page is not None:
                self._answered(memory, scrape, scrape.page)

    def add_probe(self, at: float, probe: ProbeReading, stream: StreamReading | None) -> None:
        """A probe's result counts until the next one of the same target and model, at most two minutes."""
        self._answers[probe.target, stream.model if stream else ""] = (at, probe, stream)

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
        patience = GAP_FACTOR * interval_s
        for memory in self._memory.values():
            statuses.append(_status(memory, at, patience))
            for series in memory.series.values():
                age = at - series.moments[-1].at
                if age > max(patience, self.window_s):
                    continue  # older than two intervals and than the window: it says nothing about now
                window = build_window(_within(series.moments, at, self.window_s), interval_s=interval_s)
                replicas.append(Replica(memory.target, _model(memory, window.last), window, age))
            if memory.pages and memory.pages[-1].gpus:
                gpus += _gpu_windows(memory.pages)
        # A copy, because a probe may end while this runs in a thread.
        answers = [answer for answer in tuple(self._answers.values()) if at - answer[0] <= _PROBE_LIFETIME_S]
        present = {
            "engine metrics": bool(replicas),
            "probe": bool(answers),
            "gateway log": False,
            "kubernetes": False,
            "gpu": bool(gpus),
        }
        return Situation(
            at=at,
            window_s=max((r.window.seconds for r in replicas), default=0.0),
            limits=self.limits,
            replicas=tuple(replicas),
            targets=tuple(statuses),
            streams=tuple(stream for _, _, stream in answers if stream is not None),
            probes=tuple(probe for _, probe, _ in answers),
            gpus=tuple(gpus),
            not_seen=(*not_seen, *costs_of_absent(present, frozenset({"engine metrics"}))),
        )

    def _answered(self, memory: _TargetMemory, scrape: Scrape, page: PageReading) -> None:
        memory.answered_at = scrape.at
        memory.pages.append(page)
        for reading in page.engines:
            series = memory.series.setdefault((reading.engine, reading.model), _Series())
            series.add(scrape.at, reading, self.window_s)
            for quantity in _TRAILED:
                value = reading.get(quantity)
                if known(value):
                    memory.trails.setdefault(quantity, Trail()).add(scrape.at, value)


def _within(moments: Sequence[Moment], at: float, window_s: float) -> list[Moment]:
    """The moments of the window, with the one just before it, so that the whole window is covered."""
    inside = [moment for moment in moments if moment.at >= at - window_s]
    if len(inside) < len(moments) and inside:
        before = moments[len(moments) - len(inside) - 1]
        return [before, *inside]
    return inside or [moments[-1]]


def _model(memory: _TargetMemory, reading: EngineReading) -> str:
    return reading.model or memory.target.model or ""


def _status(memory: _TargetMemory, at: float, patience: float) -> TargetStatus:
    page = memory.pages[-1] if memory.pages else None
    engine = page.engines[0] if page and page.engines else None
    age = None if memory.answered_at is None else max(at - memory.answered_at, 0.0)
    failure = memory.failure
    if failure is not None and failure.reason in _ANSWERS_WITHOUT_METRICS:
        state = TargetState.NO_METRICS
    elif failure is not None:
        state = TargetState.NEVER if memory.answered_at is None else TargetState.DARK
    elif page is None:
        state = TargetState.NEVER
    elif not page.engines and not page.gpus:
        state = TargetState.NO_METRICS
        failure = Failure(FailureReason.NOT_METRICS, "no engine series on the page")
    else:
        state = TargetState.STALE if age is not None and age > patience else TargetState.OK
    return TargetStatus(
        target=memory.target,
        state=state,
        failure=failure,
        answered_at=memory.answered_at,
        age_s=age,
        engine=engine.engine if engine else ("gpu exporter" if page and page.gpus else ""),
        dialect=engine.dialect if engine else "",
        families=page.families if page else frozenset(),
        problems=page.problems if page else (),
    )


_ANSWERS_WITHOUT_METRICS = frozenset(
    {
        FailureReason.NOT_FOUND,
        FailureReason.NOT_METRICS,
        FailureReason.EMPTY,
        FailureReason.TOO_LARGE,
        FailureReason.SERVER_ERROR,
        FailureReason.CLIENT_ERROR,
        FailureReason.UNAUTHORIZED,
        FailureReason.FORBIDDEN,
        FailureReason.REDIRECT,
    }
)


def _gpu_windows(pages: Sequence[PageReading]) -> list[GpuWindow]:
    first = {(g.node, g.device, g.uuid): g for g in pages[0].gpus}
    return [GpuWindow(first.get((g.node, g.device, g.uuid), g), g) for g in pages[-1].gpus]
