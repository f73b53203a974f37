"""Time between tokens above its reference, and what slows it."""

from collections.abc import Sequence

from triage.diagnosis.devices import link_trouble
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.interference import prefill_inside
from triage.diagnosis.peers import Peers
from triage.diagnosis.reference import Reference, per_token_reference
from triage.diagnosis.text import count, percent, seconds
from triage.diagnosis.thresholds import (
    ACCEPTANCE_COLLAPSE,
    DIAL_MINIMUM,
    KV_LOW,
    NODE_BUSY,
    THROTTLED_PERIODS,
    WEAK_BELOW,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.situation import ContainerCpu, GpuWindow
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope, Share


def judge_decode(
    view: ReplicaView,
    peers: Peers,
    limits: Limits,
    containers: Sequence[ContainerCpu],
    gpus: Sequence[GpuWindow],
) -> Hypothesis | None:
    """Slow decode of one replica, or None."""
    now = view.per_token
    if not known(now) or view.per_token_n < DIAL_MINIMUM:
        return None
    reference = per_token_reference(view, peers, limits)
    if now <= reference.bound:
        return None
    evidence = [
        view.evidence(
            "per-token",
            f"{seconds(now)} between tokens, {now / reference.value:.1f} × {reference.name} "
            f"({seconds(reference.value)})",
            quantity=Quantity.ITL,
            strength=3 if now >= 2 * reference.value else 2,
            value=now,
            unit="s",
            threshold=reference.bound,
            n=view.per_token_n,
        ),
        *_not_waiting(view),
        *_other_causes(view, reference),
    ]
    detail = None
    for name, items in (
        ("speculation", _speculation(view, peers)),
        ("cpu-starvation", cpu_evidence(containers)),
        ("gpu-link", link_trouble(gpus)),
    ):
        if items:
            detail = detail or name
            evidence += items
    running = view.running.mean if view.running else 0.0
    unknown_batch = detail is None and reference.may_explain_by_batch(now, running)
    return Hypothesis(
        kind=Kind.SLOW_DECODE,
        detail=detail,
        scope=Scope(model=view.model or None, replica=view.name),
        summary=f"{seconds(now)} between tokens against {seconds(reference.value)} ({reference.name}){_WORDS[detail]}",
        evidence=tuple(evidence),
        share=_share(view),
        next_test=_NEXT[detail],
        tested=detail is not None,
        ceiling=Confidence.POSSIBLE if unknown_batch else Confidence.CONFIRMED,
        capped="a larger batch than before would look the same" if unknown_batch else "",
        confounders=(
            "inter-token time is per engine step: with speculative decoding one step carries several tokens",
            "prefill of other requests and preempted re-waits are inside inter-token time",
        ),
    )


_WORDS: dict[str | None, str] = {
    None: "",
    "speculation": ": drafts are rejected",
    "cpu-starvation": ": the container gets too little CPU",
    "gpu-link": ": one GPU's link is degraded",
}
_NEXT: dict[str | None, str] = {
    None: "compare with a peer at the same batch size; look at clocks, CPU throttling and speculation",
    "speculation": "send one request with speculation off, or a short prompt: it must be as fast as before",
    "cpu-starvation": "raise the CPU limit on one replica and compare its time per token",
    "gpu-link": "compare link generation and width of every card under load",
}


def _share(view: ReplicaView) -> Share | None:
    """Decode's share of the time in the engine: token gaps over request-seconds (Little)."""
    running, waiting = view.running, view.waiting
    gaps = view.window.histograms.get(Quantity.ITL)
    if running is None or view.window.seconds <= 0:
        return None
    inside = (running.mean + (waiting.mean if waiting else 0.0)) * view.window.seconds
    decoding = gaps.total if gaps else value_or(view.window.delta(Quantity.GENERATION_SECONDS), 0.0)
    if inside <= 0 or decoding <= 0:
        return None
    value = min(decoding / inside, 1.0)
    most = running.high + (waiting.high if waiting else 0.0)
    low = min(decoding / (most * view.window.seconds), 1.0) if most else value
    return Share(value, min(low, value), max(value, min(value * 1.1, 1.0)), "time in the engine")


def _not_waiting(view: ReplicaView) -> list[Evidence]:
    waiting, kv = view.waiting, view.kv
    found = []
    if waiting is not None and waiting.high == 0:
        found.append(
            view.evidence(
                "no-queue",
                "no request waits",
                quantity=Quantity.WAITING,
                strength=1,
                value=0.0,
                unit="requests",
                threshold=0.0,
            )
        )
    if kv is not None and kv.high < KV_LOW:
        found.append(
            view.evidence(
                "kv-free",
                f"the KV cache is {percent(kv.high)} full",
                quantity=Quantity.KV_USAGE,
                strength=1,
                value=kv.high,
                unit="share",
                threshold=KV_LOW,
            )
        )
    return found


def _other_causes(view: ReplicaView, reference: Reference) -> list[Evidence]:
    """What makes a token slow without decode being slow."""
    found = []
    preemptions = value_or(view.window.delta(Quantity.PREEMPTIONS), 0.0)
    if preemptions:
        found.append(
            view.evidence(
                "preempted",
                f"{count(preemptions)} preemptions: the time lost to them is inside inter-token time",
                quantity=Quantity.PREEMPTIONS,
                strength=3,
                direction=Direction.AGAINST,
                value=preemptions,
            )
        )
    if prefill_inside(view):
        found.append(
            view.evidence(
                "prefill-inside",
                f"{count(value_or(view.prompt_per_generated, 0))} prompt tokens per generated one: "
                "token gaps are other requests' prefill",
                quantity=Quantity.PROMPT_TOKENS,
                strength=3,
                direction=Direction.AGAINST,
                value=view.prompt_per_generated,
                unit="tokens",
            )
        )
    if view.running is not None and reference.explains_by_batch(view.running.mean):
        found.append(
            view.evidence(
                "batch-grew",
                f"{count(view.running.mean)} requests run against {count(reference.batch or 0)} then: "
                "a larger batch has slower tokens",
                quantity=Quantity.RUNNING,
                strength=3,
                direction=Direction.AGAINST,
                value=view.running.mean,
                unit="requests",
                threshold=reference.batch,
            )
        )
    return found


# ---- sub-causes


def _speculation(view: ReplicaView, peers: Peers) -> list[Evidence]:
    """Accepted tokens per draft fell against the process's own past, its log's past, or its peers."""
    now, before, name, quantity = _acceptance(view, peers)
    if now is None or before is None or before <= 0 or now >= ACCEPTANCE_COLLAPSE * before:
        return []
    return [
        view.evidence(
            "acceptance",
            f"speculation accepts {now:.2f} tokens a step, {before:.2f} {name}",
            quantity=quantity,
            strength=2,
            value=now,
            unit="tokens/step",
            threshold=ACCEPTANCE_COLLAPSE * before,
        )
    ]


def _acceptance(view: ReplicaView, peers: Peers) -> tuple[float | None, float | None, str, Quantity]:
    """(accepted length now, reference, its name, quantity). Accepted length = 1 + accepted / drafts."""
    drafts, accepted = view.window.delta(Quantity.DRAFTS), view.window.delta(Quantity.ACCEPTED_TOKENS)
    values = view.window.first.values
    if known(drafts) and known(accepted) and drafts >= WEAK_BELOW and values.get(Quantity.DRAFTS):
        past = 1 + values.get(Quantity.ACCEPTED_TOKENS, 0.0) / values[Quantity.DRAFTS]
        return 1 + accepted / drafts, past, "since start", Quantity.ACCEPTED_TOKENS
    gauge = view.track(Quantity.ACCEPT_LENGTH)
    lengths = [line.accept_length for line in view.throughput if line.accept_length]
    now = gauge.last if gauge else (lengths[-1] if lengths else None)
    if len(lengths) >= 3:
        return now, max(lengths[: len(lengths) // 2 + 1]), "earlier in its log", Quantity.ACCEPT_LENGTH
    return now, peers.usual(view, _accept_length), "on its peers", Quantity.ACCEPT_LENGTH


def _accept_length(view: ReplicaView) -> float | None:
    gauge = view.track(Quantity.ACCEPT_LENGTH)
    return gauge.last if gauge is not None else None


def cpu_evidence(containers: Sequence[ContainerCpu]) -> list[Evidence]:
    """The container was stopped by its CPU limit, or its node has no CPU left."""
    found = []
    for cpu in containers:
        if cpu.periods and cpu.throttled_periods is not None:
            share = cpu.throttled_periods / cpu.periods
            if share >= THROTTLED_PERIODS:
                limit = f" by its limit of {cpu.limit_cores:g} cores" if cpu.limit_cores else ""
                found.append(
                    _host(
                        cpu,
                        "cpu-throttled",
                        f"stopped in {percent(share)} of its CPU periods{limit}",
                        share,
                        THROTTLED_PERIODS,
                    )
                )
        elif cpu.node_cores and cpu.node_busy_cores and cpu.node_busy_cores >= NODE_BUSY * cpu.node_cores:
            busy = cpu.node_busy_cores / cpu.node_cores
            found.append(_host(cpu, "node-busy", f"its node's CPUs are {percent(busy)} busy", busy, NODE_BUSY))
    return found


def _host(cpu: ContainerCpu, name: str, text: str, value: float, threshold: float) -> Evidence:
    return Evidence(
        id=f"kubernetes.{name}",
        direction=Direction.FOR,
        strength=2,
        family=Family.KUBERNETES,
        text=f"{cpu.name or 'the container'}: {text}",
        value=value,
        unit="share",
        threshold=threshold,
        source=cpu.source,
    )
