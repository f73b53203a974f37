"""Situation to Diagnosis: a thousand replicas, and how the time grows with their number."""

from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

import msgspec

from tests.bench.measure import least_cpu
from tests.bench.row import Row, grows, within
from tests.factory import serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.situation import Replica, Situation
from triage.domain.verdict import Kind

_BUDGET_S: Final = 0.1
_REPLICAS: Final = 1000
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


@cache
def _replicas(place: int, count: int) -> tuple[Replica, ...]:
    return tuple(_FLEETS[place].replica(i) for i in range(count))


def _judge_s(place: int, count: int) -> float:
    fleet = _FLEETS[place]
    seen: Situation = situation(*_replicas(place, count))
    found = diagnose(seen).verdicts[0].kind
    assert found is fleet.verdict, f"{fleet.what}: {found} was measured, not {fleet.verdict}"
    return least_cpu(lambda: diagnose(seen), repeat=9 if count <= _REPLICAS else 3, number=max(1, _REPLICAS // count))


def rows() -> list[Row]:
    return [
        within(f"Situation of {_REPLICAS:,} replicas to Diagnosis, {fleet.what}", _judge_s(place, _REPLICAS),
               budget_s=_BUDGET_S)
        for place, fleet in enumerate(_FLEETS)
    ]  # fmt: skip


def growth_rows() -> list[Row]:
    return [
        grows(f"growth of Situation to Diagnosis, {fleet.what}", "replicas", _SIZES,
              [_judge_s(place, size) for size in _SIZES])
        for place, fleet in enumerate(_FLEETS)
    ]  # fmt: skip
