"""Replicas or ranks of one model that carry uneven loads."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.text import count, percent
from triage.diagnosis.thresholds import IDLE_SHARE, IMBALANCE_RATIO
from triage.diagnosis.view import ReplicaView
from triage.domain.quantity import Quantity
from triage.domain.stream import ProbeReading
from triage.domain.verdict import Direction, Evidence, Family, Kind, Scope
from triage.domain.window import Track


def judge_balance(views: Sequence[ReplicaView], probes: Sequence[ProbeReading]) -> list[Hypothesis]:
    """Over the replicas of one model, and over the ranks inside each of them."""
    found = [hypothesis for view in views if (hypothesis := _ranks(view)) is not None]
    workers = [view for view in views if not view.is_frontend and view.waiting is not None and view.running is not None]
    if len(workers) >= 2:
        loads = {view.name: (view.waiting, view.running, view.kv) for view in workers}
        uneven = _uneven(loads)
        if uneven is not None:
            found.append(_replicas(workers, uneven, probes))
    return found


class _Uneven:
    """Who waits, and who has room meanwhile."""

    def __init__(self, hot: list[str], idle: list[str], waiting: float, spread: float) -> None:
        self.hot, self.idle, self.waiting, self.spread = hot, idle, waiting, spread


def _uneven(loads: Mapping[str, tuple[Track | None, Track | None, Track | None]]) -> _Uneven | None:
    """Members that queue in every reading while others of the same kind have room.

    Two members can never show a ratio above 2, so an idle peer beside a queue counts as well.
    """
    waits = {name: load[0] for name, load in loads.items() if load[0] is not None}
    mean = fmean([track.mean for track in waits.values()]) if waits else 0.0
    if mean <= 0:
        return None
    hot = [name for name, track in waits.items() if track.low > 0 and track.mean >= mean]
    if not hot:
        return None
    hottest = max(waits[name].mean for name in hot)
    running = fmean([track.mean for name in hot if (track := loads[name][1]) is not None] or [0.0])
    idle = []
    for name, (waiting, runs, _) in loads.items():
        room = runs is not None and runs.high <= IDLE_SHARE * running
        if name not in hot and waiting is not None and waiting.high == 0 and room:
            idle.append(name)
    # A ratio alone says little when the small queues are queues as well.
    lopsided = hottest / mean >= IMBALANCE_RATIO and any(track.high == 0 for track in waits.values())
    if not idle and not lopsided:
        return None
    others = idle or [name for name, track in waits.items() if track.high == 0]
    return _Uneven(hot, others, sum(waits[name].last for name in hot), hottest / mean)


def _ranks(view: ReplicaView) -> Hypothesis | None:
    ranks = view.window.rank_gauges
    if len(ranks) < 2:
        return None
    uneven = _uneven(
        {
            label: (tracks.get(Quantity.WAITING), tracks.get(Quantity.RUNNING), tracks.get(Quantity.KV_USAGE))
            for label, tracks in ranks.items()
        }
    )
    if uneven is None:
        return None
    evidence = [
        view.evidence(
            "rank-queues",
            f"{', '.join(uneven.hot)} of {len(ranks)} ranks hold {count(uneven.waiting)} waiting requests, "
            f"{len(uneven.idle)} others none",
            quantity=Quantity.WAITING,
            strength=3,
            value=uneven.spread,
            unit="× mean",
            threshold=IMBALANCE_RATIO,
        )
    ]
    evidence += _rank_kv(view, uneven)
    return Hypothesis(
        kind=Kind.LOAD_IMBALANCE,
        detail="ranks",
        scope=Scope(model=view.model or None, replica=view.name),
        summary=(
            f"{len(uneven.hot)} of {len(ranks)} data-parallel ranks queue ({count(uneven.waiting)} requests) "
            f"while {len(uneven.idle)} have room"
        ),
        evidence=tuple(evidence),
        next_test="compare what the balancer sends to each rank; pin one request to an idle rank",
    )


def _rank_kv(view: ReplicaView, uneven: _Uneven) -> list[Evidence]:
    def kv(names: Sequence[str]) -> list[float]:
        tracks = [view.window.rank_gauges[name].get(Quantity.KV_USAGE) for name in names]
        return [track.last for track in tracks if track is not None]

    full, free = kv(uneven.hot), kv(uneven.idle)
    if not full or not free:
        return []
    return [
        view.evidence(
            "rank-kv",
            f"their KV caches are {percent(max(full))} full, the others' at most {percent(max(free))}",
            quantity=Quantity.KV_USAGE,
            strength=1,
            value=max(full),
            unit="share",
        )
    ]


def _replicas(views: Sequence[ReplicaView], uneven: _Uneven, probes: Sequence[ProbeReading]) -> Hypothesis:
    by_name = {view.name: view for view in views}
    hot, idle = by_name[uneven.hot[0]], by_name[uneven.idle[0]]
    evidence = [
        hot.evidence(
            "replica-queue",
            f"{', '.join(uneven.hot)}: {count(uneven.waiting)} requests wait in every reading",
            quantity=Quantity.WAITING,
            strength=3,
            value=uneven.waiting,
            unit="requests",
            threshold=0.0,
        ),
        idle.evidence(
            "replica-idle",
            f"{', '.join(uneven.idle)}: nothing waits, {count(idle.running.last if idle.running else 0)} running",
            quantity=Quantity.RUNNING,
            strength=2,
            value=idle.running.last if idle.running else None,
            unit="requests",
        ),
    ]
    quick = [p for p in probes if p.target in uneven.idle and p.generates and p.got_token]
    slow = [p for p in probes if p.target in uneven.hot and p.generates and p.first_token_s is not None]
    if quick and slow:
        evidence.append(
            Evidence(
                id="probe.replicas",
                direction=Direction.FOR,
                strength=2,
                family=Family.PROBE,
                text=f"{quick[0].target} answers in {quick[0].first_token_s or 0:.3g} s, "
                f"{slow[0].target} in {slow[0].first_token_s:.3g} s",
                value=slow[0].first_token_s,
                unit="s",
                n=len(quick) + len(slow),
                source=quick[0].source,
            )
        )
    return Hypothesis(
        kind=Kind.LOAD_IMBALANCE,
        detail="replicas",
        scope=Scope(model=hot.model or None, replica=uneven.hot[0] if len(uneven.hot) == 1 else None),
        summary=(
            f"{', '.join(uneven.hot)} queues {count(uneven.waiting)} requests while {', '.join(uneven.idle)} has room"
        ),
        evidence=tuple(evidence),
        next_test="send the same request pinned to the idle replica and through the balancer",
        tested=bool(quick and slow),
        confounders=("cache-aware and session-sticky routing is uneven on purpose, up to a point",),
    )
