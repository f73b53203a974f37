"""What the requests themselves say about lost prefix-cache hits: who lost them, and where prompts part."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from triage.diagnosis.fall import Fall
from triage.diagnosis.text import count, many, percent
from triage.diagnosis.thresholds import (
    EARLY_CHANGE,
    EXPLAINED,
    FIXED_REUSE,
    FIXED_TURNS,
    HIT_QUERIES,
    HITS_FELL,
    SENDER_LOST,
    SENDER_REQUESTS,
    TURN_GREW,
)
from triage.domain.logs import LogKind, LogReading
from triage.domain.prompts import PromptPair, Reuse
from triage.domain.situation import Situation
from triage.domain.verdict import Direction, Evidence, Family


def divergence(
    situation: Situation, logs: Sequence[LogReading], fall: Fall | None, same_traffic: bool
) -> list[Evidence]:
    """Statements of usage records, slots and request bodies.

    fall: what the counters say, where hits fell by them. same_traffic: as much was asked of the cache then as now.
    """
    usage = [log for log in situation.logs if log.kind is LogKind.ACCESS and log.reuse]
    found = [item for log in usage if (item := _sender_lost(log, fall, same_traffic)) is not None]
    for records, source, family in (
        *((log.reuse, log.source, Family.ENGINE) for log in logs if log.reuse),
        (situation.reuse, "requests", Family.GATEWAY),
    ):
        fixed = _fixed(records, source, family)
        if fixed is not None:
            found.append(fixed)
    # Two bodies that part early show how hits are lost; that they are lost must be seen elsewhere.
    seen = fall is not None or any(item.strength >= 3 for item in found)
    pair = _parting(situation.prompt_pairs)
    return [*found, _pair_evidence(pair, 3 if seen else 2)] if pair is not None else found


def _sender_lost(log: LogReading, fall: Fall | None, same_traffic: bool) -> Evidence | None:
    """One sender finds nothing while the others find theirs, and that explains what all of them find together.

    A sender that is new, with prompts of its own, finds nothing either: then there is more traffic than before.
    """
    by_sender: dict[str, list[Reuse]] = defaultdict(list)
    for reuse in log.reuse:
        by_sender[reuse.track].append(reuse)
    shares = {name: _share(records) for name, records in by_sender.items()}
    lost = [
        name
        for name, records in by_sender.items()
        if shares[name] <= SENDER_LOST
        and len(records) >= SENDER_REQUESTS
        and sum(record.prompt for record in records) >= HIT_QUERIES
    ]
    if not lost or len(lost) == len(by_sender):
        return None
    worst = max(lost, key=lambda name: (sum(record.prompt for record in by_sender[name]), name))
    explained = False
    if fall is not None and same_traffic:
        before = fall.before.share
        total = sum(record.prompt for record in log.reuse)
        of_lost = sum(record.prompt for name in lost for record in by_sender[name]) / total
        expected = before * (1 - of_lost)
        explained = abs(expected - fall.now.share) <= EXPLAINED and before - shares[worst] >= HITS_FELL
    others = _share([record for name, records in by_sender.items() if name not in lost for record in records])
    return Evidence(
        id="gateway.sender-lost",
        direction=Direction.FOR,
        strength=3 if explained else 2,
        family=Family.GATEWAY,
        text=f"{worst or 'one sender'}: {percent(shares[worst])} of its prompt tokens were cached, {percent(others)} "
        f"of the others'{'; that is the whole fall' if explained else ''}",
        value=shares[worst],
        unit="share",
        threshold=SENDER_LOST,
        n=len(by_sender[worst]),
        source=log.source,
    )


def _share(records: Sequence[Reuse]) -> float:
    total = sum(record.prompt for record in records)
    return sum(record.cached for record in records) / total if total else 0.0


def _fixed(records: Sequence[Reuse], source: str, family: Family) -> Evidence | None:
    """A conversation grows and what is found of it stays the same.

    Single prompts behind one common beginning look alike in a slot: only numbered turns tell a conversation.
    """
    by_track: dict[str, list[Reuse]] = defaultdict(list)
    for record in records:
        by_track[record.track].append(record)
    for track, own in by_track.items():
        turns = sorted(own, key=lambda record: record.turn or 0) if all(r.turn is not None for r in own) else own
        known = all(record.turn is not None for record in turns) and len({r.turn for r in turns}) == len(turns)
        reused = [record.cached for record in turns]
        grows = all(a.prompt < b.prompt for a, b in pairwise(turns))
        if len(turns) < FIXED_TURNS or not grows or min(reused) <= 0:
            continue
        if max(reused) - min(reused) > FIXED_REUSE * max(reused) or turns[-1].prompt < TURN_GREW * turns[0].prompt:
            continue
        name = f"{track}: " if track and known else ""
        return Evidence(
            id=f"{family.value}.fixed-reuse",
            direction=Direction.FOR,
            strength=3 if known else 2,
            family=family,
            text=f"{name}{many(reused[-1], 'token')} are found again and again while the prompt grows from "
            f"{count(turns[0].prompt)} to {count(turns[-1].prompt)}: behind them it differs from the turn before",
            value=float(reused[-1]),
            unit="tokens",
            n=len(turns),
            source=source,
        )
    return None


def _parting(pairs: Sequence[PromptPair]) -> PromptPair | None:
    """Two prompts that differ early and agree behind it: a changing word stands at the front of a fixed text."""
    parting = [
        pair
        for pair in pairs
        if pair.shared < EARLY_CHANGE * pair.length and pair.rest >= (1 - EARLY_CHANGE) * pair.length
    ]
    return min(parting, key=lambda pair: pair.shared / pair.length, default=None)


def _pair_evidence(pair: PromptPair, strength: int) -> Evidence:
    return Evidence(
        id="probe.prompts-differ",
        direction=Direction.FOR,
        strength=strength,
        family=Family.PROBE,
        text=f"{pair.first} and {pair.second} differ in {many(pair.changed, 'character')} after {count(pair.shared)} "
        f"of {count(pair.length)} and agree behind: nothing from there on can be reused",
        value=float(pair.shared),
        unit="characters",
        threshold=EARLY_CHANGE * pair.length,
        n=2,
        source=f"{pair.first}, {pair.second}",
    )
