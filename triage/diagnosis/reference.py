"""Slow against what: the order of diagnosis.md 4a, and which reference was used."""

import msgspec

from triage.diagnosis.peers import Peers
from triage.diagnosis.thresholds import (
    BATCH_GREW,
    BATCH_SLOWS,
    FEW_PROMPTS,
    FIRST_TOKEN_FELT,
    JUST_STARTED,
    LARGE_BATCH,
    MIXED_LOAD_SLOWS,
    PROMPT_HEAVY,
    SLOWER_THAN_USUAL,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import NOT_EXPORTED, known
from triage.domain.derived import per_token
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity


class Reference(msgspec.Struct, frozen=True):
    """value: seconds. bound: above it is slow. name: for the evidence. batch: its running requests, if known.

    absolute: a limit, which holds at every batch; otherwise a time that was measured at some batch.
    mixed: measured over whatever load there was since the start: a change against it need not be a fault.
    """

    value: float
    bound: float
    name: str
    batch: float | None = None
    absolute: bool = False
    mixed: bool = False

    def explains_by_batch(self, running: float, seconds: float) -> bool:
        """The batch grew so much against the reference's that a token of so many seconds is expected.

        A step's time grows at most in proportion to its batch, and far less while memory bandwidth bounds it.
        """
        if self.batch is None or self.batch <= 0 or running < BATCH_GREW * self.batch:
            return False
        return seconds <= SLOWER_THAN_USUAL * self.value * running / self.batch

    def may_be_load(self, seconds: float, limit: float) -> bool:
        """Slower than its own past, within the limit, and not by more than another mix of requests brings about."""
        return self.mixed and seconds <= limit and seconds < MIXED_LOAD_SLOWS * self.value

    def may_explain_by_batch(self, seconds: float, running: float) -> bool:
        """It was measured at a batch that nobody knows, and now many requests run: a slower token may be theirs."""
        unknown = not self.absolute and self.batch is None
        return unknown and running >= LARGE_BATCH and seconds <= BATCH_SLOWS * self.value


def per_token_reference(view: ReplicaView, peers: Peers, limits: Limits) -> Reference:
    """What the mean time per token is measured against; always something, at last the built-in default."""
    # Gaps are counted per step: where a step brings several tokens, it may take as many times longer.
    limit = limits.time_per_token_mean_s * view.tokens_per_step
    if "time_per_token_mean_s" in limits.declared:
        return Reference(limit, limit, "the declared limit", absolute=True)
    earlier = view.replica.baseline
    baseline = per_token(earlier) if earlier is not None else NOT_EXPORTED
    if known(baseline) and earlier is not None:
        running = earlier.gauges.get(Quantity.RUNNING)
        batch = running.mean if running else None
        return Reference(baseline, SLOWER_THAN_USUAL * baseline, view.replica.baseline_name, batch)
    before = view.per_token_before
    if known(before) and (not _just_started(view) or _tells(view, SLOWER_THAN_USUAL * before, limit)):
        return Reference(before, SLOWER_THAN_USUAL * before, "its own mean since start", view.batch_before, mixed=True)
    usual = peers.usual(view, _seconds_per_token)
    if usual is not None and _tells(view, SLOWER_THAN_USUAL * usual, limit):
        return Reference(usual, SLOWER_THAN_USUAL * usual, "its peers' median", peers.usual(view, _batch))
    return Reference(limit, limit, "the built-in default", absolute=True)


def few_prompts_decide(view: ReplicaView, now: float, limits: Limits) -> bool:
    """Tokens are within the limit and come beside prompts, so few of which were computed that one more or less makes
    them slower or faster than usual.
    """
    prompts, ratio = view.window.delta(Quantity.TTFT), view.prompt_per_generated
    within = now <= limits.time_per_token_mean_s * view.tokens_per_step
    return within and known(prompts) and prompts < FEW_PROMPTS and known(ratio) and ratio >= PROMPT_HEAVY


def few_prompts_explain(view: ReplicaView, now: float, reference: Reference, limits: Limits) -> bool:
    """They do, and nothing else: the usual gap, without a prompt in its step, is as long as ever."""
    if not few_prompts_decide(view, now, limits) or not reference.may_be_load(now, limits.time_per_token_mean_s):
        return False
    gaps, before = view.window.histograms.get(Quantity.ITL), view.window.first.histograms.get(Quantity.ITL)
    middle = gaps.quantile(0.5) if gaps is not None else None
    usual = before.quantile(0.5) if before is not None else None
    return middle is not None and usual is not None and middle.low < usual.high


def _tells(view: ReplicaView, bound: float, limit: float) -> bool:
    """Peers, or a few minutes since the start, tell an odd one. That all is well only the limit can say:
    a whole fleet can be slow, and slow from its first token on.
    """
    return bound <= limit or (known(view.per_token) and view.per_token > bound)


def _just_started(view: ReplicaView) -> bool:
    """It is known to have no past yet; without a start time the means since start are taken for one."""
    first = view.window.first
    start = first.values.get(Quantity.PROCESS_START)
    return start is not None and first.at is not None and 0 <= first.at - start < JUST_STARTED


def _seconds_per_token(view: ReplicaView) -> float | None:
    return view.per_token if known(view.per_token) else None


def _batch(view: ReplicaView) -> float | None:
    return view.running.mean if view.running is not None else None


def ttft_bound(view: ReplicaView, limits: Limits) -> Reference:
    """What the mean time to first token is measured against.

    The declared or built-in bound always holds; a user does not care whether a wait of ten seconds is usual.
    A baseline window can only tighten the built-in one.
    """
    if "first_visible_p95_s" in limits.declared:
        return Reference(limits.first_visible_p95_s, limits.first_visible_p95_s, "the declared limit")
    if view.replica.baseline is not None:
        good = view.replica.baseline.mean(Quantity.TTFT)
        if known(good) and SLOWER_THAN_USUAL * good < limits.first_visible_p95_s:
            return Reference(good, max(SLOWER_THAN_USUAL * good, FIRST_TOKEN_FELT), view.replica.baseline_name)
    return Reference(limits.first_visible_p95_s, limits.first_visible_p95_s, "the built-in default")


def usual_ttft(view: ReplicaView) -> Reference | None:
    """The replica's own past time to first token: baseline, else lifetime mean."""
    if view.replica.baseline is not None:
        mean = view.replica.baseline.mean(Quantity.TTFT)
        if known(mean):
            return Reference(mean, SLOWER_THAN_USUAL * mean, view.replica.baseline_name)
    mean = view.window.lifetime_mean(Quantity.TTFT)
    return Reference(mean, SLOWER_THAN_USUAL * mean, "its own mean since start") if known(mean) else None
