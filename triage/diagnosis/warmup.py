"""A process that has just started: its first requests pay for compiling, and its caches are empty."""

from triage.diagnosis.fall import Fall, fall_evidence, lengths_evidence, restarted_since
from triage.diagnosis.hits import prompt_length_in
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.peers import Peers
from triage.diagnosis.reference import ttft_bound, usual_ttft
from triage.diagnosis.text import percent, seconds
from triage.diagnosis.thresholds import SAME_LENGTH, SLOWER_THAN_USUAL, WARM_UP_TAIL, YOUNG_S
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.verdict import Direction, Evidence, Kind, Scope

# Prompts are alike when the longest tenth is at most so many times the median: two steps of the usual buckets.
_ALIKE = 4.0


def judge_warm_up(view: ReplicaView, peers: Peers, limits: Limits, fall: Fall | None) -> Hypothesis | None:
    """First tokens of a young process that come late, or None."""
    cold, young = _cold_cache(view, fall), _young(view)
    if (young is None and not cold) or not known(view.ttft):
        return None
    usual = usual_ttft(view)
    late = view.ttft > ttft_bound(view, limits).bound
    if not late and not (cold and usual is not None and view.ttft > usual.bound):
        return None
    evidence = [item for item in (young, _peers_are_fine(view, peers, limits), _most_in_time(view, limits)) if item]
    evidence += [*cold, *_queue(view)]
    return Hypothesis(
        kind=Kind.COLD_START,
        detail="cache-empty" if cold else "warm-up",
        scope=Scope(model=view.model or None, replica=view.name),
        summary=f"first token takes {seconds(view.ttft)}: {evidence[0].text}",
        evidence=tuple(evidence),
        next_test="look again in five minutes: first tokens must come in time without any change",
        confounders=("the first requests of a process pay for compiling, capture and empty caches",),
    )


def _young(view: ReplicaView) -> Evidence | None:
    """Its first requests fall into the window, or it is a few minutes old."""
    last = view.window.last
    started = last.values.get(Quantity.PROCESS_START)
    age = last.at - started if last.at is not None and started is not None else None
    if age is not None and age > view.window.seconds + YOUNG_S:
        return None
    if not view.first_requests and age is None:
        return None
    text = "these are the first requests of this process" if view.first_requests else "this process is young"
    return view.evidence(
        "young",
        f"{text} ({seconds(age)} old)" if age is not None and age >= 0 else text,
        quantity=Quantity.PROCESS_START if age is not None else Quantity.GENERATION_TOKENS,
        strength=2,
        value=age,
        unit="s",
        threshold=YOUNG_S,
    )


def _peers_are_fine(view: ReplicaView, peers: Peers, limits: Limits) -> Evidence | None:
    """Replicas of the same model answer prompts of this length in time."""
    usual, length, theirs = peers.usual(view, _ttft), prompt_length_in(view.window), peers.usual(view, _length)
    if usual is None or length is None or theirs is None or not known(view.ttft):
        return None
    alike = length <= SAME_LENGTH * theirs
    slower = view.ttft > SLOWER_THAN_USUAL * usual and usual <= ttft_bound(view, limits).bound
    if not alike or not slower:
        return None
    return view.evidence(
        "peers-in-time",
        f"its peers' first tokens take {seconds(usual)} for prompts of this length",
        quantity=Quantity.TTFT,
        strength=3,
        value=view.ttft,
        unit="s",
        threshold=SLOWER_THAN_USUAL * usual,
        n=int(value_or(view.window.delta(Quantity.TTFT), 0.0)),
    )


def _ttft(view: ReplicaView) -> float | None:
    return view.ttft if known(view.ttft) else None


def _length(view: ReplicaView) -> float | None:
    return prompt_length_in(view.window)


def _most_in_time(view: ReplicaView, limits: Limits) -> Evidence | None:
    """Most first tokens come in time and some very late, although the prompts are alike."""
    ttft, prompts = view.window.histograms.get(Quantity.TTFT), view.window.histograms.get(Quantity.PROMPT_LENGTH)
    bound = ttft_bound(view, limits).bound
    if ttft is None or ttft.count < 1 or not view.first_requests:
        return None
    in_time = max((n for edge, n in zip(ttft.edges, ttft.counts, strict=False) if edge <= bound), default=0.0)
    share = in_time / ttft.count
    middle = prompts.quantile(0.5) if prompts is not None else None
    long = prompts.quantile(0.9, 5) if prompts is not None else None
    if share < WARM_UP_TAIL or middle is None or long is None or long.high > _ALIKE * max(middle.low, 1.0):
        return None
    return view.evidence(
        "most-in-time",
        f"{percent(share)} of the first tokens came in time and the rest very late, for prompts of one length",
        quantity=Quantity.TTFT,
        strength=3,
        value=share,
        unit="share",
        threshold=WARM_UP_TAIL,
        n=int(ttft.count),
    )


def _cold_cache(view: ReplicaView, fall: Fall | None) -> list[Evidence]:
    """Another process served the baseline, and this one has seen too few prompts to have filled its prefix cache."""
    earlier = view.replica.baseline
    if earlier is None or fall is None or not restarted_since(view, earlier) or fall.warm:
        return []
    lengths = lengths_evidence(view, fall, 3)
    if not lengths or lengths[0].direction is Direction.AGAINST:
        return []
    text = f"{fall_evidence(view, fall, Direction.FOR).text}: its prefix cache is still being filled"
    cold = view.evidence(
        "cold-cache", text, quantity=Quantity.PREFIX_HITS, strength=3, value=fall.now.share, unit="share"
    )
    return [cold, *lengths]


def _queue(view: ReplicaView) -> list[Evidence]:
    """A queue in every reading is more load than the replica takes, however young it is."""
    if not view.always_waiting:
        return []
    return [
        view.evidence(
            "waiting",
            "requests wait in every reading",
            quantity=Quantity.WAITING,
            strength=3,
            direction=Direction.AGAINST,
            value=view.queued.last if view.queued is not None else None,
            unit="requests",
        )
    ]
