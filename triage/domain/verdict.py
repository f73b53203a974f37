"""Named causes, the evidence for them, and how sure we are."""

from enum import StrEnum

import msgspec

from triage.domain.situation import NotSeen


class Kind(StrEnum):
    """Every verdict word. The order is the order of severity used to break ties."""

    ENGINE_DEAD = "engine-dead"
    ENGINE_STALLED = "engine-stalled"
    CRASH_LOOP = "crash-loop"
    OUT_OF_MEMORY = "out-of-memory"
    GPU_FAULT = "gpu-fault"
    AUTH_HOLE = "auth-hole"
    WRONG_OUTPUT = "wrong-output"
    READY_NOT_ROUTABLE = "ready-not-routable"
    TRUNCATED_STREAM = "truncated-stream"
    EMPTY_OUTPUT = "empty-output"
    TOOL_CALL_FAILURE = "tool-call-failure"
    GATEWAY_TIMEOUT = "gateway-timeout"
    RETRY_STORM = "retry-storm"
    OVER_REJECTION = "over-rejection"
    KV_PRESSURE = "kv-pressure"
    LOAD_IMBALANCE = "load-imbalance"
    SLOW_PREFILL = "slow-prefill"
    QUEUEING = "queueing"
    HIDDEN_REASONING = "hidden-reasoning"
    SLOW_DECODE = "slow-decode"
    GPU_THROTTLED = "gpu-throttled"
    CACHE_MISS_REGRESSION = "cache-miss-regression"
    GATEWAY_OVERHEAD = "gateway-overhead"
    CLIENT_ABORT = "client-abort"
    CLIENT_SIDE = "client-side"
    COLD_START = "cold-start"
    UNSCHEDULABLE = "unschedulable"
    START_BLOCKED = "start-blocked"
    ROLLOUT_STUCK = "rollout-stuck"
    METRICS_FROZEN = "metrics-frozen"
    METRICS_MISSING = "metrics-missing"
    METRICS_RENAMED = "metrics-renamed"
    HEALTHY = "healthy"
    INSUFFICIENT_DATA = "insufficient-data"


# Kinds whose weight is a share of the user's time (diagnosis.md 4). kv-pressure shows a share where time can
# be attributed to it, but a preemption or a failed allocation proves it without one.
TIMED_KINDS = frozenset(
    {
        Kind.QUEUEING,
        Kind.SLOW_PREFILL,
        Kind.SLOW_DECODE,
        Kind.HIDDEN_REASONING,
        Kind.GATEWAY_OVERHEAD,
    }
)

# Sub-causes a verdict may name in `detail`; closed lists, so that scripts can rely on them.
DETAILS: dict[Kind, tuple[str, ...]] = {
    Kind.QUEUEING: ("sequence-limit", "adapter-slots", "grammar-queue", "handoff-queue", "gateway-queue"),
    Kind.SLOW_PREFILL: ("prefill-ceiling", "long-prompts", "blocks-decode"),
    Kind.SLOW_DECODE: (
        "batch-size",
        "speculation",
        "cpu-starvation",
        "gpu-link",
        "long-context",
        "host-bound",
        "cpu-offload",
    ),
    Kind.KV_PRESSURE: ("preemption", "admission", "context-overflow"),
    Kind.HIDDEN_REASONING: ("budget-spent", "long-reasoning"),
    Kind.LOAD_IMBALANCE: ("replicas", "ranks"),
    Kind.TRUNCATED_STREAM: ("engine-side", "hop-between", "error-event", "engine-abort"),
    Kind.EMPTY_OUTPUT: ("answer-in-reasoning", "text-lost"),
    Kind.TOOL_CALL_FAILURE: ("not-parsed", "broken-arguments", "cut-by-limit", "call-lost"),
    Kind.OVER_REJECTION: ("context-limit", "queue-full", "rate-limit", "expired-credentials"),
    Kind.CLIENT_ABORT: ("while-streaming",),
    Kind.ENGINE_STALLED: ("no-steps", "no-token", "asleep"),
    Kind.ENGINE_DEAD: ("worker-died", "device-lost", "process-gone"),
    Kind.CACHE_MISS_REGRESSION: ("restart", "switched-off", "prompt-start", "eviction"),
    Kind.COLD_START: (
        "weights-download",
        "weights-load",
        "compile",
        "graph-capture",
        "warm-up",
        "cache-empty",
        "model-load",
    ),
    Kind.METRICS_MISSING: ("endpoint-off", "endpoint-failing", "not-scraped", "wrong-target", "partial"),
    Kind.METRICS_FROZEN: ("stale-gauges", "stale-exporter", "stale-page"),
    Kind.METRICS_RENAMED: ("dashboard-query", "relabelled"),
}


class Confidence(StrEnum):
    CONFIRMED = "confirmed"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Family(StrEnum):
    """Where evidence comes from. Items of one family are not independent of one another.

    An engine's log counts as engine: it is the same witness as its counters.
    """

    ENGINE = "engine"
    PROBE = "probe"
    GATEWAY = "gateway"
    KUBERNETES = "kubernetes"
    GPU = "gpu"


class Direction(StrEnum):
    FOR = "for"
    AGAINST = "against"


class Evidence(msgspec.Struct, frozen=True):
    """One statement with its number. strength: 1 hint, 2 support, 3 decisive on its own.

    n: sample size behind the value. source: file or target and series. age_s: at diagnosis time.
    """

    id: str
    direction: Direction
    strength: int
    family: Family
    text: str
    value: float | None = None
    unit: str = ""
    threshold: float | None = None
    n: int | None = None
    source: str = ""
    age_s: float | None = None


class Share(msgspec.Struct, frozen=True):
    """Part of the user's time, 0..1, with a 90 % interval. of: which time it is a share of."""

    value: float
    low: float
    high: float
    of: str = "end-to-end time"


class Scope(msgspec.Struct, frozen=True):
    model: str | None = None
    replica: str | None = None
    hop: str | None = None
    node: str | None = None


class Verdict(msgspec.Struct, frozen=True):
    """confidence is None for insufficient-data only; share is None where time is not what is lost."""

    kind: Kind
    confidence: Confidence | None
    scope: Scope
    summary: str
    detail: str | None = None
    share: Share | None = None
    evidence: tuple[Evidence, ...] = ()
    runbook: str | None = None
    next_test: str = ""
    confounders: tuple[str, ...] = ()


class RuledOut(msgspec.Struct, frozen=True):
    """Positive evidence with an adequate sample spoke against this kind."""

    kind: Kind
    because: str
    scope: Scope = Scope()


class Diagnosis(msgspec.Struct, frozen=True):
    """verdicts: worst and surest first, never empty."""

    at: float | None
    window_s: float
    verdicts: tuple[Verdict, ...]
    ruled_out: tuple[RuledOut, ...] = ()
    not_seen: tuple[NotSeen, ...] = ()
