"""Time spent on prompts: prefill as the larger part of the first token, or as what others wait for."""

from statistics import fmean, pstdev

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.reference import ttft_bound
from triage.diagnosis.shares import share_between
from triage.diagnosis.text import count, percent, seconds
from triage.diagnosis.thresholds import (
    CEILING_LINES,
    CEILING_SPREAD,
    PROMPT_PER_GENERATED,
    SHARE_SUPPORT,
    UNCHANGED,
)
from triage.diagnosis.view import ReplicaView
from triage.diagnosis.wait import Wait
from triage.domain.absence import known, value_or
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope, Share


def judge_prefill(view: ReplicaView, limits: Limits) -> Hypothesis | None:
    """Slow prefill of one replica, or None."""
    silent = _no_token_at_all(view)
    if not silent and not (known(view.ttft) and view.ttft > ttft_bound(view, limits).bound):
        return None
    wait = Wait(view, limits)
    share = _share(wait, silent)
    if share is None or share.value < SHARE_SUPPORT:
        return None
    evidence = _evidence(wait, silent)
    usual = wait.usual
    as_usual = usual is not None and known(wait.ttft) and wait.ttft <= UNCHANGED * usual.value
    declared = "first_visible_p95_s" in limits.declared
    doubt = ""
    if view.first_requests:
        doubt = "these are its first requests since start: compiling and warming up look the same"
    elif as_usual and not declared and not silent:
        doubt = "no slower than this replica's own past; declare a limit if that is too slow"
    return Hypothesis(
        kind=Kind.SLOW_PREFILL,
        detail="prefill-ceiling" if view.waiting is not None and view.waiting.high > 0 else "long-prompts",
        scope=Scope(model=view.model or None, replica=view.name),
        summary=_summary(wait, share, silent),
        evidence=tuple(evidence),
        share=share,
        next_test="send the same long prompt twice, cold and warm: only the cold one is slow when prefill is the cause",
        ceiling=Confidence.POSSIBLE if doubt else Confidence.CONFIRMED,
        capped=doubt,
        confounders=("prefill time includes waiting between the chunks of a chunked prefill, and KV fetches",),
    )


def prefill_dominates(view: ReplicaView) -> bool:
    """Far more prompt than answer is computed: a step's time is the time of other requests' prompts."""
    ratio = view.prompt_per_generated
    return known(ratio) and ratio >= PROMPT_PER_GENERATED


def _no_token_at_all(view: ReplicaView) -> bool:
    """Requests ran all the window, prompt tokens were computed, and nobody got a token who asked for one."""
    if view.running is None or view.running.low == 0 or view.window.seconds <= 0:
        return False
    if view.is_prefill_only or view.answers_without_tokens:
        return False
    first, generated = view.window.delta(Quantity.TTFT), view.generated
    if not known(generated) or generated != 0 or (known(first) and first != 0):
        return False
    computed = view.computed_prompt
    return known(computed) and computed > 0


def ceiling(view: ReplicaView) -> tuple[float, int] | None:
    """(tokens/s, lines) when the logged prompt throughput was flat while requests waited."""
    speeds = [
        line.prompt_speed
        for line in view.throughput
        if line.prompt_speed is not None and line.prompt_speed > 0 and (line.waiting or 0) > 0
    ]
    if len(speeds) < CEILING_LINES:
        return None
    mean = fmean(speeds)
    return (mean, len(speeds)) if pstdev(speeds) <= CEILING_SPREAD * mean else None


def _share(wait: Wait, silent: bool) -> Share | None:
    if silent:
        return Share(1.0, 1.0, 1.0, "time to first token")
    if known(wait.ttft) and known(wait.prefill_mean):
        value = min(wait.prefill_mean / wait.ttft, 1.0)
        rest = 1.0 - min(wait.queue_mean / wait.ttft, 1.0) if known(wait.queue_mean) else 1.0
        n = value_or(wait.view.window.delta(Quantity.PREFILL_TIME), 0.0)
        return share_between(value, (rest,), n, "time to first token")
    if prefill_dominates(wait.view) and wait.of_everything > 0 and ceiling(wait.view) is not None:
        # Nothing splits the first token, but the queue moves only as fast as prompts are computed.
        bounds = (*wait.gauge_bounds, 1.0)
        return share_between(wait.of_everything, bounds, wait.waiting + wait.running, "time in the engine")
    return None


def _evidence(wait: Wait, silent: bool) -> list[Evidence]:
    view = wait.view
    computed = view.computed_prompt
    found: list[Evidence] = []
    if silent:
        found.append(
            view.evidence(
                "no-token",
                f"{count(value_or(computed, 0))} prompt tokens were computed and not one was generated in "
                f"{seconds(view.window.seconds)}",
                quantity=Quantity.PROMPT_TOKENS,
                strength=3,
                value=computed,
                unit="tokens",
            )
        )
    elif prefill_dominates(view):
        found.append(
            view.evidence(
                "prompt-per-token",
                f"{count(value_or(view.prompt_per_generated, 0))} prompt tokens are computed for each generated one",
                quantity=Quantity.PROMPT_TOKENS,
                strength=3,
                value=view.prompt_per_generated,
                unit="tokens",
                threshold=PROMPT_PER_GENERATED,
            )
        )
    if known(wait.prefill_mean):
        n = int(value_or(view.window.delta(Quantity.PREFILL_TIME), 0))
        found.append(
            view.evidence(
                "prefill-time",
                f"prefill took {seconds(wait.prefill_mean)} of {seconds(value_or(wait.ttft, 0))} to the first token",
                quantity=Quantity.PREFILL_TIME,
                value=wait.prefill_mean,
                unit="s",
                n=n,
            )
        )
    flat = ceiling(view)
    if flat is not None:
        speed, lines = flat
        found.append(
            Evidence(
                id="engine.log.prompt-ceiling",
                direction=Direction.FOR,
                strength=2,
                family=Family.ENGINE,
                text=f"prompt throughput is flat at {count(speed)} tokens/s while requests wait",
                value=speed,
                unit="tokens/s",
                n=lines,
                source=view.logs[0].source if view.logs else "",
            )
        )
    if (
        known(wait.queue_mean)
        and known(wait.prefill_mean)
        and wait.queue_mean > wait.prefill_mean
        and flat is None
        and not silent
    ):
        found.append(
            view.evidence(
                "queue-longer",
                f"waiting took longer ({seconds(wait.queue_mean)}) than prefill ({seconds(wait.prefill_mean)})",
                quantity=Quantity.QUEUE_TIME,
                strength=3,
                direction=Direction.AGAINST,
                value=wait.queue_mean,
                unit="s",
            )
        )
    return found


def _summary(wait: Wait, share: Share, silent: bool) -> str:
    view = wait.view
    speed = view.computed_prompt
    rate = f", {count(speed / view.window.seconds)} prompt tokens/s" if known(speed) and view.window.seconds else ""
    if silent:
        return f"no first token in {seconds(view.window.seconds)} while prompts are computed{rate}"
    return (
        f"first token takes {seconds(value_or(wait.ttft, 0))} (bound {seconds(wait.bound.bound)}): "
        f"{percent(share.value)} of the {share.of} goes to prompts{rate}"
    )
