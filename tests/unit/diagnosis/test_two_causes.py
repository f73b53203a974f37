"""Two causes at once are two verdicts with their shares; what one queue waits for is told apart from capacity."""

import msgspec
import pytest

from tests.factory import replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.rank import separate_rivals
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading
from triage.domain.situation import AdapterUse, Replica, Situation
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope, Share, Verdict

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)


def verdicts(case: Situation) -> dict[Kind, Verdict]:
    return {verdict.kind: verdict for verdict in diagnose(case).verdicts}


def with_gauges(base: Replica, gauges: dict[Q, float]) -> Replica:
    def extra(one: EngineReading) -> EngineReading:
        return msgspec.structs.replace(one, values=dict(one.values) | gauges)

    return replica(extra(base.window.first), extra(base.window.last))


def test_a_queue_and_slow_tokens_are_both_said() -> None:
    found = verdicts(situation(serving(running=8, waiting=12, ttft=9.0, queue=8.0, itl=0.09)))
    queue, decode = found[Kind.QUEUEING], found[Kind.SLOW_DECODE]
    assert queue.share is not None
    assert decode.share is not None
    assert queue.confidence in SURE


def test_half_queue_and_half_prefill_are_both_said_with_their_shares() -> None:
    found = verdicts(situation(serving(running=8, waiting=4, ttft=8.0, queue=3.6, prefill=4.2, prompt=9e5)))
    prefill, queue = found[Kind.SLOW_PREFILL], found[Kind.QUEUEING]
    assert prefill.share is not None
    assert queue.share is not None
    assert 0.4 < queue.share.value < prefill.share.value < 0.6
    assert prefill.share.of == queue.share.of


def test_a_sliver_of_queue_in_front_of_prefill_is_not_a_cause() -> None:
    found = verdicts(situation(serving(running=30, waiting=1, ttft=8.0, queue=0.4, prefill=7.4, prompt=9e5)))
    assert Kind.QUEUEING not in found
    assert found[Kind.SLOW_PREFILL].confidence in SURE


def test_the_larger_of_two_shares_of_the_same_time_comes_first() -> None:
    order = [
        v.kind for v in diagnose(situation(serving(waiting=4, ttft=8.0, queue=3.6, prefill=4.2, prompt=9e5))).verdicts
    ]
    assert order.index(Kind.SLOW_PREFILL) < order.index(Kind.QUEUEING)


def cause(kind: Kind, share: float, family: Family = Family.ENGINE) -> Hypothesis:
    item = Evidence("x", Direction.FOR, 3, family, "text")
    other = Evidence("y", Direction.FOR, 3, Family.PROBE, "text")
    span = Share(share, share - 0.1, share + 0.1, "time to first token")
    return Hypothesis(kind, Scope(model="m"), "summary", (item, other), share=span)


@pytest.mark.parametrize(
    ("one", "other", "rivals"),
    [
        (0.45, 0.5, False),  # they fit side by side
        (0.5, 0.54, False),  # within what counters of their own may add up to
        (0.8, 0.75, True),  # they claim more than all of it
        (0.9, 0.2, False),  # far apart: the larger one is the larger one
    ],
)
def test_causes_are_rivals_only_for_time_that_both_cannot_have(one: float, other: float, rivals: bool) -> None:
    found = separate_rivals([cause(Kind.QUEUEING, one), cause(Kind.HIDDEN_REASONING, other)])
    assert [bool(h.capped) for h in found] == [rivals, rivals]


# ---- what a queue waits for


ROOM = {Q.WAITING: 20.0, Q.WAITING_CAPACITY: 20.0}
HELD = {Q.WAITING: 20.0, Q.WAITING_CAPACITY: 0.0, Q.WAITING_DEFERRED: 20.0}


@pytest.mark.parametrize(
    ("gauges", "detail"),
    [
        (HELD | {Q.ADAPTER_SLOTS: 2.0, Q.ADAPTERS_WAITING: 3.0}, "adapter-slots"),
        (HELD, None),
        ({Q.WAITING: 5.0, Q.GRAMMAR_QUEUE: 15.0}, "grammar-queue"),
        ({Q.WAITING: 0.0, Q.HANDOFF_QUEUE: 15.0}, "handoff-queue"),
        # Three adapters wait, and so do twenty requests for lack of room: the room is what binds.
        (ROOM | {Q.WAITING_DEFERRED: 1.0, Q.ADAPTER_SLOTS: 2.0, Q.ADAPTERS_WAITING: 3.0}, "sequence-limit"),
        ({Q.WAITING: 20.0, Q.GRAMMAR_QUEUE: 1.0}, "sequence-limit"),
    ],
)  # fmt: skip
def test_a_wait_is_named_after_what_is_waited_for(gauges: dict[Q, float], detail: str | None) -> None:
    queue = verdicts(situation(with_gauges(serving(ttft=9.0, queue=8.5), gauges)))[Kind.QUEUEING]
    assert (queue.detail, queue.confidence) == (detail, Confidence.LIKELY)


def test_the_next_step_separates_it_from_capacity() -> None:
    case = situation(with_gauges(serving(ttft=9.0, queue=8.5), {Q.WAITING: 5.0, Q.GRAMMAR_QUEUE: 15.0}))
    assert "without a schema" in verdicts(case)[Kind.QUEUEING].next_test


def waiting_for_adapters(wanted: int, slots: int, running: float = 8, limit: float | None = None) -> Verdict:
    base = serving(running=running, waiting=20, kv=0.2, ttft=9.0, queue=8.5)
    case = with_gauges(base, {Q.SEQUENCE_LIMIT: limit}) if limit is not None else base
    return verdicts(situation(case, adapters=(AdapterUse("adapters.json", slots, wanted),)))[Kind.QUEUEING]


def test_more_adapters_than_slots() -> None:
    assert waiting_for_adapters(16, 8).detail == "adapter-slots"


def test_adapters_that_fit_or_a_limit_that_is_reached_are_capacity() -> None:
    assert waiting_for_adapters(8, 8).detail == "sequence-limit"
    assert waiting_for_adapters(16, 8, limit=8.0).detail == "sequence-limit"
    assert waiting_for_adapters(16, 4).detail == "sequence-limit"  # more run than slots there are: no slot binds
