"""Prefix-cache hits that fell against the replica's own past, and whether the traffic is the same as then."""

import math

import msgspec

from triage.diagnosis.hits import Hits, hits_before, hits_in, prompt_length_before, prompt_length_in
from triage.diagnosis.reference import usual_ttft
from triage.diagnosis.text import count, percent
from triage.diagnosis.thresholds import (
    CHANCE_SD,
    FIRST_TOKEN_FELT,
    HIT_QUERIES,
    HITS_FELL,
    LENGTHS_WEIGH,
    SAME_LENGTH,
    SAME_TRAFFIC,
    WARM_REQUESTS,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.verdict import Direction, Evidence
from triage.domain.window import Window

# Two start times of one process differ by rounding only.
_SAME_START_S = 1.5


class Fall(msgspec.Struct, frozen=True):
    """Hits of one replica against its own past.

    before_length: prompt tokens a request then; None when not known. since: hits of this process up to the window.
    warm: it has seen so many prompts since its start that its cache is full of them.
    """

    now: Hits
    before: Hits
    name: str
    before_length: float | None
    since: Hits | None
    warm: bool


def hits_fell(view: ReplicaView) -> Fall | None:
    """Far fewer prompt tokens come from the prefix cache than in the baseline window, else than since start."""
    now = hits_in(view.window)
    if now is None or not (now.enough or prompts_without_lookups(view, now)):
        return None
    for before, length, name in _pasts(view):
        if before is not None and before.enough and before.blocks is now.blocks:
            fell = before.share - now.share >= HITS_FELL and not _by_chance(view, now, before.share)
            return Fall(now, before, name, length, *_since_start(view)) if fell else None
    return None


def _by_chance(view: ReplicaView, now: Hits, before: float) -> bool:
    """So few prompts were looked up that one new conversation more or less brings about the fall.

    Shares within 0..1 with mean p vary by at most sqrt(p (1 - p)) (Bhatia and Davis, 2000), their mean over n prompts
    by that over sqrt(n). The share weighs prompts by their length, which takes as many from n as Kish (1965) says.
    """
    length = prompt_length_before(view.window) or prompt_length_in(view.window)
    if not length or now.blocks:
        return False
    prompts = max(now.asked / length, value_or(view.window.delta(Quantity.TTFT), 0.0)) / LENGTHS_WEIGH
    return prompts <= 0 or before - now.share <= CHANCE_SD * math.sqrt(before * (1 - before) / prompts)


def felt(view: ReplicaView) -> bool:
    """First tokens take longer than they did, and long enough to be felt; or nothing says how long they take."""
    usual = usual_ttft(view)
    if not known(view.ttft) or usual is None:
        return True
    return view.ttft > max(usual.bound, FIRST_TOKEN_FELT)


def _pasts(view: ReplicaView) -> list[tuple[Hits | None, float | None, str]]:
    """(hits, prompt length, name), the better reference first."""
    own = (hits_before(view.window), prompt_length_before(view.window), "its mean since start")
    earlier = view.replica.baseline
    if earlier is None:
        return [own]
    return [(hits_in(earlier), prompt_length_in(earlier), view.replica.baseline_name), own]


def _since_start(view: ReplicaView) -> tuple[Hits | None, bool]:
    """(hits since this process started, whether they fill a cache)."""
    since, length = hits_before(view.window), prompt_length_in(view.window)
    if since is None or length is None or since.blocks:
        return since, False
    return since, since.asked >= max(WARM_REQUESTS * length, HIT_QUERIES)


def prompts_without_lookups(view: ReplicaView, now: Hits) -> bool:
    """Prompts are computed and the cache is not even asked."""
    prompt = value_or(view.window.delta(Quantity.PROMPT_TOKENS), 0.0)
    return now.asked == 0 and not now.blocks and prompt >= HIT_QUERIES


HITS_FELL_ID = "engine.hits-fell"


def fall_evidence(view: ReplicaView, fall: Fall, direction: Direction) -> Evidence:
    """The fall as one statement."""
    return view.evidence(
        "hits-fell",
        f"{view.prefix}prefix cache hits fell to {percent(fall.now.share)} from {percent(fall.before.share)} "
        f"({fall.name})",
        quantity=Quantity.PREFIX_BLOCK_HITS if fall.now.blocks else Quantity.PREFIX_HITS,
        direction=direction,
        value=fall.now.share,
        unit="share",
        threshold=fall.before.share - HITS_FELL,
    )


def restarted_since(view: ReplicaView, earlier: Window) -> bool:
    """Another process served that window."""
    before = earlier.last.values.get(Quantity.PROCESS_START)
    now = view.window.last.values.get(Quantity.PROCESS_START)
    return before is not None and now is not None and now - before > _SAME_START_S


def same_traffic(view: ReplicaView) -> bool:
    """As many prompt tokens a second, in prompts of the same length, as in the baseline window."""
    earlier, now = view.replica.baseline, hits_in(view.window)
    then = hits_in(earlier) if earlier is not None else None
    if earlier is None or now is None or then is None or view.window.seconds <= 0 or earlier.seconds <= 0:
        return False
    lengths = (prompt_length_in(view.window), prompt_length_in(earlier))
    rates = (now.asked / view.window.seconds, then.asked / earlier.seconds)
    return all(a and b and 1 / SAME_TRAFFIC <= a / b <= SAME_TRAFFIC for a, b in (lengths, rates))


def lengths_evidence(view: ReplicaView, fall: Fall, strength: int) -> list[Evidence]:
    """Whether the traffic is the same. strength: of a length that is not."""
    now = prompt_length_in(view.window)
    if now is None or not fall.before_length:
        return []
    ratio = now / fall.before_length
    same = 1 / SAME_LENGTH <= ratio <= SAME_LENGTH
    if same:
        text = f"prompts are as long as then ({count(now)} tokens, {count(fall.before_length)})"
    else:
        text = f"prompts have {count(now)} tokens, {count(fall.before_length)} then: other traffic finds less as well"
    return [
        view.evidence(
            "same-length" if same else "other-length",
            text,
            quantity=Quantity.PROMPT_TOKENS,
            strength=1 if same else strength,
            direction=Direction.FOR if same else Direction.AGAINST,
            value=now,
            unit="tokens",
            threshold=SAME_LENGTH * fall.before_length,
        )
    ]
