"""Standing still, dying, and what only looks like it."""

import msgspec
import pytest

from tests.factory import histogram, reading, replica, serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.logs import LogEvent, LogKind, LogMark, LogReading
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading, GpuReading
from triage.domain.situation import GpuWindow, Situation
from triage.domain.stream import Completeness, ProbeReading, StreamReading
from triage.domain.verdict import Confidence, Kind, Verdict


def first(case: Situation) -> Verdict:
    return diagnose(case).verdicts[0]


def probe(target: str = "a", **fields: object) -> ProbeReading:
    base = {"source": "probes.json", "target": target, "method": "POST", "path": "/v1/completions", "status": 200}
    return ProbeReading(**(base | fields))  # type: ignore[arg-type]


def still(name: str = "a", model: str = "m", *, waiting: tuple[float, float] = (0, 0)) -> Situation:
    values = {Q.RUNNING: 4.0, Q.GENERATION_TOKENS: 100.0, Q.ENGINE_STEPS: 50.0, Q.PROCESS_CPU: 10.0}
    before = reading(values | {Q.WAITING: waiting[0]}, name=name, model=model)
    after = reading(values | {Q.WAITING: waiting[1], Q.PROCESS_CPU: 11.0}, name=name, model=model)
    return situation(replica(before, after))


ANSWERED = probe(first_token_s=0.1, total_s=0.2, output_tokens=1)
HUNG = probe(status=None, total_s=60.0, error="no byte within 60 s")


# ---- late counters


@pytest.mark.parametrize("waiting", [(0.0, 0.0), (4.0, 9.0)])
def test_first_tokens_and_gaps_that_stand_still_prove_no_stall(waiting: tuple[float, float]) -> None:
    """Tokens are counted at finish; during one long answer that is not streamed nothing else is observed either."""
    late = frozenset({Q.GENERATION_TOKENS, Q.PROMPT_TOKENS, Q.FINISHED, Q.E2E})
    values = {Q.RUNNING: 3.0, Q.GENERATION_TOKENS: 1e6, Q.PROMPT_TOKENS: 2e6, Q.FINISHED: 500.0}
    past = {Q.TTFT: histogram(0.4, 500), Q.ITL: histogram(0.02, 4e5)}
    before = reading(values | {Q.WAITING: waiting[0]}, histograms=past, late=late, engine="sglang")
    after = reading(values | {Q.WAITING: waiting[1]}, histograms=past, late=late, engine="sglang")
    busy = GpuReading("gpu", "dcgm.prom", None, "n", "0", "u", "", {"DEV_GPU_UTIL": 100.0})
    case = situation(replica(before, after), gpus=(GpuWindow(busy, busy),))
    assert all(v.kind is not Kind.ENGINE_STALLED for v in diagnose(case).verdicts)


def test_prompt_tokens_that_stand_still_prove_no_stall_while_answers_are_written() -> None:
    late = frozenset({Q.GENERATION_TOKENS})
    values = {Q.RUNNING: 2.0, Q.WAITING: 0.0, Q.GENERATION_TOKENS: 10.0, Q.PROMPT_TOKENS_COMPUTED: 1e6}
    case = situation(replica(reading(values, late=late), reading(values, late=late)))
    assert first(case).kind is Kind.INSUFFICIENT_DATA


# ---- side queues


def test_requests_stuck_between_prefill_and_decode_are_a_stall_not_an_idle_engine() -> None:
    def at(handoff: float) -> EngineReading:
        return reading(
            {Q.RUNNING: 0.0, Q.WAITING: 0.0, Q.HANDOFF_QUEUE: handoff, Q.GENERATION_TOKENS_LIVE: 4e5}, engine="sglang"
        )

    verdict = first(situation(replica(at(60.0), at(70.0))))
    assert (verdict.kind, verdict.confidence) == (Kind.ENGINE_STALLED, Confidence.LIKELY)
    assert "70 requests are inside" in verdict.summary


# ---- probes


def test_the_newest_probe_decides_between_frozen_and_stalled() -> None:
    early, late = {"at": 100.0}, {"at": 700.0}

    def when(answered: dict[str, float], hung: dict[str, float]) -> Verdict:
        probes = (msgspec.structs.replace(ANSWERED, **answered), msgspec.structs.replace(HUNG, **hung))
        return first(msgspec.structs.replace(still(), probes=probes))

    assert when(early, late).kind is Kind.ENGINE_STALLED
    assert when(late, early).kind is Kind.METRICS_FROZEN


