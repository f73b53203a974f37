"""Replicas or ranks of one model that carry uneven loads."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.reference import ttft_bound
from triage.diagnosis.text import count, many, percent
from triage.diagnosis.thresholds import CROWD_LEAST, CROWD_SHARE, FEW_PROMPTS, IDLE_SHARE, IMBALANCE_RATIO
from triage.diagnosis.view import UNNAMED_TARGET, ReplicaView
from triage.domain.absence import known
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.reading import Role
from triage.domain.stream import ProbeReading
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope
from triage.domain.window import Track


def judge_balance(
    views: Sequence[ReplicaView], probes: Sequence[ProbeReading], limits: Limits, routing_unread: bool
) -> list[Hypothesis]:
    """Over the replicas of one model, and over the ranks inside each of them.

    routing_unread: something lies there that says whether traffic reaches a replica, and was not read.
    """
    found = [hypothesis for view in views if (hypothesis := _ranks(view)) is not None]
    by_role: dict[str, list[ReplicaView]] = defaultdict(list)
    for view in views:
        # Files that name no target beside files that do are another window or another thing, not one more replica.
        named = view.name != UNNAMED_TARGET
        if named and not view.is_frontend and view.waiting is not None and view.running is not None:
            by_role[_role(view)].append(view)
    for workers in by_role.values():
        loads = {view.name: (view.waiting, view.running, view.kv) for view in workers}
        uneven = _uneven(loads) if len(workers) >= 2 else None
        if uneven is not None:
            found.append(_replicas(workers, uneven, probes, _doubts(workers, uneven, limits, routing_unread)))
    return found


def _role(view: ReplicaView) -> str:
    """Prefill and decode workers carry different loads on purpose; some engines tell the role by their name alone."""
    role = view.window.last.role
    if role is not Role.MIXED:
        return role.value
    return next((word for word in (Role.PREFILL.value, Role.DECODE.value) if word in view.name.lower()), role.value)


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
        if waiting is not None and waiting.high == 0 and room:
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
    crowded = _crowded(view, ranks)
    if crowded is not None:
        return crowded
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
            f"{len(uneven.hot)} of {len(ranks)} data-parallel ranks queue ({many(uneven.waiting, 'request')}) "
            f"while {len(uneven.idle)} have room"
        ),
        evidence=tuple(evidence),
        next_test="compare what the balancer sends to each rank; pin one request to an idle rank",
    )


def _crowded(view: ReplicaView, ranks: Mapping[str, Mapping[Quantity, Track]]) -> Hypothesis | None:
    """Nearly all requests run on one rank, though nobody waits: the others' devices do nothing."""
    running = {label: track for label, tracks in ranks.items() if (track := tracks.get(Quantity.RUNNING)) is not None}
    if len(running) < 2:
        return None
    hot = max(running, key=lambda label: running[label].mean)
    inside, total = running[hot], sum(track.mean for track in running.values())
    others = len(running) - 1
    if inside.low < CROWD_LEAST or inside.mean < CROWD_SHARE * total:
        return None
    return Hypothesis(
        kind=Kind.LOAD_IMBALANCE,
        detail="ranks",
        scope=Scope(model=view.model or None, replica=view.name),
        summary=f"{hot} runs {count(inside.mean)} of {count(total)} requests while {others} others are nearly idle",
        evidence=(
            view.evidence(
                "rank-crowd",
                f"{percent(inside.mean / total)} of the running requests are on {hot}, one of {others + 1} ranks",
                quantity=Quantity.RUNNING,
                strength=3,
                value=inside.mean / total,
                unit="share",
                threshold=CROWD_SHARE,
            ),
        ),
        next_test="compare what the balancer sends to each rank; pin one request to an idle rank",
    )


def _listed(names: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and 3 more'."""
    if len(names) > 3:
        return f"{', '.join(names[:2])} and {len(names) - 2} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _plural(names: Sequence[str], one: str, many: str) -> str:
    return one if len(names) == 1 else many


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


def _doubts(views: Sequence[ReplicaView], uneven: _Uneven, limits: Limits, routing_unread: bool) -> str:
    """Why the uneven load is perhaps not what hurts; empty where nothing says so."""
    by_name = {view.name: view for view in views}
    if routing_unread and all(by_name[name].idle and not by_name[name].moved for name in uneven.idle):
        return f"no request at all reaches {_listed(uneven.idle)}: it may be ready and not routable"
    hot = [by_name[name] for name in uneven.hot]
    if all(known(view.ttft) and view.ttft <= ttft_bound(view, limits).bound for view in hot):
        return f"first tokens of {_listed(uneven.hot)} come within the limit all the same"
    prompts = [view.window.delta(Quantity.TTFT) for view in hot]
    if all(known(number) and number < FEW_PROMPTS for number in prompts):
        return f"so few prompts reach {_listed(uneven.hot)} that one long one may be all that the others wait for"
    return ""


def _replicas(views: Sequence[ReplicaView], uneven: _Uneven, probes: Sequence[ProbeReading], doubt: str) -> Hypothesis:
    by_name = {view.name: view for view in views}
    hot, idle = by_name[uneven.hot[0]], by_name[uneven.idle[0]]
    evidence = [
        hot.evidence(
            "replica-queue",
            f"{', '.join(uneven.hot)}: {many(uneven.waiting, 'request')} waiting, in every reading some",
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
            f"{_listed(uneven.hot)} {_plural(uneven.hot, 'queues', 'queue')} {many(uneven.waiting, 'request')} while "
            f"{_listed(uneven.idle)} {_plural(uneven.idle, 'has', 'have')} room"
        ),
        evidence=tuple(evidence),
        next_test="send the same request pinned to the idle replica and through the balancer",
        tested=bool(quick and slow),
        ceiling=Confidence.POSSIBLE if doubt else Confidence.CONFIRMED,
        capped=doubt,
        confounders=("cache-aware and session-sticky routing is uneven on purpose, up to a point",),
    )
