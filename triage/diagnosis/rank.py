"""From hypotheses to an ordered, honest list: merging replicas, rivals, and who comes first."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, combinations

import msgspec

from triage.diagnosis.hypothesis import Hypothesis, surer_first
from triage.diagnosis.thresholds import SHARES_ROUND
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope

_SEVERITY = {kind: place for place, kind in enumerate(Kind)}


_RIVAL = "{} explains the same time about as well"


def merge_replicas(hypotheses: Sequence[Hypothesis], replicas_of: dict[str, int]) -> list[Hypothesis]:
    """The same cause on several replicas of one model is one verdict: the clearest one's evidence, and how many."""
    groups: dict[tuple[Kind, str | None], list[Hypothesis]] = defaultdict(list)
    merged: list[Hypothesis] = []
    for hypothesis in hypotheses:
        if hypothesis.scope.replica is None or hypothesis.scope.hop or hypothesis.scope.node:
            merged.append(hypothesis)
        else:
            groups[hypothesis.kind, hypothesis.scope.model].append(hypothesis)
    for (_, model), group in groups.items():
        total = replicas_of.get(model or "", len(group))
        merged.append(group[0] if len(group) == 1 else _merged(group, total))
    return merged


def _merged(group: list[Hypothesis], total: int) -> Hypothesis:
    worst = min(group, key=lambda h: (surer_first(h.confidence()), -(h.share.value if h.share else 0.0), -h.score()))
    names = [h.scope.replica or "" for h in group]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    together = Evidence(
        id="engine.replicas",
        direction=Direction.FOR,
        strength=1,
        family=Family.ENGINE,
        text=f"{len(group)} of {max(total, len(group))} replicas show it: {shown}",
        value=float(len(group)),
        unit="replicas",
        n=total,
    )
    return msgspec.structs.replace(
        worst,
        scope=Scope(model=worst.scope.model),
        summary=f"{len(group)} of {max(total, len(group))} replicas, worst {worst.scope.replica}: {worst.summary}",
        evidence=(*worst.evidence, together),
    )


def separate_rivals(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Two explanations of the same time that are within a point and overlap are both only possible."""
    result = list(hypotheses)
    by_model: dict[str | None, list[int]] = defaultdict(list)
    for place, hypothesis in enumerate(result):
        by_model[hypothesis.scope.model].append(place)
    for a, b in chain.from_iterable(combinations(places, 2) for places in by_model.values()):
        one, other = result[a], result[b]
        if _rivals(one, other):
            result[a] = one.doubted(_RIVAL.format(other.kind.value))
            result[b] = other.doubted(_RIVAL.format(one.kind.value))
    return result


def _rivals(one: Hypothesis, other: Hypothesis) -> bool:
    """Of two hypotheses about one model."""
    if one.kind is other.kind or one.share is None or other.share is None:
        return False
    same = one.share.of == other.share.of
    sure = one.confidence() in (Confidence.LIKELY, Confidence.CONFIRMED) and other.confidence() in (
        Confidence.LIKELY,
        Confidence.CONFIRMED,
    )
    overlap = one.share.low <= other.share.high and other.share.low <= one.share.high
    # Two that fit into the same time side by side are both true, each with its share: nothing is to be decided.
    compete = one.share.value + other.share.value > 1 + SHARES_ROUND
    return same and sure and overlap and compete and abs(one.score() - other.score()) <= 1


def order(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Surest first; then the worse kind; then the larger share and the stronger evidence; names last."""

    def key(h: Hypothesis) -> tuple[int, int, float, int, str, str]:
        return (
            surer_first(h.confidence()),
            0 if h.confidence() is Confidence.POSSIBLE else _SEVERITY[h.kind],
            -(h.share.value if h.share else 0.5),
            -h.score(),
            h.kind.value,
            f"{h.scope.model}/{h.scope.replica}",
        )

    return sorted((h for h in hypotheses if h.confidence() is not None), key=key)
