"""Hand-built observations: what an engineer may have before them, one function each."""

from tests.tui.fake_feed import FakeFeed
from tests.tui.parts import AT, TTFT_EDGES, busy, evidence, histogram, status, track, window
from triage.domain.quantity import Quantity
from triage.domain.situation import NotSeen, Replica, Situation, TargetStatus
from triage.domain.target import FailureReason, Target, TargetState
from triage.domain.verdict import Confidence, Diagnosis, Kind, RuledOut, Scope, Share, Verdict
from triage.monitor.observation import Observation

__all__ = [
    "AT",
    "TTFT_EDGES",
    "FakeFeed",
    "busy",
    "evidence",
    "histogram",
    "status",
    "track",
    "window",
]

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
