"""Engines that are starting, that only look like it, and starts that may hang."""

# ruff: noqa: E501  lines of logs are quoted as they are written

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.dialects.logs import read_log
from triage.domain.logs import LogReading
from triage.domain.situation import Situation
from triage.domain.stream import ProbeReading
from triage.domain.verdict import Confidence, Kind, Verdict

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)
LAUNCH = "(APIServer pid=1) INFO 01-15 09:55:00 [utils.py:233] non-default args: {'model': 'm'}"
STARTING = "(EngineCore pid=42) INFO 01-15 09:56:10 [core.py:133] Initializing a V1 LLM engine"
SHARDS = "(EngineCore pid=42) Loading safetensors checkpoint shards:  {0}% Completed | {1}/241 [12:40<28:13, {2}s/it]"
LOADED = "(EngineCore pid=42) INFO 01-15 09:57:46 [default_loader.py:391] Loading weights took 63.10 seconds"
FACTORS = "(EngineCore pid=42) DEBUG 01-15 09:57:51 [backends.py:1080] torch.compile cache factors: env={0} cfg=5d20aa71c3 code={1}"
BYTECODE = "(EngineCore pid=42) INFO 01-15 09:58:03 [backends.py:1136] Dynamo bytecode transform time: 11.84 s"
COMPILED = "(EngineCore pid=42) INFO 01-15 10:00:03 [monitor.py:53] torch.compile took {0} s in total"
READY = "(APIServer pid=1) INFO 01-15 10:02:03 [launcher.py:45] Application startup complete."
DIED = "(EngineCore pid=42) ERROR 01-15 09:59:58 [core.py:710] torch.OutOfMemoryError: CUDA out of memory."
NOISE = "(EngineCore pid=42) INFO 01-15 {0} [shm_broadcast.py:698] No available shared memory broadcast block found in 60 seconds."


def log(*lines: str, source: str = "engine.log", target: str = "default") -> LogReading:
    return read_log("\n".join(lines) + "\n", source, target)


def folder(*logs: LogReading, at: float | None = None, **rest: object) -> Situation:
    return msgspec.structs.replace(situation(logs=tuple(logs)), at=at, **rest)


def first(case: Situation) -> Verdict:
    return diagnose(case).verdicts[0]


def surely_starting(case: Situation) -> bool:
    return any(v.kind is Kind.COLD_START and v.confidence in SURE for v in diagnose(case).verdicts)


LOADING = (STARTING, SHARDS.format(31, 75, 10.2), SHARDS.format(36, 87, 21.0))
COMPILING = (STARTING, LOADED, FACTORS.format("c80f52a617", "0c93d5f6aa"), BYTECODE)


# ---- starts that move


def test_weights_that_are_being_read_are_a_cold_start_with_what_is_left() -> None:
    verdict = first(folder(log(*LOADING)))
    assert (verdict.kind, verdict.confidence, verdict.detail) == (Kind.COLD_START, Confidence.LIKELY, "weights-load")
    assert "87 of 241" in verdict.summary
    assert "53 min 54 s" in verdict.summary  # 154 shards at 21 s


def test_phases_that_follow_one_another_are_progress_without_a_figure() -> None:
    verdict = first(folder(log(*COMPILING)))
    assert (verdict.kind, verdict.confidence, verdict.detail) == (Kind.COLD_START, Confidence.LIKELY, "compile")


def test_warnings_of_a_hang_are_harmless_while_it_compiles() -> None:
    assert first(folder(log(*COMPILING, NOISE.format("09:59:10"), NOISE.format("10:00:10")))).kind is Kind.COLD_START


def test_an_earlier_start_tells_how_long_it_takes() -> None:
    before = log(STARTING, LOADED, BYTECODE, COMPILED.format("166.21"), READY, source="previous.log", target="previous")
    verdict = first(folder(log(*COMPILING), before))
    assert verdict.kind is Kind.COLD_START
    assert any("an earlier start took 5 min 53 s" in item.text for item in verdict.evidence)


# ---- the compile cache


def earlier(*lines: str) -> LogReading:
    return log(STARTING, LOADED, *lines, READY, source="previous.log", target="previous")


