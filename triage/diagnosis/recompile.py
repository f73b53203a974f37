"""Whether a start compiles again what an earlier one had compiled and stored."""

from collections.abc import Sequence

from triage.diagnosis.text import listed, seconds
from triage.diagnosis.thresholds import RECOMPILED
from triage.domain.logs import LogReading, Start, StartPhase
from triage.domain.verdict import Direction, Evidence, Family


def cache_lost(log: LogReading, start: Start, earlier: Sequence[Start]) -> list[Evidence]:
    """The cache of compiled code that an earlier start filled or used is not found by this one; [] otherwise."""
    if start.phase(StartPhase.COMPILE) is None or start.cache_hit is True:
        return []
    past = next((one for one in reversed(earlier) if one.phase(StartPhase.COMPILE) is not None), None)
    if past is None:
        return []
    changed = sorted(
        part for part in start.cache_key.keys() & past.cache_key.keys() if start.cache_key[part] != past.cache_key[part]
    )
    same = sorted(start.cache_key.keys() & past.cache_key.keys() - set(changed))
    if changed and same:
        text = f"compiled code is stored under a new key: {listed(changed)} changed, {listed(same)} did not"
        return [_evidence(log, text, 3)]
    if past.cache_hit is True and start.cache_hit is False:
        return [_evidence(log, "the earlier start found its compiled code in the cache, this one compiles anew", 3)]
    now, before = start.phase(StartPhase.COMPILE), past.phase(StartPhase.COMPILE)
    took, took_before = (now.took_s if now else None), (before.took_s if before else None)
    if took and took_before and past.cache_hit is not False and took >= RECOMPILED * took_before:
        text = f"compiling took {seconds(took)}, {seconds(took_before)} at an earlier start"
        return [_evidence(log, text, 2)]
    if start.cache_path and past.cache_path and start.cache_path != past.cache_path:
        return [_evidence(log, "compiled code is stored in another directory than at the earlier start", 2)]
    return []


def _evidence(log: LogReading, text: str, strength: int) -> Evidence:
    return Evidence(
        id="engine.log.compile-cache",
        direction=Direction.FOR,
        strength=strength,
        family=Family.ENGINE,
        text=text,
        source=log.source,
    )
