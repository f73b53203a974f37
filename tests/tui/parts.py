"""Builders of the small things that observations are made of: windows, replicas, targets, evidence."""

from collections.abc import Mapping, Sequence

from triage.domain.histogram import Histogram
from triage.domain.quantity import Quantity
from triage.domain.reading import EngineReading, Role
from triage.domain.situation import Replica, TargetStatus
from triage.domain.target import Failure, FailureReason, Target, TargetState
from triage.domain.verdict import Direction, Evidence, Family
from triage.domain.window import Track, Window

AT = 1_796_094_245.0  # 2026-12-01 03:04:05 UTC
TTFT_EDGES = (0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0)
ITL_EDGES = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2)
QUEUE_EDGES = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0)

NAMES = {
    Quantity.RUNNING: "vllm:num_requests_running",
    Quantity.WAITING: "vllm:num_requests_waiting",
    Quantity.KV_USAGE: "vllm:kv_cache_usage_perc",
    Quantity.GENERATION_TOKENS: "vllm:generation_tokens_total",
    Quantity.PROMPT_TOKENS: "vllm:prompt_tokens_total",
    Quantity.PREFIX_QUERIES: "vllm:prefix_cache_queries_total",
    Quantity.PREFIX_HITS: "vllm:prefix_cache_hits_total",
    Quantity.PREEMPTIONS: "vllm:num_preemptions_total",
    Quantity.TTFT: "vllm:time_to_first_token_seconds",
    Quantity.ITL: "vllm:inter_token_latency_seconds",
    Quantity.QUEUE_TIME: "vllm:request_queue_time_seconds",
}


def histogram(edges: Sequence[float], mean: float, count: int, *, above: float = 0.0) -> Histogram:
    """Observations spread over the two buckets around `mean`; `above`: share beyond the last edge."""
    place = next((index for index, edge in enumerate(edges) if edge >= mean), len(edges) - 1)
    inside = round(count * (1 - above))
    counts = [0 if index < place - 1 else inside * 6 // 10 if index < place else inside for index in range(len(edges))]
    return Histogram(tuple(edges), (*[float(number) for number in counts], float(count)), mean * count, float(count))


def track(value: float, low: float | None = None, high: float | None = None, n: int = 2) -> Track:
    low, high = (value if low is None else low), (value if high is None else high)
    return Track(low, value, low, high, (low + high) / 2, n)


def window(
    target: str = "vllm-0",
    model: str = "llama-3.1-70b",
    *,
    gauges: Mapping[Quantity, Track] | None = None,
    deltas: Mapping[Quantity, float] | None = None,
    histograms: Mapping[Quantity, Histogram] | None = None,
    seconds: float = 30.0,
    assumed: bool = False,
    readings: int = 7,
    engine: str = "vllm",
    version: str = "0.32.0",
    source: str | None = None,
    not_applicable: frozenset[Quantity] = frozenset(),
    names: Mapping[Quantity, str] = NAMES,
    finished: Mapping[str, float] | None = None,
) -> Window:
    gauges, deltas, histograms = gauges or {}, deltas or {}, histograms or {}
    values = {quantity: item.last for quantity, item in gauges.items()} | dict.fromkeys(deltas, 1e6)
    reading = EngineReading(
        target=target,
        source=source or f"http://{target}:8000/metrics",
        at=AT,
        engine=engine,
        dialect="v1",
        version=version,
        model=model,
        role=Role.MIXED,
        values=values,
        histograms=histograms,
        finished=finished or {},
        ranks=(),
        not_applicable=not_applicable,
        names=names,
    )
    return Window(
        first=reading,
        last=reading,
        seconds=seconds,
        assumed=assumed,
        readings=readings,
        resets=0,
        restarted=False,
        gaps=0,
        deltas=deltas,
        histograms=histograms,
        gauges=gauges,
        finished=finished or {},
        rank_gauges={},
        rank_deltas={},
    )


def busy(
    name: str,
    *,
    run: float = 12,
    wait: float = 0,
    kv: float = 0.31,
    ttft: float = 0.4,
    itl: float = 0.023,
    tokens: float = 28_200,
    hits: float = 0.64,
    model: str = "llama-3.1-70b",
    age_s: float = 0.6,
    assumed: bool = False,
) -> Replica:
    """One vLLM replica with the usual quantities."""
    found = window(
        name,
        model,
        gauges={
            Quantity.RUNNING: track(run),
            Quantity.WAITING: track(wait, low=max(wait - 3, 0), high=wait, n=7),
            Quantity.KV_USAGE: track(kv),
        },
        deltas={
            Quantity.GENERATION_TOKENS: tokens,
            Quantity.PROMPT_TOKENS: 4 * tokens,
            Quantity.PREFIX_QUERIES: 100_000,
            Quantity.PREFIX_HITS: 100_000 * hits,
            Quantity.PREEMPTIONS: 0,
        },
        histograms={
            Quantity.TTFT: histogram(TTFT_EDGES, ttft, 412),
            Quantity.ITL: histogram(ITL_EDGES, itl, 28_000),
            Quantity.QUEUE_TIME: histogram(QUEUE_EDGES, max(ttft - 0.3, 0.01), 41),
        },
        assumed=assumed,
        finished={"stop": 371.0, "length": 41.0},
    )
    return Replica(Target(name, f"http://{name}:8000"), model, found, age_s)


def status(
    name: str,
    state: TargetState = TargetState.OK,
    *,
    reason: FailureReason | None = None,
    detail: str = "",
    age_s: float | None = 0.6,
    problems: tuple[str, ...] = (),
) -> TargetStatus:
    failure = Failure(reason, detail) if reason else None
    return TargetStatus(
        Target(name, f"http://{name}:8000", "llama-3.1-70b"),
        state,
        failure,
        AT - (age_s or 0),
        age_s,
        problems=problems,
    )


def evidence(
    id: str,
    text: str,
    *,
    value: float | None = None,
    unit: str = "",
    threshold: float | None = None,
    n: int | None = None,
    against: bool = False,
    strength: int = 2,
    family: Family = Family.ENGINE,
    source: str = "vllm-7f9-abc vllm:num_requests_waiting",
) -> Evidence:
    direction = Direction.AGAINST if against else Direction.FOR
    return Evidence(id, direction, strength, family, text, value, unit, threshold, n, source, 0.6)
