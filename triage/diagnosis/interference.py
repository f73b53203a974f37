"""Answers that stand still while the prompts of other requests are computed in the same steps."""

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.peers import Peers
from triage.diagnosis.reference import few_prompts_decide, per_token_reference
from triage.diagnosis.text import count, percent, seconds
from triage.diagnosis.thresholds import (
    FREEZE_OBSERVATIONS,
    FREEZE_S,
    PROMPT_HEAVY,
    PROMPT_PER_GENERATED,
    SHARE_SUPPORT,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.histogram import Histogram
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.verdict import Confidence, Evidence, Kind, Scope, Share


def prefill_inside(view: ReplicaView) -> bool:
    """The steps are full of prompts: nearly nothing else is computed, or far more of it than since start."""
    ratio = view.prompt_per_generated
    if not known(ratio) or ratio < PROMPT_HEAVY:
        return False
    before = view.prompt_per_generated_before
    return ratio >= PROMPT_PER_GENERATED or (known(before) and ratio >= 2 * before)


def frozen_share(gaps: Histogram | None) -> float:
    """Least part of the time between tokens that was spent in gaps above FREEZE_S; 0 below the sample minimum.

    Two bounds from the buckets: the long gaps are at least as long as their lower edges, and the short ones at
    most as long as their upper edges.
    """
    if gaps is None or gaps.count < FREEZE_OBSERVATIONS or gaps.total <= 0 or not gaps.edges:
        return 0.0
    long = short = before = low = 0.0
    for edge, cumulative in zip((*gaps.edges, float("inf")), gaps.counts, strict=True):
        inside, before = cumulative - before, cumulative
        if low >= FREEZE_S:
            long += inside * low
        else:
            short += inside * edge
        low = edge
    return max(long, gaps.total - short, 0.0) / gaps.total if long > 0 else 0.0


def judge_interference(view: ReplicaView, peers: Peers, limits: Limits) -> Hypothesis | None:
    """Prefill that slows other requests' answers, though their own first tokens may come in time; or None."""
    now = view.per_token
    if not prefill_inside(view) or not known(now) or value_or(view.window.delta(Quantity.PREEMPTIONS), 0.0) > 0:
        return None
    reference = per_token_reference(view, peers, limits)
    frozen = frozen_share(view.window.histograms.get(Quantity.ITL))
    excess = max(1.0 - reference.value / now, 0.0) if now > reference.bound else 0.0
    share = max(frozen, excess)
    if share < SHARE_SUPPORT:
        return None
    ratio = value_or(view.prompt_per_generated, 0.0)
    evidence: list[Evidence] = [
        view.evidence(
            "prompt-per-token",
            f"{count(ratio)} prompt tokens are computed for each generated one",
            quantity=Quantity.PROMPT_TOKENS,
            strength=3 if ratio >= PROMPT_PER_GENERATED else 2,
            value=ratio,
            unit="tokens",
            threshold=PROMPT_HEAVY,
        ),
        view.evidence(
            "token-gaps",
            f"{seconds(now)} between tokens, {percent(frozen)} of that time in gaps above {seconds(FREEZE_S)}",
            quantity=Quantity.ITL,
            value=now,
            unit="s",
            threshold=reference.bound,
            n=view.per_token_n,
        ),
    ]
    few = few_prompts_decide(view, now, limits) and frozen < SHARE_SUPPORT
    return Hypothesis(
        kind=Kind.SLOW_PREFILL,
        detail="blocks-decode",
        scope=Scope(model=view.model or None, replica=view.name),
        summary=(
            f"answers wait between tokens while other requests' prompts are computed: {seconds(now)} a token "
            f"against {seconds(reference.value)} ({reference.name})"
        ),
        evidence=tuple(evidence),
        share=Share(share, min(frozen or excess, excess or frozen), share, "time between tokens"),
        ceiling=Confidence.POSSIBLE if few else Confidence.CONFIRMED,
        capped="within the limit, and one long prompt more or less decides it" if few else "",
        next_test="stream a short request while one long prompt is sent: it must stand still until that prompt is done",
        confounders=("chunked prefill off or a large chunk makes it worse", "a larger batch slows tokens as well"),
    )
