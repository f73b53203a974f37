"""The prefix cache finds less than it did while the traffic is the same, and what takes its hits away."""

from collections.abc import Sequence

from triage.diagnosis.divergence import divergence
from triage.diagnosis.fall import (
    Fall,
    fall_evidence,
    lengths_evidence,
    prompts_without_lookups,
    restarted_since,
    same_traffic,
)
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.reference import usual_ttft
from triage.diagnosis.shares import share_between
from triage.diagnosis.text import count, percent, seconds
from triage.diagnosis.thresholds import HITS_FELL, KV_FULL
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.situation import Situation
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope, Share

# Statements that compare prompts themselves: they hold whatever else the traffic does.
_PROOFS = frozenset({"probe.prompts-differ", "gateway.fixed-reuse"})
_CONFOUNDER = "a cold cache after a start fills within minutes; fewer hits for hours have another reason"
_NEXT: dict[str | None, str] = {
    None: "send one long prompt twice to one replica: the second must be far sooner; then compare two real prompts",
    "restart": "send one long prompt twice: both slow means that the new process caches nothing; compare its arguments",
    "switched-off": "compare the arguments of the two versions: prefix caching may be off by default now",
    "prompt-start": "compare two prompts of one client from their first character: the first difference is the place",
    "eviction": "send one long prompt twice, at once and after some minutes: only the late one is slow",
}


def judge_cache(view: ReplicaView, situation: Situation, fall: Fall | None, alone: bool) -> Hypothesis | None:
    """Lost prefix-cache hits of one replica, or None. alone: no other replica can have served the known requests."""
    if fall is None and not alone:
        return None
    told = divergence(situation, view.logs, fall, same_traffic(view)) if alone else []
    if fall is None:
        return _grown_past_its_cache(view, told)
    mechanisms = [*_since_restart(view, fall), *told]
    decisive = [item for item in mechanisms if item.strength >= 3]
    proven = any(item.id in _PROOFS for item in decisive)
    lengths = lengths_evidence(view, fall, 1 if proven else 3)
    detail = _detail(mechanisms)
    if detail is None and view.kv is not None and view.kv.high >= KV_FULL:
        detail = "eviction"
    sure = bool(decisive) and (proven or bool(lengths))
    surest = Confidence.CONFIRMED if len(decisive) > 1 else Confidence.LIKELY
    return Hypothesis(
        kind=Kind.CACHE_MISS_REGRESSION,
        detail=detail,
        scope=Scope(model=view.model or None, replica=view.name),
        summary=(
            f"the prefix cache finds {percent(fall.now.share)} of the {_counted(fall)}, {percent(fall.before.share)} "
            f"in {fall.name}{_WORDS[detail]}"
        ),
        evidence=(fall_evidence(view, fall, Direction.FOR), *mechanisms, *lengths, *_evicted(view), *_felt(view)),
        share=_share(view),
        next_test=_NEXT[detail],
        tested=proven,
        ceiling=surest if sure else Confidence.POSSIBLE,
        capped="" if sure else "new kinds of prompts look the same",
        confounders=(_CONFOUNDER, "an even rate over all clients may hide one that lost everything"),
    )


def judge_prompts(situation: Situation) -> Hypothesis | None:
    """The same from requests alone, where no engine's page was read."""
    return _grown_past_its_cache(None, divergence(situation, (), None, False))


_WORDS: dict[str | None, str] = {
    None: "",
    "restart": ": the process before this one found it",
    "switched-off": ": it is not asked any more",
    "prompt-start": ": prompts change at their beginning",
    "eviction": ": the cache is full and gives up what it had",
}


def _grown_past_its_cache(view: ReplicaView | None, told: Sequence[Evidence]) -> Hypothesis | None:
    """Without a count from before, only a conversation whose reuse stands still shows hits that ought to be there."""
    if not any(item.strength >= 3 for item in told):
        return None
    compared = any(item.family is Family.PROBE for item in told)
    return Hypothesis(
        kind=Kind.CACHE_MISS_REGRESSION,
        detail="prompt-start",
        scope=Scope(model=view.model or None, replica=view.name) if view is not None else Scope(),
        summary=f"a conversation grows and the prefix cache does not follow: {told[0].text}",
        evidence=(*told, *(_felt(view) if view is not None else ())),
        share=_share(view) if view is not None else None,
        next_test=_NEXT["prompt-start"],
        # A log and a list of the same turns are one witness; only compared prompts are another.
        ceiling=Confidence.CONFIRMED if compared else Confidence.LIKELY,
    )


def _counted(fall: Fall) -> str:
    return "prompts' blocks" if fall.now.blocks else "prompt tokens"


def _detail(mechanisms: Sequence[Evidence]) -> str | None:
    strongest = max(mechanisms, key=lambda item: item.strength, default=None)
    if strongest is None:
        return None
    return {"engine.since-restart": "restart", "engine.no-lookups": "switched-off"}.get(strongest.id, "prompt-start")


def _since_restart(view: ReplicaView, fall: Fall) -> list[Evidence]:
    """Another process served the baseline, and this one has found little in all its life."""
    earlier = view.replica.baseline
    if earlier is None or fall.name != view.replica.baseline_name or not restarted_since(view, earlier):
        return []
    if prompts_without_lookups(view, fall.now):
        return [
            view.evidence(
                "no-lookups",
                "prompts are computed and the prefix cache is never asked; the process before this one asked it",
                quantity=Quantity.PREFIX_QUERIES,
                strength=3,
                value=0.0,
                unit="tokens",
            )
        ]
    since = fall.since
    if since is None or not fall.warm or fall.before.share - since.share < HITS_FELL:
        return []
    return [
        view.evidence(
            "since-restart",
            f"since this process started it found {percent(since.share)} of {count(since.asked)} prompt tokens: "
            "its cache is not just cold",
            quantity=Quantity.PREFIX_HITS,
            strength=3,
            value=since.share,
            unit="share",
            threshold=fall.before.share - HITS_FELL,
        )
    ]


def _evicted(view: ReplicaView) -> list[Evidence]:
    if view.kv is None or view.kv.high < KV_FULL:
        return []
    return [
        view.evidence(
            "kv-full",
            f"the KV cache is {percent(view.kv.high)} full: old prefixes are given up for running requests",
            quantity=Quantity.KV_USAGE,
            strength=1,
            value=view.kv.high,
            unit="share",
            threshold=KV_FULL,
        )
    ]


def _felt(view: ReplicaView) -> list[Evidence]:
    """First tokens come later than before."""
    usual = usual_ttft(view)
    if usual is None or not known(view.ttft) or view.ttft <= usual.bound:
        return []
    return [
        view.evidence(
            "first-token",
            f"first token takes {seconds(view.ttft)}, {seconds(usual.value)} in {usual.name}",
            quantity=Quantity.TTFT,
            strength=1,
            value=view.ttft,
            unit="s",
            threshold=usual.bound,
            n=int(value_or(view.window.delta(Quantity.TTFT), 0.0)),
        )
    ]


def _share(view: ReplicaView) -> Share | None:
    """Prefill's share of the time to first token: what lost hits cost lies in it."""
    prefill = view.window.mean(Quantity.PREFILL_TIME)
    if not known(prefill) or not known(view.ttft) or view.ttft <= 0:
        return None
    value = min(prefill / view.ttft, 1.0)
    return share_between(value, (), value_or(view.window.delta(Quantity.PREFILL_TIME), 0.0), "time to first token")
