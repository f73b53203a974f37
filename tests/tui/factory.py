"""Hand-built observations and a feed that hands them out, for the screens' tests."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from triage.domain.histogram import Histogram
from triage.domain.quantity import Quantity
from triage.domain.reading import EngineReading, Role
from triage.domain.situation import NotSeen, Replica, Situation, TargetStatus
from triage.domain.target import Failure, FailureReason, Target, TargetState
from triage.domain.verdict import (
    Confidence,
    Diagnosis,
    Direction,
    Evidence,
    Family,
    Kind,
    RuledOut,
    Scope,
    Share,
    Verdict,
)
from triage.domain.window import Track, Window
from triage.monitor.observation import Observation

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


QUEUEING_VERDICT = Verdict(
    kind=Kind.QUEUEING,
    confidence=Confidence.LIKELY,
    scope=Scope(model="llama-3.1-70b", replica="vllm-7f9-abc"),
    summary="First token p95 lies in 7.5–10 s (bound 3 s): 61 % of the time goes into waiting for a slot",
    detail="sequence-limit",
    share=Share(0.61, 0.53, 0.68),
    evidence=(
        evidence("engine.waiting", "41 requests wait, 38 to 41 over the window", value=41, unit="requests",
                 threshold=0, n=7, strength=3),
        evidence("engine.flat", "running is flat at the limit of 64", value=64, unit="requests", n=7,
                 source="vllm-7f9-abc vllm:num_requests_running"),
        evidence("engine.queue-time", "queue time 5.8 s a request", value=5.8, unit="s", threshold=0.3, n=412,
                 source="vllm-7f9-abc vllm:request_queue_time_seconds"),
        evidence("engine.kv", "KV use of 0.93 could bind as well", value=0.93, unit="share", threshold=0.9, n=7,
                 against=True, strength=1, source="vllm-7f9-abc vllm:kv_cache_usage_perc"),
    ),
    runbook="queueing",
    next_test="Send the probe twice, cold and warm: equal times speak for the queue, a faster second one for prefill",
    confounders=("phase histograms are observed at finish: stuck and aborted requests are invisible",),
)  # fmt: skip

KV_VERDICT = Verdict(
    kind=Kind.KV_PRESSURE,
    confidence=Confidence.POSSIBLE,
    scope=Scope(model="llama-3.1-70b", replica="vllm-7f9-abc"),
    summary="KV use is 93 % while requests wait",
    detail="admission",
    share=Share(0.22, 0.15, 0.3),
    evidence=(
        evidence("engine.kv", "KV use 0.93 while 41 requests wait", value=0.93, unit="share", threshold=0.9, n=7),
    ),
    runbook="kv-pressure",
    next_test="Look whether preemptions rise when the running batch grows",
)  # fmt: skip

NOT_SEEN = (
    NotSeen("gateway log", "not configured", ("gateway-timeout", "truncated-stream")),
    NotSeen("gpu", "no device library", ("gpu-throttled", "gpu-fault")),
)


def observe(
    verdicts: tuple[Verdict, ...],
    *,
    replicas: tuple[Replica, ...] = (),
    targets: tuple[TargetStatus, ...] = (),
    ruled_out: tuple[RuledOut, ...] = (),
    not_seen: tuple[NotSeen, ...] = NOT_SEEN,
    sequence: int = 1,
    at: float = AT,
) -> Observation:
    situation = Situation(at=at, window_s=30.0, replicas=replicas, targets=targets, not_seen=not_seen)
    return Observation(sequence, at, situation, Diagnosis(at, 30.0, verdicts, ruled_out, not_seen))


def queueing(sequence: int = 1) -> Observation:
    """Five replicas of one model: one queues, one is dark, one is stale."""
    return observe(
        (QUEUEING_VERDICT, KV_VERDICT),
        replicas=(
            busy("vllm-7f9-abc", run=64, wait=41, kv=0.93, ttft=9.4, tokens=44_400, hits=0.61),
            busy("vllm-7f9-def", kv=0.31),
            busy("vllm-7f9-jkl", run=9, kv=0.22, ttft=0.3, age_s=0.7),
            busy("vllm-7f9-mno", run=15, kv=0.4, age_s=14.0),
        ),
        targets=(
            status("vllm-7f9-abc"),
            status("vllm-7f9-def"),
            status("vllm-7f9-ghi", TargetState.DARK, reason=FailureReason.TIMEOUT,
                   detail="no answer within 5 s", age_s=42.0),
            status("vllm-7f9-jkl"),
            status("vllm-7f9-mno", TargetState.STALE, reason=FailureReason.TIMEOUT, age_s=14.0),
        ),
        ruled_out=(
            RuledOut(Kind.SLOW_DECODE, "23 ms per token, usual 23 ms, n=28000"),
            RuledOut(Kind.SLOW_PREFILL, "prefill takes 4 % of the time"),
        ),
        sequence=sequence,
    )  # fmt: skip


def healthy(sequence: int = 1) -> Observation:
    verdict = Verdict(
        kind=Kind.HEALTHY,
        confidence=Confidence.LIKELY,
        scope=Scope(),
        summary="No limit is broken on 3 replicas; nothing waits",
        evidence=(
            evidence("engine.waiting", "nothing waits", value=0, unit="requests", n=7),
            evidence("engine.ttft", "first token p95 in 0.25–0.5 s, bound 3 s", value=0.5, unit="s", threshold=3,
                     n=1236),
        ),
        next_test="Send the probe to confirm that an answer arrives whole",
    )  # fmt: skip
    names = ("vllm-7f9-abc", "vllm-7f9-def", "vllm-7f9-ghi")
    return observe(
        (verdict,),
        replicas=tuple(busy(name) for name in names),
        targets=tuple(status(name) for name in names),
        not_seen=(),
        sequence=sequence,
    )


def insufficient(sequence: int = 1) -> Observation:
    """One reading only, with an assumed interval."""
    verdict = Verdict(
        kind=Kind.INSUFFICIENT_DATA,
        confidence=None,
        scope=Scope(),
        summary="One reading of one engine: nothing can be said about change",
        next_test="A second reading at least 20 s later; the engine's log; one probe",
    )
    first = window(
        "metrics",
        gauges={Quantity.RUNNING: track(3, n=1), Quantity.WAITING: track(0, n=1)},
        seconds=0.0,
        assumed=True,
        readings=1,
        source="metrics.prom",
        not_applicable=frozenset({Quantity.KV_USAGE}),
    )
    return observe(
        (verdict,),
        replicas=(Replica(Target("metrics"), "llama-3.1-70b", first, None),),
        targets=(TargetStatus(Target("metrics"), TargetState.OK),),
        sequence=sequence,
    )


def dark(sequence: int = 1) -> Observation:
    """Nothing answers, each target for another reason."""
    verdict = Verdict(
        kind=Kind.METRICS_MISSING,
        confidence=Confidence.LIKELY,
        scope=Scope(),
        summary="No engine's metrics can be read: 4 targets, 4 reasons",
        detail="not-scraped",
        evidence=(evidence("targets.dark", "4 of 4 targets give no metrics", value=4, n=4, source="targets"),),
        runbook="metrics-missing",
        next_test="triage doctor names each target and what it answered",
    )
    return observe(
        (verdict,),
        targets=(
            status("vllm-0", TargetState.DARK, reason=FailureReason.TIMEOUT, detail="no answer within 5 s", age_s=90),
            status("vllm-1", TargetState.NEVER, reason=FailureReason.REFUSED, detail="connection refused", age_s=None),
            status("vllm-2", TargetState.DARK, reason=FailureReason.UNAUTHORIZED, detail="token refused", age_s=3),
            status("web", TargetState.NO_METRICS, reason=FailureReason.NOT_METRICS, detail="an HTML page", age_s=0.4),
        ),
        sequence=sequence,
    )


def fleet(count: int = 1000, sequence: int = 1) -> Observation:
    """Many replicas whose numbers differ from round to round."""
    replicas = tuple(
        busy(f"vllm-{index}", run=index % 60, wait=(index * sequence) % 7, tokens=20_000 + index * sequence,
             age_s=sequence)
        for index in range(count)
    )  # fmt: skip
    return observe(
        (QUEUEING_VERDICT,),
        replicas=replicas,
        targets=tuple(status(f"vllm-{index}") for index in range(count)),
        sequence=sequence,
        at=AT + 5 * sequence,
    )


def trails(minutes: float = 5.0, step: float = 5.0) -> dict[Quantity, tuple[tuple[float, float], ...]]:
    """A queue that builds up after half of the time, with a hole of six readings."""
    steps = int(minutes * 60 / step)
    times = [AT - (steps - 1 - index) * step for index in range(steps)]
    kept = [index for index in range(steps) if not steps // 4 <= index < steps // 4 + 6]
    late = [max(index - steps // 2, 0) / (steps - steps // 2) for index in range(steps)]
    return {
        Quantity.RUNNING: tuple((times[index], min(20 + 80 * late[index], 64)) for index in kept),
        Quantity.WAITING: tuple((times[index], round(41 * late[index])) for index in kept),
        Quantity.KV_USAGE: tuple((times[index], 0.3 + 0.63 * late[index]) for index in kept),
        Quantity.GENERATION_TOKENS: tuple((times[index], 5000.0 * index + 2400 * late[index]) for index in kept),
    }


class FakeFeed:
    """A Feed whose rounds the test publishes; keeps count of what was asked of it."""

    def __init__(self, first: Observation | None = None, *, name: str = "prod-eu") -> None:
        self.name = name
        self.interval_s = 5.0
        self.trails: dict[str, dict[Quantity, tuple[tuple[float, float], ...]]] = {}
        self.refreshed = 0
        self.probes = 0
        self.asked = 0
        self.error: Exception | None = None
        self.probe_steps: Callable[[Callable[[str], None]], object] | None = None
        self.release_probe = asyncio.Event()
        self._latest = first
        self._news = asyncio.Event()

    def latest(self) -> Observation | None:
        return self._latest

    def publish(self, observation: Observation) -> None:
        self.error = None
        self._latest = observation
        self._news.set()

    def fail(self, error: Exception) -> None:
        self.error = error
        self._news.set()

    async def newer_than(self, sequence: int) -> Observation:
        self.asked += 1
        while True:
            if self.error is not None:
                raise self.error
            if self._latest is not None and self._latest.sequence > sequence:
                return self._latest
            self._news.clear()
            await self._news.wait()

    def trail(self, target: str, quantity: Quantity) -> tuple[tuple[float, float], ...]:
        return self.trails.get(target, {}).get(quantity, ())

    def refresh(self) -> None:
        self.refreshed += 1

    def set_interval(self, seconds: float) -> None:
        self.interval_s = seconds

    async def probe(self, progress: Callable[[str], None]) -> str:
        self.probes += 1
        progress("cold request to vllm-7f9-abc")
        await self.release_probe.wait()
        progress("warm request to vllm-7f9-abc")
        return "answered whole: first token 0.4 s"

    def probe_cost(self) -> str:
        return "2 requests, at most 400 tokens each"
