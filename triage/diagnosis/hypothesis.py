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
        return _points(self.evidence, Direction.FOR) - _points(self.evidence, Direction.AGAINST)

    def families(self) -> frozenset[Family]:
        """Families that support it with more than a single hint."""
        points = _by_family(self.evidence, Direction.FOR)
        return frozenset(family for family, strength in points.items() if strength >= 2)

    def confidence(self) -> Confidence | None:
        """Gate 4 of diagnosis.md; None when nothing supports it."""
        supported = [e for e in self.evidence if e.direction is Direction.FOR]
        if not supported or self.score() <= 0:
            return None
        contradicted = any(e.direction is Direction.AGAINST and e.strength >= 3 for e in self.evidence)
        families = len(self.families())
        if self.kind in TIMED_KINDS:
            share = self.share.value if self.share else 0.0
            confirmed = share >= SHARE_LIKELY and families >= 2 and self.tested
            likely = (share >= SHARE_LIKELY and families >= 1) or (share >= SHARE_SUPPORT and families >= 2)
        else:
            decisive = any(e.strength >= 3 for e in supported)
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


def _by_family(evidence: Iterable[Evidence], direction: Direction) -> dict[Family, int]:
    points: dict[Family, int] = {}
    for item in evidence:
        if item.direction is direction:
            points[item.family] = points.get(item.family, 0) + item.strength
    return points


def _points(evidence: Iterable[Evidence], direction: Direction) -> int:
    return sum(min(points, _FAMILY_CAP) for points in _by_family(evidence, direction).values())


_ORDER = {Confidence.CONFIRMED: 0, Confidence.LIKELY: 1, Confidence.POSSIBLE: 2}


def weaker(one: Confidence, other: Confidence) -> Confidence:
    return one if _ORDER[one] >= _ORDER[other] else other


def surer_first(confidence: Confidence | None) -> int:
    """Sort key: confirmed, likely, possible, nothing."""
    return 3 if confidence is None else _ORDER[confidence]
