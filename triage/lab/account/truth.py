"""The truth of a run: which verdicts are right about it, from what users got and what state things are in."""

import math
from enum import IntEnum

import msgspec

from triage.domain.verdict import Kind
from triage.lab.account.ledger import Ledger
from triage.lab.account.parts import Part, Seconds
from triage.lab.account.state import broken_things
from triage.lab.world.service import Service
from triage.lab.world.watch import Watch

# A bound is neither kept nor broken within this distance of it: both verdicts are right there.
_ZONE = 0.25
# Slow against what was usual before: the diagnosis calls a token slow from 1.5 times on.
_SLOWER = 1.5
# A sooner first token is no complaint, however much sooner it once came.
_FELT_S = 1.0
# Parts of the time that may be named: the largest, and those that come near it.
_NAMED_SHARE = 0.25
_NEAR_LARGEST = 0.5
_HITS_FELL = 0.2
# Waiting on one replica against the mean of the others.
_UNEVEN = 4.0
_FAILURES = 0.01
# Tries a call: from here the retries are a load of their own.
_STORM = 1.4


class Sure(IntEnum):
    NO = 0
    MAYBE = 1
    YES = 2


class Objectives(msgspec.Struct, frozen=True):
    """What the operator of the service declared (seconds)."""

    first_visible_p95_s: float
    time_per_token_mean_s: float


class Cause(msgspec.Struct, frozen=True):
    """One thing that is wrong. kinds: verdicts that name it rightly, the most exact one first."""

    kinds: tuple[Kind, ...]
    sure: Sure
    why: str


class Truth(msgspec.Struct, frozen=True):
    """causes: what is wrong, the most telling first; none when all is well."""

    causes: tuple[Cause, ...]

    @property
    def accepted(self) -> frozenset[Kind]:
        """Verdicts that are right. Healthy is among them when nothing is surely wrong."""
        kinds = {kind for cause in self.causes for kind in cause.kinds}
        if not any(cause.sure is Sure.YES for cause in self.causes):
            kinds.add(Kind.HEALTHY)
        return frozenset(kinds)

    @property
    def certain(self) -> tuple[Kind, ...]:
        """The most exact name of each thing that is surely wrong."""
        return tuple([cause.kinds[0] for cause in self.causes if cause.sure is Sure.YES])

    @property
    def main(self) -> Kind:
        """The word for tables: the most exact name of the most telling cause."""
        return self.certain[0] if self.certain else Kind.HEALTHY

    @property
    def why(self) -> str:
        return "; ".join(cause.why for cause in self.causes) or "all is well"


def find_truth(service: Service, watch: Watch, objectives: Objectives, before: Ledger, now: Ledger) -> Truth:
    """before: the same service when all was well. now: the span that is judged."""
    states = broken_things(service, watch)
    causes = [Cause(thing.kinds, Sure.YES if thing.felt else Sure.MAYBE, thing.why) for thing in states]
    causes += _answers(now)
    # Where processes are gone, what the others suffer is its effect.
    if not any(thing.capacity for thing in states):
        causes += _slowness(service, objectives, before, now)
    else:
        causes += _slowness_as_effect(service, objectives, before, now)
    return Truth(tuple(sorted([cause for cause in causes if cause.sure], key=lambda cause: -cause.sure)))


# ---- answers: refused, cut, blank


def _answers(now: Ledger) -> list[Cause]:
    causes = []

    def say(number: int, limit: float, kinds: tuple[Kind, ...], why: str) -> None:
        share = now.share(number)
        if number:
            causes.append(Cause(kinds, _above(share, limit), f"{why}: {share:.1%} of calls"))

    timeouts = sum([now.flags.get(flag, 0) for flag in ("UT", "SI")])
    storm = _above(now.tries - 1.0, _STORM - 1.0)
    if storm:
        kinds = (Kind.RETRY_STORM, Kind.GATEWAY_TIMEOUT) if timeouts else (Kind.RETRY_STORM,)
        causes.append(Cause(kinds, storm, f"{now.tries:.1f} tries a call, {now.wasted:.0%} of the work for nobody"))
    over = (Kind.GATEWAY_TIMEOUT, Kind.RETRY_STORM) if storm else (Kind.GATEWAY_TIMEOUT,)
    say(timeouts, _FAILURES, over, "timed out")
    say(now.flags.get("UPE", 0), _FAILURES, (Kind.TRUNCATED_STREAM,), "cut in the middle")
    say(now.flags.get("UC", 0), _FAILURES, (Kind.GATEWAY_OVERHEAD,), "connections closed under requests")
    say(now.refused, _FAILURES, (Kind.OVER_REJECTION,), "refused")
    say(now.blank, _FAILURES, (Kind.EMPTY_OUTPUT,), "without text")
    say(now.unparsed, _FAILURES, (Kind.TOOL_CALL_FAILURE,), "tool calls as text")
    say(now.keyless, 0.0, (Kind.AUTH_HOLE,), "answered without a key")
    say(now.walked_off, 0.15, (Kind.CLIENT_ABORT,), "left at once")
    return causes


# ---- slowness


def _slowness(service: Service, objectives: Objectives, before: Ledger, now: Ledger) -> list[Cause]:
    causes = []
    late = _late(objectives, before, now)
    if late:
        parts = now.slow_parts if late is Sure.YES else now.first_parts
        kinds = _kinds_of_waiting(service, before, now, parts, objectives.first_visible_p95_s)
        causes.append(Cause(kinds, late, f"first visible token p95 {now.first_p95:.1f} s: {_told(parts)}"))
    slow = _slow_tokens(objectives, before, now)
    if slow:
        kinds = _kinds_of_tokens(now.token_parts)
        told = f"{1000 * now.per_token:.0f} ms a token, {1000 * before.per_token:.0f} before: {_told(now.token_parts)}"
        causes.append(Cause(kinds, slow, told))
    return causes


