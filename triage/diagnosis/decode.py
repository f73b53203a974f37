"""Time between tokens above its reference, and what slows it."""

from collections.abc import Sequence

from triage.diagnosis.context import grown_context
from triage.diagnosis.devices import link_trouble
from triage.diagnosis.host import cpu_evidence, idle_forward, idle_gpus
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.interference import prefill_inside
from triage.diagnosis.kv import paused
from triage.diagnosis.peers import Peers
from triage.diagnosis.reference import Reference, few_prompts_decide, per_token_reference
from triage.diagnosis.shares import share_between
from triage.diagnosis.speculation import Pace, pace_evidence, pace_of_tokens, rejected_drafts
from triage.diagnosis.text import count, percent, seconds
from triage.diagnosis.thresholds import DIAL_MINIMUM, KV_LOW, SLOWER_THAN_USUAL, SPECULATION_SLOWS
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.situation import GpuWindow, Situation
from triage.domain.verdict import Confidence, Direction, Evidence, Kind, Scope, Share


def judge_decode(view: ReplicaView, peers: Peers, situation: Situation, alone: bool) -> Hypothesis | None:
    """Slow decode of one replica, or None. alone: it is the only engine, so that all GPUs are its own."""
    now = view.per_token
    if not known(now) or view.per_token_n < DIAL_MINIMUM:
        return None
    limit = situation.limits.time_per_token_mean_s
    reference = per_token_reference(view, peers, situation.limits)
    slow = now > reference.bound
    if not slow and Quantity.DRAFTS not in view.window.deltas:
        return None
    rejected = rejected_drafts(view, peers)
    pace = pace_of_tokens(view) if rejected else None
    if not slow and (pace is None or pace.ratio < SPECULATION_SLOWS):
        return None
    evidence = [
        _per_token(view, now, reference) if slow or pace is None else pace_evidence(view, pace),
        *_not_waiting(view),
        *_other_causes(view, reference),
    ]
    context = grown_context(view, now / reference.value)
    detail = None
    for name, items in (
        ("speculation", rejected),
        ("cpu-starvation", cpu_evidence(situation.containers)),
        ("gpu-link", link_trouble(situation.gpus)),
        ("host-bound", _waits_for_host(view, situation.gpus if alone else ())),
        ("long-context", [item for item in context if item.strength >= 2]),
    ):
        if items:
            detail = detail or name
            evidence += items
    evidence += [item for item in context if item.strength < 2]
    running = view.running.mean if view.running else 0.0
    doubt = ""
    if detail in (None, "long-context") and reference.may_explain_by_batch(now, running):
        doubt = "a larger batch than before would look the same"
    elif detail is None and (reference.may_be_load(now, limit) or few_prompts_decide(view, now, situation.limits)):
        doubt = f"within the limit of {seconds(limit)}, and other requests than before would look the same"
    elif not slow and pace is not None and pace.ratio < SLOWER_THAN_USUAL:
        doubt = "it costs less than what is felt"
    return Hypothesis(
        kind=Kind.SLOW_DECODE,
        detail=detail,
        scope=Scope(model=view.model or None, replica=view.name),
        summary=_summary(now, reference, pace if not slow else None) + _WORDS[detail],
        evidence=tuple(evidence),
        share=_share(view),
        next_test=_NEXT[detail],
        tested=detail not in (None, "long-context"),
        ceiling=Confidence.POSSIBLE if doubt else Confidence.CONFIRMED,
        capped=doubt,
        confounders=(
            "inter-token time is per engine step: with speculative decoding one step carries several tokens",
            "prefill of other requests and preempted re-waits are inside inter-token time",
        ),
    )


def _waits_for_host(view: ReplicaView, gpus: Sequence[GpuWindow]) -> list[Evidence]:
    """By the devices' exporter, or by the engine's own timer. gpus: none when other engines may use them."""
    return [*idle_gpus(view, gpus), *idle_forward(view, gpus)]


def _per_token(view: ReplicaView, now: float, reference: Reference) -> Evidence:
    return view.evidence(
        "per-token",
        f"{seconds(now)} between tokens, {now / reference.value:.1f} × {reference.name} ({seconds(reference.value)})",
        quantity=Quantity.ITL,
        strength=3 if now >= 2 * reference.value else 2,
        value=now,
        unit="s",
        threshold=reference.bound,
        n=view.per_token_n,
    )


def _summary(now: float, reference: Reference, pace: Pace | None) -> str:
    if pace is not None:
        return f"{seconds(pace.now)} for each token against {seconds(pace.before)} (its own mean since start)"
    return f"{seconds(now)} between tokens against {seconds(reference.value)} ({reference.name})"


_WORDS: dict[str | None, str] = {
    None: "",
    "speculation": ": drafts are rejected",
    "cpu-starvation": ": the container gets too little CPU",
    "gpu-link": ": one GPU's link is degraded",
    "host-bound": ": the GPU waits for its host",
    "long-context": ": each token reads a longer history",
}
_NEXT: dict[str | None, str] = {
    None: "compare with a peer at the same batch size; look at clocks, CPU throttling and speculation",
    "speculation": "send one request with speculation off, or a short prompt: it must be as fast as before",
    "cpu-starvation": "raise the CPU limit on one replica and compare its time per token",
    "gpu-link": "compare link generation and width of every card under load",
    "host-bound": "profile the engine's process for ten seconds; send one request without grammar and penalties",
    "long-context": "send one short prompt: its tokens must come as fast as before",
}


def _share(view: ReplicaView) -> Share | None:
    """Decode's share of the time in the engine: token gaps over request-seconds (Little)."""
    running, waiting = view.running, view.waiting
    gaps = view.window.histograms.get(Quantity.ITL)
    if running is None or view.window.seconds <= 0:
        return None
    requests = running.mean + (waiting.mean if waiting else 0.0)
    inside = requests * view.window.seconds
    decoding = gaps.total if gaps else value_or(view.window.delta(Quantity.GENERATION_SECONDS), 0.0)
    if inside <= 0 or decoding <= 0:
        return None
    value = min(decoding / inside, 1.0)
    most = running.high + (waiting.high if waiting else 0.0)
    least = running.low + (waiting.low if waiting else 0.0)
    bounds = [min(decoding / (n * view.window.seconds), 1.0) if n else 1.0 for n in (most, least)]
    return share_between(value, bounds, requests, "time in the engine")


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
    out = paused(view)
    if out is not None and out.low > 0:
        found.append(
            view.evidence(
                "paused",
                f"{count(out.last)} requests are out of the batch: that time is inside inter-token time",
                quantity=Quantity.SWAPPED,
                strength=3,
                direction=Direction.AGAINST,
                value=out.last,
                unit="requests",
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
    now = value_or(view.per_token, 0.0)
    if view.running is not None and reference.explains_by_batch(view.running.mean, now):
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
