"""Young processes: first requests that pay for the warm-up, and late first tokens that have another reason."""

from collections.abc import Mapping

import msgspec
import pytest

from tests.factory import histogram, reading, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.histogram import Histogram
from triage.domain.quantity import Quantity as Q
from triage.domain.situation import Replica, Situation
from triage.domain.verdict import Confidence, Kind, Verdict

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)
LENGTHS = (100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 20_000.0)


def spread(*groups: tuple[float, float], edges: tuple[float, ...] | None = None) -> Histogram:
    """(value, observations) each."""
    parts = [histogram(value, count, edges) if edges else histogram(value, count) for value, count in groups]
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total


def young(
    ttft: Histogram,
    *,
    prompts: Histogram | None = None,
    waiting: float = 0.0,
    name: str = "new",
    before: float = 0.0,
    started: float | None = None,
    at: float | None = None,
    extra: Mapping[Q, float] | None = None,
) -> Replica:
    """A replica whose first requests fall into the window (before: tokens it had made until then)."""
    levels = {Q.RUNNING: 4.0, Q.WAITING: waiting, Q.KV_USAGE: 0.2} | dict(extra or {})
    if started is not None:
        levels[Q.PROCESS_START] = started
    requests = ttft.count
    none = Histogram(ttft.edges, (0.0,) * len(ttft.counts), 0.0, 0.0)
    past = histogram(0.3, before / 100) if before else none
    start = {
        Q.GENERATION_TOKENS: before,
        Q.PROMPT_TOKENS: 20 * before,
        Q.FINISHED: before / 100,
        Q.ENGINE_STEPS: before,
    }
    end = {
        Q.GENERATION_TOKENS: before + 6000,
        Q.PROMPT_TOKENS: 20 * before + 500 * requests,
        Q.FINISHED: before / 100 + requests,
        Q.ENGINE_STEPS: before + 1000,
    }
    first = reading(levels | start, histograms={Q.TTFT: past, Q.ITL: none}, name=name)
    hists = {Q.TTFT: past.plus(ttft), Q.ITL: histogram(0.02, 6000)}
    if prompts is not None:
        hists[Q.PROMPT_LENGTH] = prompts
    last = reading(levels | end, histograms=hists, name=name)
    if at is not None:
        first, last = msgspec.structs.replace(first, at=at - 30), msgspec.structs.replace(last, at=at)
    return replica(first, last)


def cold(case: Situation) -> Verdict | None:
    return next((v for v in diagnose(case).verdicts if v.kind is Kind.COLD_START), None)


def surely_cold(case: Situation) -> bool:
    return (found := cold(case)) is not None and found.confidence in SURE


ALIKE = histogram(500.0, 20, LENGTHS)


def test_some_first_requests_that_are_late_among_prompts_that_are_alike() -> None:
    case = situation(young(spread((0.3, 14), (14.0, 6)), prompts=ALIKE))
    verdict = diagnose(case).verdicts[0]
    assert (verdict.kind, verdict.confidence, verdict.detail) == (Kind.COLD_START, Confidence.LIKELY, "warm-up")


def test_a_young_replica_that_is_slower_than_its_peers() -> None:
    fine = young(histogram(0.4, 20), before=1e6, name="old")
    case = situation(young(histogram(9.0, 20)), fine)
    verdict = diagnose(case).verdicts[0]
    assert (verdict.kind, verdict.confidence, verdict.scope.replica) == (Kind.COLD_START, Confidence.LIKELY, "new")


def test_late_first_requests_alone_are_a_hint() -> None:
    """Long prompts look the same: it stays possible, and nothing is named for sure."""
    case = situation(young(histogram(9.0, 20), prompts=ALIKE))
    assert cold(case) is not None
    assert not surely_cold(case)
    assert diagnose(case).verdicts[0].confidence not in SURE


def test_prompts_of_all_lengths_explain_late_ones() -> None:
    mixed = spread((150.0, 14), (15_000.0, 6), edges=LENGTHS)
    assert not surely_cold(situation(young(spread((0.3, 14), (14.0, 6)), prompts=mixed)))


def test_a_queue_is_more_load_than_it_takes_however_young() -> None:
    case = situation(young(spread((0.3, 14), (14.0, 6)), prompts=ALIKE, waiting=9.0))
    assert not surely_cold(case)


def test_an_old_process_after_a_quiet_night_is_not_young() -> None:
    """Nothing was generated since its start days ago: the first requests are late for another reason, or unknown."""
    case = situation(young(spread((0.3, 14), (14.0, 6)), prompts=ALIKE, started=1e9, at=1e9 + 400_000))
    assert cold(case) is None


def test_a_process_of_two_minutes_may_still_warm_up() -> None:
    case = situation(young(histogram(9.0, 20), before=4000, started=1e9, at=1e9 + 120))
    found = cold(case)
    assert found is not None
    assert found.confidence is Confidence.POSSIBLE
    assert "2 min 0 s old" in found.summary


@pytest.mark.parametrize("before", [0.0, 1e6])
def test_first_tokens_in_time_are_no_cold_start(before: float) -> None:
    assert cold(situation(young(histogram(0.4, 20), before=before))) is None


def test_an_old_replica_beside_fine_peers_is_not_cold() -> None:
    fine = young(histogram(0.4, 20), before=1e6, name="old")
    assert cold(situation(young(histogram(9.0, 20), before=1e6), fine)) is None


def test_peers_with_shorter_prompts_say_nothing_of_it() -> None:
    short = young(histogram(0.4, 20), prompts=histogram(50.0, 20, LENGTHS), before=1e6, name="old")
    long = young(histogram(9.0, 20), prompts=histogram(15_000.0, 20, LENGTHS))
    assert not surely_cold(situation(long, short))


def test_without_times_nothing_is_said() -> None:
    assert cold(situation(serving(running=0, tokens=0, prompt=0, finished=0))) is None
