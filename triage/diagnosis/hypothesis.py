"""A cause under test, its evidence, and the rules that turn evidence into confidence."""

from collections.abc import Iterable

import msgspec

from triage.diagnosis.thresholds import SHARE_LIKELY, SHARE_SUPPORT
from triage.domain.verdict import (
    TIMED_KINDS,
    Confidence,
    Direction,
    Evidence,
    Family,
    Kind,
    Scope,
    Share,
    Verdict,
)

# At most this much counts per family: items of one witness are not independent (diagnosis.md 4).
_FAMILY_CAP = 3


class Hypothesis(msgspec.Struct, frozen=True):
    """tested: a discriminating test was done. ceiling: the surest that may be said, and why in `capped`."""

    kind: Kind
    scope: Scope
    summary: str
    evidence: tuple[Evidence, ...]
    detail: str | None = None
    share: Share | None = None
    next_test: str = ""
    tested: bool = False
    ceiling: Confidence = Confidence.CONFIRMED
    capped: str = ""
    confounders: tuple[str, ...] = ()

    def doubted(self, why: str) -> "Hypothesis":
        """Still listed, and no surer than possible."""
        return msgspec.structs.replace(self, ceiling=Confidence.POSSIBLE, capped=why)

    def score(self) -> int:
        """Support minus contradiction, at most 3 points a family on either side."""
        return _score(*_by_family(self.evidence))

    def families(self) -> frozenset[Family]:
        """Families that support it with more than a single hint."""
        return _supporting(_by_family(self.evidence)[0])

    def confidence(self) -> Confidence | None:
        """Gate 4 of diagnosis.md; None when nothing supports it."""
        support, contradiction = _by_family(self.evidence)
        if not support or _score(support, contradiction) <= 0:
            return None
        contradicted = any(e.strength >= 3 and e.direction is Direction.AGAINST for e in self.evidence)
        families = len(_supporting(support))
        if self.kind in TIMED_KINDS:
            share = self.share.value if self.share else 0.0
            confirmed = share >= SHARE_LIKELY and families >= 2 and self.tested
            likely = (share >= SHARE_LIKELY and families >= 1) or (share >= SHARE_SUPPORT and families >= 2)
        else:
            decisive = any(e.strength >= 3 and e.direction is Direction.FOR for e in self.evidence)
            confirmed = decisive and (families >= 2 or self.tested)
            likely = decisive
        if contradicted:
            return Confidence.POSSIBLE
        found = Confidence.CONFIRMED if confirmed else Confidence.LIKELY if likely else Confidence.POSSIBLE
        return weaker(found, self.ceiling)

    def verdict(self) -> Verdict:
        """As said. Call only when confidence() is not None."""
        return Verdict(
            kind=self.kind,
            confidence=self.confidence(),
            scope=self.scope,
            summary=f"{self.summary}; {self.capped}" if self.capped else self.summary,
            detail=self.detail,
            share=self.share,
            evidence=self.evidence,
            runbook=self.kind.value,
            next_test=self.next_test,
            confounders=self.confounders,
        )


def _by_family(evidence: Iterable[Evidence]) -> tuple[dict[Family, int], dict[Family, int]]:
    """Points of each family: for, and against."""
    support: dict[Family, int] = {}
    contradiction: dict[Family, int] = {}
    for item in evidence:
        points = support if item.direction is Direction.FOR else contradiction
        points[item.family] = points.get(item.family, 0) + item.strength
    return support, contradiction


def _score(support: dict[Family, int], contradiction: dict[Family, int]) -> int:
    capped = [min(points, _FAMILY_CAP) for points in support.values()]
    return sum(capped) - sum([min(points, _FAMILY_CAP) for points in contradiction.values()])


def _supporting(support: dict[Family, int]) -> frozenset[Family]:
    return frozenset([family for family, points in support.items() if points >= 2])


_ORDER = {Confidence.CONFIRMED: 0, Confidence.LIKELY: 1, Confidence.POSSIBLE: 2}


def weaker(one: Confidence, other: Confidence) -> Confidence:
    return one if _ORDER[one] >= _ORDER[other] else other


def surer_first(confidence: Confidence | None) -> int:
    """Sort key: confirmed, likely, possible, nothing."""
    return 3 if confidence is None else _ORDER[confidence]
