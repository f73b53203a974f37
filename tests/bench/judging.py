"""Situation to Diagnosis: a thousand replicas, and how the time grows with their number."""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from tests.bench.measure import least_cpu_in_turn
from tests.bench.row import Row, grows, within
from tests.factory import serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.situation import Replica
from triage.domain.verdict import Diagnosis, Kind

_BUDGET_S: Final = 0.1
_REPLICAS: Final = 1000
_ROUNDS: Final = 15
_GROWTH_ROUNDS: Final = 4
_SIZES: Final = (10, 100, 1000, 10_000)


def _queueing(name: str) -> Replica:
    return serving(name, running=64, waiting=40, ttft=12.0, queue=10.0)


def _without_past(replica: Replica) -> Replica:
    """Started a moment ago: nothing but the others says what is usual."""
    window = replica.window
    young = msgspec.structs.replace(window.first, histograms={})
    return msgspec.structs.replace(replica, window=msgspec.structs.replace(window, first=young))


class _Fleet(NamedTuple):
    what: str
    replica: Callable[[int], Replica]
    verdict: Kind


# The last three are those in which replicas are compared with one another, or stand for themselves.
_FLEETS: Final = (
    _Fleet("calm", lambda i: serving(f"r{i}"), Kind.HEALTHY),
    _Fleet("all queue", lambda i: _queueing(f"r{i}"), Kind.QUEUEING),
    _Fleet("all decode slowly", lambda i: serving(f"r{i}", itl=0.3), Kind.SLOW_DECODE),
    _Fleet("every other one queues", lambda i: _queueing(f"r{i}") if i % 2 else serving(f"r{i}"), Kind.LOAD_IMBALANCE),
    _Fleet("all just started", lambda i: _without_past(serving(f"r{i}")), Kind.HEALTHY),
    _Fleet("a model each", lambda i: serving(f"r{i}", model=f"model-{i}"), Kind.HEALTHY),
)


def _judging(fleet: _Fleet, count: int) -> Callable[[], Diagnosis]:
    seen = situation(*map(fleet.replica, range(count)))
    found = diagnose(seen).verdicts[0].kind
    assert found is fleet.verdict, f"{fleet.what}: {found} would be measured, not {fleet.verdict}"
    return lambda: diagnose(seen)


def rows() -> list[Row]:
    seconds = least_cpu_in_turn([_judging(fleet, _REPLICAS) for fleet in _FLEETS], rounds=_ROUNDS)
    what = f"Situation of {_REPLICAS:,} replicas to Diagnosis"
    return [
        within(f"{what}, {fleet.what}", one, budget_s=_BUDGET_S) for fleet, one in zip(_FLEETS, seconds, strict=True)
    ]


def growth_rows() -> list[Row]:
    return [_growth_row(fleet) for fleet in _FLEETS]


def _growth_row(fleet: _Fleet) -> Row:
    seconds = least_cpu_in_turn([_judging(fleet, size) for size in _SIZES], rounds=_GROWTH_ROUNDS)
    return grows(f"growth of Situation to Diagnosis, {fleet.what}", "replicas", _SIZES, seconds)
