"""Where the time of one replica's requests goes: every cause with its share, named by the rules of diagnosis.md 4a."""

from triage.diagnosis.cache import judge_cache
from triage.diagnosis.decode import judge_decode
from triage.diagnosis.fall import hits_fell
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.interference import judge_interference
from triage.diagnosis.peers import Peers
from triage.diagnosis.prefill import judge_prefill
from triage.diagnosis.thresholds import SHARE_SUPPORT
from triage.diagnosis.view import ReplicaView
from triage.diagnosis.waits import judge_waits
from triage.diagnosis.warmup import judge_warm_up
from triage.domain.situation import Situation
from triage.domain.verdict import Confidence, Kind

_SURE = (Confidence.LIKELY, Confidence.CONFIRMED)


def judge_time(
    view: ReplicaView, peers: Peers, situation: Situation, *, alone: bool, gateway_unread: bool
) -> list[Hypothesis]:
    """All hypotheses about one replica's time. alone: it is the only engine."""
    waits = judge_waits(view, situation, alone, gateway_unread)
    prefill = judge_prefill(view, situation.limits)
    decode = judge_decode(view, peers, situation, alone)
    fall = hits_fell(view)
    cache = judge_cache(view, situation, fall, alone)
    warm_up = judge_warm_up(view, peers, situation.limits, fall)
    if prefill is not None and prefill.confidence() is not None:
        waits = [h for wait in waits if (h := _beside_prefill(wait, prefill)) is not None]
    else:
        prefill = judge_interference(view, peers, situation.limits)
    for cause, words in ((cache, "prompts are computed that the cache held"), (warm_up, "it has just started")):
        if prefill is not None and cause is not None and cause.confidence() in _SURE:
            prefill = prefill.doubted(f"{words}: {cause.kind.value}")
    return [h for h in (*waits, prefill, decode, cache, warm_up) if h is not None]


def _beside_prefill(wait: Hypothesis, prefill: Hypothesis) -> Hypothesis | None:
    """A queue in front of a saturated prefill is named after prefill when that is the larger share of the same time.

    A queue that takes a good part of it nevertheless stays in the list, with its share.
    """
    if wait.kind is not Kind.QUEUEING:
        return wait
    if wait.share is None or prefill.share is None or wait.share.of != prefill.share.of:
        return None
    if wait.share.value > prefill.share.value:
        return wait
    return wait.doubted("the larger part is prefill") if wait.share.value >= SHARE_SUPPORT else None