def _slowness_as_effect(service: Service, objectives: Objectives, before: Ledger, now: Ledger) -> list[Cause]:
    """It may be named, but it is not what is wrong."""
    return [msgspec.structs.replace(cause, sure=Sure.MAYBE) for cause in _slowness(service, objectives, before, now)]


def _late(objectives: Objectives, before: Ledger, now: Ledger) -> Sure:
    if math.isnan(now.first_p95):
        return Sure.NO
    bound = _above(now.first_p95, objectives.first_visible_p95_s)
    felt = now.first_p95 > max(_FELT_S, _SLOWER * before.first_p95)
    return max(bound, Sure.MAYBE if felt else Sure.NO)


def _slow_tokens(objectives: Objectives, before: Ledger, now: Ledger) -> Sure:
    if math.isnan(now.per_token):
        return Sure.NO
    usual = _above(now.per_token, _SLOWER * before.per_token) if not math.isnan(before.per_token) else Sure.NO
    return max(_above(now.per_token, objectives.time_per_token_mean_s), usual)


def _kinds_of_waiting(
    service: Service, before: Ledger, now: Ledger, parts: Seconds, limit_s: float
) -> tuple[Kind, ...]:
    """Names of the parts that carry the wait, largest first; also those that alone break the limit."""
    lost = before.hit_share - now.hit_share >= _HITS_FELL
    prompts = (Kind.CACHE_MISS_REGRESSION,) if lost else (Kind.SLOW_PREFILL,)
    reserving = any(replica.settings.reserve for replica in service.replicas)
    names: dict[Part, tuple[Kind, ...]] = {
        Part.EARLIER: (Kind.RETRY_STORM, Kind.GATEWAY_TIMEOUT),
        Part.FRONT: (Kind.SLOW_DECODE,),
        Part.WAIT_SEQUENCES: (Kind.QUEUEING, *(prompts if lost else ())),
        # Room that is held back for running requests is not exported: a queue for it is called one.
        Part.WAIT_KV: (Kind.KV_PRESSURE, Kind.QUEUEING) if reserving else (Kind.KV_PRESSURE,),
        Part.WAIT_BUDGET: prompts,
        Part.HALTED: (Kind.ENGINE_STALLED,),
        Part.PREFILL: prompts,
        Part.AWAY: (Kind.KV_PRESSURE,),
        Part.REASONING: (Kind.HIDDEN_REASONING,),
        Part.HELD: (Kind.GATEWAY_OVERHEAD,),
        Part.TOKENS: (Kind.SLOW_DECODE,),
        Part.GPU: (Kind.GPU_THROTTLED, Kind.SLOW_DECODE, Kind.SLOW_PREFILL),
        Part.HOST: (Kind.SLOW_DECODE,),
        Part.DRAFTS: (Kind.SLOW_DECODE,),
        Part.PROMPTS: prompts,
    }
    named = _named(parts)
    whole = sum(parts.values())
    named += [part for part in parts if part not in named and parts[part] / whole * now.first_p95 > limit_s]
    kinds = [kind for part in named for kind in names[part]]
    waiting = {Part.WAIT_SEQUENCES, Part.WAIT_KV, Part.WAIT_BUDGET}
    if named and named[0] in waiting and _uneven(now):
        kinds.insert(0, Kind.LOAD_IMBALANCE)
    return tuple(dict.fromkeys(kinds))


def _kinds_of_tokens(parts: Seconds) -> tuple[Kind, ...]:
    named = _named(parts)
    kinds = [Kind.SLOW_DECODE]
    if Part.GPU in named:
        kinds.insert(0, Kind.GPU_THROTTLED)
    if Part.PROMPTS in named:
        kinds.append(Kind.SLOW_PREFILL)
    if Part.AWAY in named:
        kinds.insert(0, Kind.KV_PRESSURE)
    if Part.HALTED in named:
        kinds.append(Kind.ENGINE_STALLED)
    return tuple(kinds)


def _named(parts: Seconds) -> list[Part]:
    """The largest part, and those that come near it."""
    whole = sum(parts.values())
    ranked = sorted(parts, key=lambda part: -parts[part])
    return [
        part
        for part in ranked
        if parts[part] >= _NAMED_SHARE * whole and parts[part] >= _NEAR_LARGEST * parts[ranked[0]]
    ] or ranked[:1]


def _uneven(now: Ledger) -> bool:
    """One replica's requests wait, and the others' hardly do."""
    waits = sorted(now.waits.values(), reverse=True)
    if len(waits) < 2:
        return False
    others = sum(waits[1:]) / (len(waits) - 1)
    return waits[0] > _FELT_S and waits[0] > _UNEVEN * others


def _above(value: float, limit: float) -> Sure:
    if value > limit * (1.0 + _ZONE):
        return Sure.YES
    return Sure.MAYBE if value > limit * (1.0 - _ZONE) else Sure.NO


def _told(parts: Seconds) -> str:
    whole = sum(parts.values())
    ranked = sorted(parts.items(), key=lambda item: -item[1])[:3]
    return ", ".join([f"{part.value} {seconds / whole:.0%}" for part, seconds in ranked]) if whole else "nothing known"
