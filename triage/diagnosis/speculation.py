"""Speculative decoding whose drafts are rejected more than before."""

from typing import NamedTuple

from triage.diagnosis.peers import Peers
from triage.diagnosis.text import seconds
from triage.diagnosis.thresholds import ACCEPTANCE_COLLAPSE, SLOWER_THAN_USUAL, WEAK_BELOW
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known
from triage.domain.quantity import Quantity
from triage.domain.verdict import Evidence
from triage.domain.window import Window


class _Acceptance(NamedTuple):
    """Tokens a step, now and by the reference; name: of the reference; quantity: where it was read."""

    now: float | None
    before: float | None
    name: str
    quantity: Quantity


def rejected_drafts(view: ReplicaView, peers: Peers) -> list[Evidence]:
    """Accepted tokens a step fell against a baseline, the process's own past, its log's past, or its peers."""
    acceptance = _acceptance(view, peers)
    now, before = acceptance.now, acceptance.before
    if now is None or before is None or before <= 0 or now >= ACCEPTANCE_COLLAPSE * before:
        return []
    return [
        view.evidence(
            "acceptance",
            f"speculation accepts {now:.2f} tokens a step, {before:.2f} {acceptance.name}",
            quantity=acceptance.quantity,
            strength=2,
            value=now,
            unit="tokens/step",
            threshold=ACCEPTANCE_COLLAPSE * before,
        )
    ]


def _acceptance(view: ReplicaView, peers: Peers) -> _Acceptance:
    """Accepted length = 1 + accepted / drafts, from counters; else the engine's gauge; else its log."""
    counted = _accepted_in(view.window)
    earlier = view.replica.baseline
    baseline = _accepted_in(earlier) if earlier is not None else None
    if counted is not None and baseline is not None:
        return _Acceptance(counted, baseline, f"in {view.replica.baseline_name}", Quantity.ACCEPTED_TOKENS)
    values = view.window.first.values
    if counted is not None and values.get(Quantity.DRAFTS):
        past = 1 + values.get(Quantity.ACCEPTED_TOKENS, 0.0) / values[Quantity.DRAFTS]
        return _Acceptance(counted, past, "since start", Quantity.ACCEPTED_TOKENS)
    gauge = view.track(Quantity.ACCEPT_LENGTH)
    then = earlier.gauge(Quantity.ACCEPT_LENGTH) if earlier is not None else None
    if gauge is not None and then is not None:
        return _Acceptance(gauge.last, then.mean, f"in {view.replica.baseline_name}", Quantity.ACCEPT_LENGTH)
    lengths = [line.accept_length for line in view.throughput if line.accept_length]
    now = gauge.last if gauge else (lengths[-1] if lengths else None)
    if len(lengths) >= 3:
        return _Acceptance(now, max(lengths[: len(lengths) // 2 + 1]), "earlier in its log", Quantity.ACCEPT_LENGTH)
    return _Acceptance(now, peers.usual(view, _accept_length), "on its peers", Quantity.ACCEPT_LENGTH)


def _accepted_in(window: Window) -> float | None:
    drafts, accepted = window.delta(Quantity.DRAFTS), window.delta(Quantity.ACCEPTED_TOKENS)
    if not known(drafts) or not known(accepted) or drafts < WEAK_BELOW:
        return None
    return 1 + accepted / drafts


def _accept_length(view: ReplicaView) -> float | None:
    gauge = view.track(Quantity.ACCEPT_LENGTH)
    return gauge.last if gauge is not None else None


class Pace(NamedTuple):
    """Mean seconds for each token that was made, now and since the process started."""

    now: float
    before: float

    @property
    def ratio(self) -> float:
        return self.now / self.before


def pace_of_tokens(view: ReplicaView) -> Pace | None:
    """Seconds per token where gaps are counted per step: a step of several tokens hides what rejected drafts cost.

    Time between tokens in all, over tokens that came behind a gap. None without counters that move with each step.
    """
    first = view.window.first
    gaps, gaps_before = view.window.histograms.get(Quantity.ITL), first.histograms.get(Quantity.ITL)
    firsts, firsts_before = view.window.delta(Quantity.TTFT), first.histograms.get(Quantity.TTFT)
    made, made_before = view.generated, first.values.get(Quantity.GENERATION_TOKENS, 0.0)
    if gaps is None or gaps_before is None or firsts_before is None or not known(made) or not known(firsts):
        return None
    if Quantity.GENERATION_TOKENS in view.window.last.late:
        return None
    behind, behind_before = made - firsts, made_before - firsts_before.count
    if behind < WEAK_BELOW or behind_before < WEAK_BELOW or gaps.total <= 0 or gaps_before.total <= 0:
        return None
    return Pace(gaps.total / behind, gaps_before.total / behind_before)


def pace_evidence(view: ReplicaView, pace: Pace) -> Evidence:
    """Time per token made as one statement."""
    strength = 3 if pace.ratio >= 2 else 2 if pace.ratio >= SLOWER_THAN_USUAL else 1
    return view.evidence(
        "per-token-made",
        f"{seconds(pace.now)} for each token, {pace.ratio:.1f} × its own mean since start ({seconds(pace.before)})",
        quantity=Quantity.GENERATION_TOKENS,
        strength=strength,
        value=pace.now,
        unit="s",
        threshold=SLOWER_THAN_USUAL * pace.before,
    )
