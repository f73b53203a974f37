"""An engine that worked in the window and stands still at its end."""

import msgspec
import pytest

from tests.factory import reading
from triage.diagnosis.diagnose import diagnose
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading
from triage.domain.situation import Replica, Situation, TargetStatus
from triage.domain.stream import ProbeReading
from triage.domain.target import Failure, FailureReason, Target, TargetState
from triage.domain.verdict import Confidence, Diagnosis, Kind
from triage.situation.windows import build_window, moments_of

ENGINE = Target("engine", "http://engine")
EVERY_S = 5.0
SURE = (Confidence.LIKELY, Confidence.CONFIRMED)


def stopping(
    moving: int,
    standing: int,
    *,
    running: float = 2.0,
    late: bool = False,
    probes: tuple[ProbeReading, ...] = (),
    **more: list[float],
) -> Situation:
    """So many readings with tokens and so many without. more: values of a quantity by reading."""
    readings: list[tuple[float, EngineReading]] = []
    for place in range(moving + standing):
        tokens = 1000.0 + 100.0 * min(place, moving - 1)
        values = {Q.RUNNING: running, Q.WAITING: 0.0, Q.GENERATION_TOKENS: tokens, Q.PROMPT_TOKENS: 50.0}
        values |= {Q(name): series[place] for name, series in more.items()}
        one = reading(values)
        if late:
            one = msgspec.structs.replace(one, late=frozenset({Q.GENERATION_TOKENS}))
        readings.append((EVERY_S * place, one))
    window = build_window(moments_of(readings), interval_s=EVERY_S)
    replica = Replica(ENGINE, "m", window, 0.0)
    status = TargetStatus(ENGINE, TargetState.OK, engine="vllm")
    at = readings[-1][0]
    return Situation(at, window.seconds, replicas=(replica,), targets=(status,), probes=probes)


def kinds(found: Diagnosis) -> list[tuple[Kind, Confidence | None]]:
    return [(verdict.kind, verdict.confidence) for verdict in found.verdicts]


@pytest.mark.parametrize("standing", [2, 3, 4, 6, 12])
def test_a_long_silence_at_the_end_is_never_surely_healthy(standing: int) -> None:
    found = kinds(diagnose(stopping(6, standing)))
    assert (Kind.ENGINE_STALLED, Confidence.POSSIBLE) in found
    assert found[0] not in [(Kind.HEALTHY, sure) for sure in SURE]


def test_one_silent_interval_is_nothing() -> None:
    assert Kind.ENGINE_STALLED not in [kind for kind, _ in kinds(diagnose(stopping(6, 1)))]


def test_nobody_inside_is_no_standstill() -> None:
    assert Kind.ENGINE_STALLED not in [kind for kind, _ in kinds(diagnose(stopping(6, 6, running=0.0)))]


def test_a_counter_that_moves_at_the_end_of_a_request_proves_nothing() -> None:
    assert Kind.ENGINE_STALLED not in [kind for kind, _ in kinds(diagnose(stopping(6, 6, late=True)))]


def test_a_queue_that_grew_before_it_stopped_does_not_make_it_surer() -> None:
    waiting = [float(place) for place in range(12)]
    found = kinds(diagnose(stopping(6, 6, waiting=waiting)))
    assert (Kind.ENGINE_STALLED, Confidence.POSSIBLE) in found
    assert not [kind for kind, confidence in found if confidence in SURE]


def test_a_process_that_took_no_cpu_time_makes_it_likely() -> None:
    engine = [float(min(place, 5)) for place in range(12)]
    fresh = [float(place) for place in range(12)]
    found = kinds(diagnose(stopping(6, 6, engine_cpu=engine, process_cpu=fresh)))
    assert found[0] == (Kind.ENGINE_STALLED, Confidence.LIKELY)
    # A page that is a copy says nothing of the process.
    copied = kinds(diagnose(stopping(6, 6, engine_cpu=engine, process_cpu=[7.0] * 12)))
    assert (Kind.ENGINE_STALLED, Confidence.LIKELY) not in copied


@pytest.mark.parametrize(("at", "kind"), [(10.0, Kind.ENGINE_STALLED), (53.0, Kind.METRICS_FROZEN)])
def test_an_answer_counts_when_it_came_after_the_standstill_began(at: float, kind: Kind) -> None:
    answered = ProbeReading(
        "probe", "engine", "POST", "/v1/completions", 200, total_s=1.0, first_token_s=0.2, output_tokens=9, at=at
    )
    assert kinds(diagnose(stopping(6, 6, probes=(answered,))))[0][0] is kind


def test_an_engine_that_served_and_then_refused_is_dead_though_its_counters_moved() -> None:
    gone = TargetStatus(
        ENGINE, TargetState.DARK, failure=Failure(FailureReason.REFUSED, "nothing listens"), answered_at=25.0, age_s=5.0
    )
    found = diagnose(msgspec.structs.replace(stopping(6, 0), targets=(gone,)))
    first = found.verdicts[0]
    assert (first.kind, first.confidence) == (Kind.ENGINE_DEAD, Confidence.LIKELY)
    assert "2 requests inside when it was last read" in " ".join(item.text for item in first.evidence)