def test_a_key_that_changed_in_one_part_is_a_lost_cache() -> None:
    before = earlier(FACTORS.format("1b7e03c9d4", "0c93d5f6aa"), COMPILED.format("166.21"))
    verdict = first(folder(log(*COMPILING), before))
    assert (verdict.detail, verdict.confidence) == ("cache-empty", Confidence.LIKELY)
    assert "env changed" in verdict.summary


def test_a_new_version_compiles_anew_and_nothing_was_lost() -> None:
    before = earlier(
        FACTORS.format("1b7e03c9d4", "ffffffffff").replace("5d20aa71c3", "aaaaaaaaaa"), COMPILED.format("166.21")
    )
    assert first(folder(log(*COMPILING), before)).detail == "compile"


def test_a_cache_that_was_found_before_and_is_not_now() -> None:
    hit = "(EngineCore pid=42) INFO 01-15 09:58:05 [backends.py:267] Directly load the compiled graph(s) for dynamic shape from the cache, took 1.9 s"
    miss = "(EngineCore pid=42) INFO 01-15 09:59:05 [backends.py:319] Compiling a graph for dynamic shape takes 26.40 s"
    verdict = first(folder(log(STARTING, LOADED, BYTECODE, miss), earlier(BYTECODE, hit)))
    assert verdict.detail == "cache-empty"


def test_a_first_start_has_lost_nothing() -> None:
    assert first(folder(log(*COMPILING))).detail == "compile"


# ---- what is no cold start


def test_a_healthy_engine_with_its_start_on_top() -> None:
    report = "(APIServer pid=1) INFO 01-15 15:00:00 [loggers.py:257] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 31.8 tokens/s, Running: 1 reqs, Waiting: 0 reqs"
    assert not surely_starting(folder(log(*COMPILING, COMPILED.format("9"), READY, report)))
    assert not surely_starting(folder(log(*COMPILING, report)))  # the line that says ready is missing
    assert first(situation(serving(), logs=(log(*COMPILING, READY, report, target="a"),))).kind is Kind.HEALTHY


def test_a_start_that_ended_fatal() -> None:
    verdict = first(folder(log(*COMPILING, DIED)))
    assert verdict.kind is not Kind.COLD_START
    assert not surely_starting(folder(log(*COMPILING, DIED)))


def test_a_page_that_answers_is_no_engine_that_starts() -> None:
    """A log that was cut at its head's end: the engine has long been serving."""
    assert not surely_starting(situation(serving("default"), logs=(log(*LOADING),)))
    assert first(situation(serving("default"), logs=(log(*LOADING),))).kind in (Kind.HEALTHY, Kind.INSUFFICIENT_DATA)


def test_a_request_that_was_answered_speaks_against_it() -> None:
    probe = ProbeReading(
        "probes.json", "default", "POST", "/v1/completions", 200, total_s=0.3, first_token_s=0.1, output_tokens=1
    )
    assert not surely_starting(folder(log(*LOADING), probes=(probe,)))


def test_a_start_that_may_hang_is_not_named() -> None:
    """By its own later lines, and by the time of other evidence."""
    for case in (
        folder(
            log(
                *COMPILING,
                *(NOISE.format(f"{hour}:{minute:02d}:10") for hour in (10, 11) for minute in range(0, 60, 5)),
            )
        ),
        folder(log(*COMPILING), at=1768471083.0 + 2400),  # 2026-01-15 09:58:03 UTC and 40 minutes
    ):
        verdict = first(case)
        assert verdict.kind is Kind.INSUFFICIENT_DATA
        assert not surely_starting(case)
        assert "nothing has moved" in verdict.summary


def test_a_step_may_take_ten_times_its_usual_time_and_no_more() -> None:
    timed = LOADED.replace("Loading weights took 63.10 seconds", "Starting to load model m").replace(
        "default_loader", "gpu_model_runner"
    )
    steps = "2026-01-15T09:5{0}:00.000Z stderr F (EngineCore pid=42) Loading safetensors checkpoint shards:  {1}% Completed | {1}/100 [01:00<09:00, 6.0s/it]"
    assert surely_starting(folder(log(timed, steps.format(8, 10), steps.format(9, 20)), at=1768471140.0 + 100))
    assert not surely_starting(folder(log(timed, steps.format(8, 10), steps.format(9, 20)), at=1768471140.0 + 130))