def test_a_note_says_that_nothing_came() -> None:
    hung = probe(total_s=30.0, note="stream opened, no event within 30s")
    verdict = first(msgspec.structs.replace(still(), probes=(hung,)))
    assert (verdict.kind, verdict.confidence) == (Kind.ENGINE_STALLED, Confidence.CONFIRMED)


def test_a_slow_answer_whose_tokens_were_not_counted_is_neither_hung_nor_answered() -> None:
    verdict = first(msgspec.structs.replace(still(), probes=(probe(total_s=12.0),)))
    assert (verdict.kind, verdict.confidence) == (Kind.ENGINE_STALLED, Confidence.POSSIBLE)


def test_an_answer_through_the_gateway_does_not_unfreeze_the_engine() -> None:
    answered = msgspec.structs.replace(ANSWERED, target="gateway")
    assert first(msgspec.structs.replace(still(), probes=(answered,))).kind is Kind.ENGINE_STALLED


def test_the_busy_device_of_another_node_says_nothing_about_this_replica() -> None:
    busy = GpuReading("gpu", "dcgm.prom", None, "node-b", "0", "u", "", {"DEV_GPU_UTIL": 100.0})
    case = situation(*still().replicas, serving("b"), gpus=(GpuWindow(busy, busy),))
    verdict = next(v for v in diagnose(case).verdicts if v.kind is Kind.ENGINE_STALLED)
    assert verdict.confidence is Confidence.POSSIBLE


# ---- ranks and models


def ranked(stuck_tokens: float, waiting: tuple[float, float]) -> Situation:
    def at(share: float, queue: float) -> EngineReading:
        def rank(tokens: float, wait: float) -> dict[Q, float]:
            return {Q.RUNNING: 10.0, Q.WAITING: wait, Q.GENERATION_TOKENS: tokens}

        ranks = {
            "engine=0": rank(1000 + 9000 * share, 0.0),
            "engine=1": rank(1000 + stuck_tokens * share, queue),
            "engine=2": rank(1000 + 9000 * share, 0.0),
        }
        values = {q: sum(own[q] for own in ranks.values()) for q in (Q.RUNNING, Q.WAITING, Q.GENERATION_TOKENS)}
        return reading(values, ranks=ranks)

    return situation(replica(at(0.0, waiting[0]), at(1.0, waiting[1])))


def test_one_rank_that_stands_still_is_a_stall_although_the_replica_makes_tokens() -> None:
    verdict = first(ranked(0.0, (6.0, 11.0)))
    assert (verdict.kind, verdict.confidence) == (Kind.ENGINE_STALLED, Confidence.LIKELY)
    assert "engine=1" in verdict.summary


def test_a_still_rank_without_a_growing_queue_is_only_a_possible_stall() -> None:
    verdicts = diagnose(ranked(0.0, (0.0, 0.0))).verdicts
    assert all(v.confidence is Confidence.POSSIBLE for v in verdicts if v.kind is Kind.ENGINE_STALLED)
    assert all(v.kind is not Kind.ENGINE_STALLED for v in diagnose(ranked(5000.0, (6.0, 11.0))).verdicts)


def test_a_model_that_stalls_does_not_hide_the_other_model_on_the_same_page() -> None:
    stalled = still("a", "one", waiting=(3, 9)).replicas[0]
    queueing = serving("a", waiting=24, ttft=9.0, queue=8.5, model="two")
    kinds = {v.kind for v in diagnose(situation(stalled, queueing)).verdicts}
    assert {Kind.ENGINE_STALLED, Kind.QUEUEING} <= kinds


# ---- death


def log(*events: LogEvent, source: str = "engine.log", progress: int | None = None) -> LogReading:
    counts = {mark: sum(event.mark is mark for event in events) for mark in LogMark}
    return LogReading(source, "default", LogKind.ENGINE, "vllm", 100, events, counts, last_progress_line=progress)


FATAL = LogEvent(LogMark.FATAL, 40, "EngineCore encountered a fatal error")


