"""Readings and windows by hand, for tests of judgements."""

from collections.abc import Mapping, Sequence

from triage.domain.histogram import Histogram
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading, RankReading, Role
from triage.domain.situation import Replica, Situation, TargetStatus
from triage.domain.target import Target, TargetState
from triage.situation.windows import build_window, moments_of

EDGES = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


def histogram(mean: float, count: float, edges: Sequence[float] = EDGES) -> Histogram:
    """All observations at `mean`."""
    counts = tuple(count if mean <= edge else 0.0 for edge in edges)
    return Histogram(tuple(edges), (*counts, count), mean * count, count)


def reading(
    values: Mapping[Q, float],
    *,
    histograms: Mapping[Q, Histogram] | None = None,
    ranks: Mapping[str, Mapping[Q, float]] | None = None,
    name: str = "a",
    model: str = "m",
    engine: str = "vllm",
    role: Role = Role.MIXED,
    late: frozenset[Q] = frozenset({Q.FINISHED, Q.E2E}),
) -> EngineReading:
    return EngineReading(
        target=name,
        source=f"{name}.prom",
        at=None,
        engine=engine,
        dialect="v1",
        version="",
        model=model,
        role=role,
        values=dict(values),
        histograms=dict(histograms or {}),
        finished={},
        ranks=tuple(RankReading(label, dict(own)) for label, own in (ranks or {}).items()),
        not_applicable=frozenset(),
        names={},
        late=late,
    )


def replica(
    before: EngineReading, after: EngineReading, *, seconds: float = 30.0, baseline: Replica | None = None
) -> Replica:
    window = build_window(moments_of([(0.0, before), (seconds, after)]))
    return Replica(Target(after.target), after.model, window, 0.0, baseline.window if baseline else None)


def situation(*replicas: Replica, limits: Limits | None = None, **rest: object) -> Situation:
    statuses = tuple(TargetStatus(r.target, TargetState.OK, age_s=0.0, engine="vllm") for r in replicas)
    fields: dict[str, object] = {"targets": statuses, **rest}
    return Situation(at=None, window_s=30.0, limits=limits or Limits(), replicas=tuple(replicas), **fields)  # type: ignore[arg-type]


def serving(
    name: str = "a",
    *,
    running: float = 8,
    waiting: float = 0,
    kv: float = 0.3,
    itl: float = 0.025,
    itl_before: float = 0.025,
    ttft: float = 0.3,
    queue: float = 0.0,
    prefill: float = 0.2,
    tokens: float = 9000,
    prompt: float = 20000,
    finished: float = 60,
    preemptions: float = 0,
    model: str = "m",
    seconds: float = 30.0,
) -> Replica:
    """A vLLM replica at work; what is not named is healthy."""
    levels = {Q.RUNNING: running, Q.WAITING: waiting, Q.KV_USAGE: kv}
    start = {
        Q.GENERATION_TOKENS: 1e6,
        Q.PROMPT_TOKENS: 2e6,
        Q.FINISHED: 5e3,
        Q.PREEMPTIONS: 0.0,
        Q.ENGINE_STEPS: 1e5,
    }
    end = {
        Q.GENERATION_TOKENS: 1e6 + tokens,
        Q.PROMPT_TOKENS: 2e6 + prompt,
        Q.FINISHED: 5e3 + finished,
        Q.PREEMPTIONS: preemptions,
        Q.ENGINE_STEPS: 1e5 + (tokens + prompt > 0) * 1000,
    }
    past = {
        Q.TTFT: histogram(0.3, 5000),
        Q.ITL: histogram(itl_before, 1e6),
        Q.QUEUE_TIME: histogram(0.0, 5000),
        Q.PREFILL_TIME: histogram(0.2, 5000),
    }
    now = {
        Q.TTFT: past[Q.TTFT].plus(histogram(ttft, finished)),
        Q.ITL: past[Q.ITL].plus(histogram(itl, max(tokens - finished, 0))),
        Q.QUEUE_TIME: past[Q.QUEUE_TIME].plus(histogram(queue, finished)),
        Q.PREFILL_TIME: past[Q.PREFILL_TIME].plus(histogram(prefill, finished)),
    }
    return replica(
        reading(levels | start, histograms=past, name=name, model=model),
        reading(levels | end, histograms=now, name=name, model=model),
        seconds=seconds,
    )
