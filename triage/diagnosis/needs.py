"""Which quantities a verdict is read from, so that a page can be told what it costs before anything goes wrong."""

from typing import NamedTuple, TypeAlias

from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading, Role
from triage.domain.verdict import Kind

_Any: TypeAlias = tuple[Q, ...]

# For each verdict the groups of which one member each must be on the page. In front of engines other ones count.
_ENGINE: dict[Kind, tuple[_Any, ...]] = {
    Kind.QUEUEING: ((Q.RUNNING,), (Q.WAITING_CAPACITY, Q.WAITING)),
    Kind.SLOW_PREFILL: ((Q.TTFT, Q.PREFILL_TIME, Q.PROMPT_SECONDS), (Q.PROMPT_TOKENS_COMPUTED, Q.PROMPT_TOKENS)),
    Kind.SLOW_DECODE: ((Q.ITL, Q.REQUEST_TPOT, Q.GENERATION_SECONDS),),
    Kind.KV_PRESSURE: ((Q.KV_USAGE,), (Q.PREEMPTIONS, Q.SWAPPED)),
    Kind.CACHE_MISS_REGRESSION: ((Q.PREFIX_HITS, Q.PROMPT_TOKENS_CACHED, Q.PREFIX_BLOCK_HITS, Q.HIT_RATE),),
    Kind.LOAD_IMBALANCE: ((Q.RUNNING,), (Q.WAITING,)),
    Kind.ENGINE_STALLED: ((Q.RUNNING,), (Q.ENGINE_STEPS, Q.GENERATION_TOKENS_LIVE, Q.GENERATION_TOKENS)),
    Kind.CLIENT_ABORT: ((Q.ABORTED, Q.TTFT), (Q.FINISHED, Q.E2E)),
    Kind.OVER_REJECTION: ((Q.REJECTED, Q.HTTP_REFUSED, Q.FAILED),),
    Kind.METRICS_FROZEN: ((Q.PROCESS_CPU,),),
}
_FRONTEND: dict[Kind, tuple[_Any, ...]] = {
    Kind.QUEUEING: ((Q.GATEWAY_QUEUE, Q.QUEUED),),
    Kind.CLIENT_ABORT: ((Q.ABORTED,),),
    Kind.OVER_REJECTION: ((Q.REJECTED, Q.FAILED),),
}
# A counter that moves when a request ends cannot show that work in progress stands still.
_MUST_BE_LIVE = frozenset({Kind.ENGINE_STALLED})


class Lack(NamedTuple):
    """A verdict that this page cannot support by itself, and the quantities any one of which would mend it."""

    kind: Kind
    quantities: tuple[Q, ...]


def all_needs() -> tuple[Kind, ...]:
    """What an engine without any series costs."""
    return tuple(_ENGINE)


def lacks(reading: EngineReading) -> tuple[Lack, ...]:
    """What a page costs, in the order of the verdicts; another source may still bring it (a log, a probe)."""
    needs = _FRONTEND if reading.role is Role.FRONTEND else _ENGINE
    exported = {*reading.values, *reading.histograms}
    usable = {kind: exported - reading.late if kind in _MUST_BE_LIVE else exported for kind in needs}
    return tuple(
        Lack(kind, group) for kind, groups in needs.items() for group in groups if usable[kind].isdisjoint(group)
    )