def test_a_process_that_never_served_is_not_called_a_dead_engine_for_sure() -> None:
    starting = LogEvent(LogMark.STARTING, 3, "Initializing a V1 LLM engine")
    verdicts = diagnose(situation(logs=(log(starting, FATAL),))).verdicts
    dead = next(v for v in verdicts if v.kind is Kind.ENGINE_DEAD)
    assert dead.confidence is Confidence.POSSIBLE
    assert "while it started" in dead.summary
    served = diagnose(situation(logs=(log(starting, FATAL, progress=30),))).verdicts[0]
    assert (served.kind, served.confidence) == (Kind.ENGINE_DEAD, Confidence.LIKELY)


def test_a_front_end_without_workers_is_not_proof_of_a_death() -> None:
    nobody = probe("frontend", status=503, total_s=0.01, body="no instances found for endpoint generate")
    verdicts = diagnose(situation(serving(), probes=(nobody,))).verdicts
    assert all(v.kind is not Kind.ENGINE_DEAD for v in verdicts)


def test_an_error_event_that_names_the_engine_is_proof_and_is_the_headline() -> None:
    cut = StreamReading(
        "stream.sse", "a", "m", "openai-chat", Completeness.ERROR, True, error="EngineCore encountered an issue"
    )
    health = probe(method="GET", path="/health", status=503)
    verdict = first(msgspec.structs.replace(still(), probes=(health,), streams=(cut,)))
    assert verdict.kind is Kind.ENGINE_DEAD
    assert "EngineCore" in verdict.summary


@pytest.mark.parametrize("source", ["engine.log", "previous.log"])
def test_a_log_that_ends_with_a_fatal_line_stops_health_from_being_said(source: str) -> None:
    case = situation(serving(), logs=(log(FATAL, source=source),), probes=(ANSWERED,))
    assert all(v.kind is not Kind.HEALTHY for v in diagnose(case).verdicts)


def test_an_engine_that_answers_after_it_failed_is_not_dead() -> None:
    failed = probe("engine", status=500, total_s=2.0, body="CUDA error: an illegal memory access", at=100.0)
    again = probe("engine", first_token_s=0.3, output_tokens=9, at=130.0)
    assert first(situation(probes=(failed,))).kind is Kind.ENGINE_DEAD
    assert all(v.kind is not Kind.ENGINE_DEAD for v in diagnose(situation(probes=(failed, again))).verdicts)
    before = msgspec.structs.replace(again, at=70.0)
    assert first(situation(probes=(before, failed))).kind is Kind.ENGINE_DEAD


def test_requests_that_wait_in_a_single_reading_are_no_sure_queue() -> None:
    values = {Q.RUNNING: 0.0, Q.WAITING: 3.0, Q.GENERATION_TOKENS: 1e6}
    lone = replica(reading(values), reading(values))
    window = msgspec.structs.replace(lone.window, readings=1, seconds=0.0, deltas={}, histograms={})
    verdicts = diagnose(situation(msgspec.structs.replace(lone, window=window))).verdicts
    assert all(v.confidence in (None, Confidence.POSSIBLE) for v in verdicts)


# ---- dead or stalled, as a gateway's answer tells

GONE = "EngineCore encountered an issue. See stack trace (above) for the root cause."


def _two(probed: ProbeReading) -> Situation:
    stands, works = still("a"), serving(name="b", running=2)
    return msgspec.structs.replace(situation(*stands.replicas, works), probes=(probed,))


def test_a_gateways_answer_that_an_engine_is_gone_names_the_one_that_stands_still() -> None:
    verdict = first(_two(probe("gateway", status=500, body=GONE, total_s=0.1, model="m")))
    assert (verdict.kind, verdict.scope.replica) == (Kind.ENGINE_DEAD, "a")


@pytest.mark.parametrize(
    "probed",
    [
        probe("gateway", status=500, body=GONE, total_s=0.1, model="another"),
        probe("gateway", status=503, body="no healthy upstream", total_s=0.1, model="m"),
        probe("gateway", status=500, body="Internal Server Error", total_s=0.1, model="m"),
    ],
)
def test_other_errors_of_a_gateway_prove_no_death(probed: ProbeReading) -> None:
    assert all(
        v.kind is not Kind.ENGINE_DEAD or v.confidence is Confidence.POSSIBLE for v in diagnose(_two(probed)).verdicts
    )