def test_a_clock_of_another_zone_makes_it_doubtful_not_wrong() -> None:
    assert not surely_starting(folder(log(*COMPILING), at=1768471083.0 + 7200))
    assert not surely_starting(folder(log(*COMPILING), at=1768471083.0 - 7200))


@pytest.mark.parametrize("before", [(STARTING, LOADED), (STARTING, LOADED, DIED)])
def test_a_container_that_never_gets_ready_may_be_a_crash_loop(before: tuple[str, ...]) -> None:
    """Killed by a probe without a word, or dead: in the previous container's log, or in the same one."""
    assert not surely_starting(folder(log(*LOADING), log(*before, source="previous.log", target="previous")))
    assert not surely_starting(folder(log(LAUNCH, *before, LAUNCH, *LOADING)))


def test_a_process_killed_for_memory_leaves_the_same_log() -> None:
    kernel = log(
        "2026-01-15T09:52:17+0000 node-a kernel: Out of memory: Killed process 4711 (python3) total-vm:1kB",
        source="kernel.log",
        target="kernel",
    )
    assert not surely_starting(folder(log(*LOADING), kernel))


def test_an_engine_that_was_told_to_stop_is_neither_starting_nor_dead() -> None:
    stop = "(APIServer pid=1) INFO 01-15 10:02:58 [launcher.py:254] [shutdown] API server: shutdown triggered"
    dead = "(APIServer pid=1) ERROR 01-15 10:02:59 [async_llm.py:480] vllm.v1.engine.exceptions.EngineDeadError"
    for lines in ((*COMPILING, stop), (*COMPILING, READY, stop, dead)):
        verdict = first(folder(log(*lines)))
        assert verdict.kind is Kind.INSUFFICIENT_DATA
        assert "told to stop" in verdict.summary


def test_one_line_is_no_progress() -> None:
    assert not surely_starting(folder(log(STARTING)))
    assert not surely_starting(folder(log(SHARDS.format(36, 87, 21.0))))


def test_the_previous_container_alone_says_nothing_of_now() -> None:
    assert first(folder(log(*LOADING, source="previous.log", target="previous"))).kind is Kind.INSUFFICIENT_DATA


def test_a_log_of_nobody_among_many_replicas() -> None:
    assert not surely_starting(situation(serving("a"), serving("b"), logs=(log(*LOADING),)))


def test_a_third_replica_that_starts_is_named_beside_two_that_serve() -> None:
    case = situation(serving("a"), serving("b"), logs=(log(*LOADING, target="c"),))
    verdict = first(case)
    assert (verdict.kind, verdict.scope.replica) == (Kind.COLD_START, "c")


def test_two_engines_in_one_file_of_which_one_serves() -> None:
    report = "(APIServer pid=7) INFO 01-15 10:05:00 [loggers.py:257] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 31.8 tokens/s, Running: 1 reqs, Waiting: 0 reqs"
    assert not surely_starting(folder(log(LAUNCH, *LOADING, report, report)))


LINES = st.sampled_from(
    [LAUNCH, STARTING, LOADED, BYTECODE, COMPILED.format("9"), SHARDS.format(31, 75, 10.2), SHARDS.format(36, 87, 21.0), DIED, READY, NOISE.format("10:00:00")]
)  # fmt: skip


@given(st.lists(LINES, max_size=20), st.sampled_from([READY, DIED]))
def test_whatever_ends_ready_or_fatal_is_not_starting(lines: list[str], end: str) -> None:
    assert not surely_starting(folder(log(*lines, end)))


@given(st.lists(LINES, max_size=20), st.floats(1.0e9, 2.0e9))
def test_the_same_evidence_gives_the_same_verdict(lines: list[str], at: float) -> None:
    case = folder(log(*lines), at=at)
    assert diagnose(case) == diagnose(case)
