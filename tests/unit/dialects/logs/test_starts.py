"""Starts of engines in their logs: phases, progress, ends, restarts, and what only looks like one."""

# ruff: noqa: E501  lines of logs are quoted as they are written

from itertools import pairwise
from re import _parser  # type: ignore[attr-defined]

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import RECORDINGS
from triage.dialects.logs import read_log
from triage.dialects.logs.table import marker_table
from triage.domain.calendar import seconds_between
from triage.domain.logs import LogMark, LogReading, Start, StartEnd
from triage.domain.logs import StartPhase as P

LAUNCH = "(APIServer pid=1) INFO 01-15 09:55:00 [utils.py:233] non-default args: {'model': 'm'}"
CORE = "(EngineCore_DP{0} pid={1}) INFO 01-15 09:56:{2:02d} [core.py:133] Initializing a V1 LLM engine (v0.20.0)"
SHARDS = (
    "(EngineCore_DP0 pid=98) Loading safetensors checkpoint shards:  {0}% Completed | {1}/241 [12:40<28:13, {2}s/it]"
)
LOADED = "(EngineCore_DP0 pid=98) INFO 01-15 09:57:46 [default_loader.py:391] Loading weights took 63.10 seconds"
MODEL = "(EngineCore_DP0 pid=98) INFO 01-15 09:57:50 [gpu_model_runner.py:4879] Model loading took 15.27 GiB memory and 66.40 seconds"
COMPILED = "(EngineCore_DP0 pid=98) INFO 01-15 10:00:30 [monitor.py:53] torch.compile took 166.21 s in total"
CAPTURED = "(EngineCore_DP0 pid=98) INFO 01-15 10:01:21 [gpu_model_runner.py:4211] Graph capturing finished in 71 secs, took 1.32 GiB"
READY = "(APIServer pid=1) INFO:     Application startup complete."
REPORT = "(APIServer pid=1) INFO 01-15 10:05:00 [loggers.py:257] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: {} tokens/s, Running: 0 reqs, Waiting: 0 reqs"
DIED = "(EngineCore_DP0 pid=98) ERROR 01-15 09:57:58 [core.py:710] torch.OutOfMemoryError: CUDA out of memory."


def read(*lines: str) -> LogReading:
    return read_log("\n".join(lines) + "\n", "engine.log", "r0")


def only(*lines: str) -> Start:
    (start,) = read(*lines).starts
    return start


# ---- phases and progress


def test_shards_are_progress_with_their_pace() -> None:
    start = only(SHARDS.format(31, 75, 10.2), SHARDS.format(36, 87, 21.0))
    phase = start.newest
    assert (phase.phase, phase.done, phase.total, phase.left, phase.changes, phase.step_s) == (
        P.WEIGHTS_LOAD,
        87,
        241,
        154,
        1,
        21.0,
    )
    assert start.end is StartEnd.OPEN


def test_a_figure_that_stands_still_is_no_change() -> None:
    assert only(*[SHARDS.format(36, 87, 21.0)] * 5).newest.changes == 0


def test_iterations_a_second_become_seconds_a_step() -> None:
    line = "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01,  2.00it/s]"
    assert only(LAUNCH, line).newest.step_s == 0.5


def test_of_reports_inside_one_another_the_longest_counts() -> None:
    phase = only(LAUNCH, LOADED, MODEL).phase(P.WEIGHTS_LOAD)
    assert phase is not None
    assert phase.took_s == 66.4


def test_progress_bars_drawn_over_with_returns_are_followed_to_their_end() -> None:
    bar = "\r".join(
        f"Loading safetensors checkpoint shards:  {n}% Completed | {n}/100 [00:01<00:09,  1.0s/it]"
        for n in range(0, 43, 2)
    )
    phase = read(LAUNCH, bar).starts[0].newest
    assert (phase.done, phase.changes) == (42, 21)


@pytest.mark.parametrize(
    ("line", "phase", "figure"),
    [
        ("Multi-thread loading shards:  25% Completed | 1/4 [00:00<00:02,  1.29it/s]", P.WEIGHTS_LOAD, (1, 4)),
        ("Fetching 15 files:  20%|██        | 3/15 [00:00<00:03,  3.1it/s]", P.WEIGHTS_DOWNLOAD, (3, 15)),
        ("model-00001-of-000002.safetensors:  41%|████      | 3.61G/8.67G [01:41<02:20, 36.0MB/s]", P.WEIGHTS_DOWNLOAD, (41, 100)),
        ("2026-01-15T09:56:50.366843Z  INFO text_generation_launcher: Download: [13/30] -- ETA: 0:06:42.769236", P.WEIGHTS_DOWNLOAD, (13, 30)),
        ("INFO 05-13 10:07:58 [weight_utils.py:615] Time spent downloading weights for org/m-8b: 39.850140 seconds", P.WEIGHTS_DOWNLOAD, None),
        ("(EngineCore pid=9) INFO 02-22 06:35:26 [backends.py:267] Directly load the compiled graph(s) for compile range (1, 2048) from the cache, took 1.908 s", P.COMPILE, None),
        ("(EngineCore pid=9) INFO 02-16 14:53:25 [monitor.py:34] torch.compile takes 9.85 s in total", P.COMPILE, None),
        ("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  71%|███████   | 25/35 [00:04<00:01, 10.66it/s]", P.GRAPH_CAPTURE, (25, 35)),
        ("(EngineCore pid=282) [AutoTuner]: Tuning fp4_gemm:  13%|█▎        | 3/23 [00:00<00:04,  4.48profile/s]", P.WARM_UP, (3, 23)),
        ("[2025-05-02 16:14:33] Capture cuda graph begin. This can take up to several minutes. avail mem=0.00 GB", P.GRAPH_CAPTURE, None),
        ("[2025-05-02 16:14:33] Load weight end. elapsed=0.11 s, type=LlamaForCausalLM, avail mem=20.88 GB", P.WEIGHTS_LOAD, None),
        ("[12/20/2025-04:21:37] [TRT-LLM] [I] Creating CUDA graph instances for 11 batch sizes.", P.GRAPH_CAPTURE, None),
        ("[12/20/2025-04:21:37] [TRT-LLM] [I] [Autotuner] Autotuning process ends", P.WARM_UP, None),
        ("[12/20/2025-04:21:37] [TRT-LLM] [I] Run generation only CUDA graph warmup for batch size=64, draft_len=0", P.GRAPH_CAPTURE, None),
        ("0.00.040.653 I srv    load_model: loading model 'tiny.gguf'", P.WEIGHTS_LOAD, None),
        ('time=2026-02-25T18:14:44.253+08:00 level=DEBUG source=server.go:1380 msg="model load progress 0.37"', P.WEIGHTS_LOAD, (0, 100)),
        ("WARNING 2026-01-12 05:53:33,039 controller 1004 -- Deployment 'LLMServer:m' in application 'llms' has 1 replicas that have taken more than 30s to initialize.", P.LAUNCH, None),
    ],
)  # fmt: skip
def test_lines_of_a_start(line: str, phase: P, figure: tuple[int, int] | None) -> None:
    newest = only(line).newest
    assert newest.phase is phase
    assert (newest.done, newest.total) == (figure or (None, None))


def test_a_start_recorded_from_the_real_software_is_ready() -> None:
    for name in ("vllm/vllm-0.32.0-server.log", "sglang/sglang-0.5.23-server.log", "llama-cpp/server.log"):
        reading = read_log((RECORDINGS / name).read_text(), name, "r0")
        (start,) = reading.starts
        assert (start.end, reading.started) == (StartEnd.READY, 1), name
        assert start.phase(P.WEIGHTS_LOAD) is not None, name
        assert start.first is not None, name
        assert start.last is not None, name
        assert start.last > start.first, name


# ---- ends


def test_ready_failed_or_open() -> None:
    assert only(LAUNCH, LOADED, READY).end is StartEnd.READY
    assert only(LAUNCH, LOADED, DIED).end is StartEnd.FAILED
    assert only(LAUNCH, LOADED).end is StartEnd.OPEN


@pytest.mark.parametrize(
    "sign",
    [
        REPORT.format("0.0"),
        REPORT.format("12.5"),
        'INFO:     192.0.2.1:60288 - "GET /health HTTP/1.1" 200 OK',
        '{"log":"INFO:     192.0.2.1:60288 - \\"GET /health HTTP/1.1\\" 200 OK\\n","stream":"stdout","time":"2026-01-15T10:00:00Z"}',
        "(APIServer pid=1) INFO 12-01 02:40:11 [entry.py:140] Starting vLLM server on http://127.0.0.1:18001",
    ],
)
def test_whoever_serves_has_started_even_without_the_line_that_says_so(sign: str) -> None:
    assert only(LAUNCH, LOADED, COMPILED, sign).end is StartEnd.READY


def test_a_request_answered_before_the_newest_start_says_nothing_of_it() -> None:
    answered = 'INFO:     192.0.2.1:60288 - "GET /health HTTP/1.1" 200 OK'
    assert read(LAUNCH, LOADED, READY, answered, LAUNCH, LOADED).starts[-1].end is StartEnd.OPEN


def test_weights_that_a_serving_engine_reads_again_are_no_start() -> None:
    reading = read(LAUNCH, LOADED, READY, REPORT.format("9.0"), LOADED, MODEL)
    assert [start.end for start in reading.starts] == [StartEnd.READY]


def test_what_a_user_writes_is_no_start() -> None:
    prompt = (
        "(APIServer pid=1) INFO 01-15 10:00:00 [logger.py:40] Received request c-1: prompt: '"
        + SHARDS.format(36, 87, 21.0)
        + "'"
    )
    assert read(prompt).starts == ()


# ---- several starts


def test_every_restart_is_counted() -> None:
    reading = read(LAUNCH, LOADED, LAUNCH, LOADED, COMPILED, LAUNCH, LOADED)
    assert [start.end for start in reading.starts] == [StartEnd.OPEN] * 3
    assert reading.started == 3


def test_the_newest_of_many_restarts_are_kept() -> None:
    reading = read(*[LAUNCH, LOADED] * 300)
    assert reading.started == 300
    assert len(reading.starts) == 20
    assert reading.starts[-1].last_line == 600


def test_ranks_that_start_together_are_one_start() -> None:
    reading = read(LAUNCH, CORE.format(0, 98, 10), CORE.format(1, 99, 11), LOADED, MODEL)
    assert reading.started == 1


def test_a_process_that_begins_again_without_a_last_word_is_another_start() -> None:
    reading = read(CORE.format(0, 98, 10), LOADED, CORE.format(0, 180, 40))
    assert reading.started == 2


# ---- clocks


def test_a_start_over_new_year_lasts_minutes() -> None:
    start = only(
        "(EngineCore pid=1) INFO 12-31 23:58:00 [core.py:133] Initializing a V1 LLM engine",
        "(EngineCore pid=1) INFO 01-01 00:03:00 [monitor.py:53] torch.compile took 166.21 s in total",
    )
    assert start.first is not None
    assert start.last is not None
    assert seconds_between(start.first, start.last) == 300


def test_the_cache_of_compiled_code() -> None:
    factors = "(EngineCore pid=42) DEBUG 01-15 09:57:51 [backends.py:1080] torch.compile cache factors: env=c80f52a617 cfg=5d20aa71c3 dir=/cache/x"
    path = "(EngineCore pid=42) INFO 01-15 09:57:51 [backends.py:1099] Using cache directory: /cache/x/rank_0_0 for vLLM's torch.compile"
    hit = "(EngineCore pid=42) INFO 01-15 09:57:53 [backends.py:267] Directly load the compiled graph(s) for dynamic shape from the cache, took 1.9 s"
    miss = "(EngineCore pid=42) INFO 01-15 09:58:53 [backends.py:319] Compiling a graph for compile range (1, 2048) takes 26.40 s"
    start = only(LAUNCH, factors, path, hit)
    assert (start.cache_key, start.cache_path, start.cache_hit) == (
        {"env": "c80f52a617", "cfg": "5d20aa71c3"},
        "/cache/x/rank_0_0",
        True,
    )
    assert only(LAUNCH, path, miss).cache_hit is False
    assert only(LAUNCH, path).cache_hit is None


# ---- orderly ends

STOP = "(APIServer pid=1) INFO 12-01 02:51:58 [launcher.py:254] [shutdown] API server: shutdown triggered"
SPURIOUS = "(APIServer pid=1) ERROR 12-01 02:51:59 [async_llm.py:480] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."


@pytest.mark.parametrize(
    "stop",
    [
        STOP,
        "(EngineCore pid=2) INFO 12-01 02:51:58 [core.py:1454] [shutdown] EngineCore: trigger received signal=SIGTERM",
        "INFO:     Shutting down",
    ],
)
def test_fatal_words_of_an_engine_that_was_told_to_stop_are_its_end(stop: str) -> None:
    reading = read(LAUNCH, LOADED, READY, stop, SPURIOUS)
    assert LogMark.FATAL not in reading.counts
    assert reading.stopped_line == 4


def test_an_engine_that_died_and_then_shut_down_is_dead() -> None:
    assert read(LAUNCH, LOADED, READY, DIED, STOP, SPURIOUS).counts[LogMark.FATAL] == 2


def test_the_next_life_may_die_again() -> None:
    for again in (LAUNCH, READY, CORE.format(0, 99, 10)):
        reading = read(LAUNCH, LOADED, READY, STOP, again, DIED)
        assert reading.counts[LogMark.FATAL] == 1
        assert reading.stopped_line is None


def test_a_start_that_was_told_to_stop_did_not_get_ready() -> None:
    assert only(LAUNCH, LOADED, STOP).end is StartEnd.FAILED


@pytest.mark.parametrize("name", ["vllm/vllm-0.32.0-server.log", "sglang/sglang-0.5.23-server.log"])
def test_recorded_orderly_ends(name: str) -> None:
    reading = read_log((RECORDINGS / name).read_text(), name, "r0")
    assert reading.stopped_line is not None
    assert reading.last_progress_line is not None
    assert reading.stopped_line > reading.last_progress_line
    assert LogMark.FATAL not in reading.counts


@pytest.mark.parametrize(
    "line",
    [
        "    raise asyncio.exceptions.CancelledError  # CUDA error: never mind",
        "[rank0]:[W109 11:33:26 ProcessGroupNCCL.cpp:1250] Warning: WARNING: destroy_process_group() was not called before program exit, died unexpectedly",
        "host:1:2 [0] NCCL WARN Call to ibv_create_qp failed, CUDA error: see above",
        ' - leaked instance 0x7fbbcaa38b28 of type "EngineDeadError"',
        "(APIServer pid=1) WARNING 12-01 02:51:58 [utils.py:648] [shutdown] Process manager: force killing EngineCore died unexpectedly",
    ],
)
def test_lines_that_look_fatal_and_are_not(line: str) -> None:
    assert read(LAUNCH, READY, line).counts.get(LogMark.FATAL) is None


# ---- the table


def _rows() -> list[str]:
    table = marker_table()
    rows = (*table.marker, *table.launch, *table.stop, *table.limit, *table.progress, *table.reuse)
    return [row.compiled.pattern for row in rows if row.compiled is not None] + [row.pattern for row in table.harmless]


def _unbounded(parsed: object, inside: bool = False) -> list[str]:
    """Repeats that can run away: a variable one inside another, or one without a bound over more than one character."""
    found: list[str] = []
    for op, argument in parsed:  # type: ignore[attr-defined]
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, body = argument
            many = high == _parser.MAXREPEAT
            if many and (inside or len(body) != 1):
                found.append(f"{name} {low}..")
            found += _unbounded(body, inside or many)
        elif name == "SUBPATTERN":
            found += _unbounded(argument[3], inside)
        elif name == "BRANCH":
            for branch in argument[1]:
                found += _unbounded(branch, inside)
    return found


@pytest.mark.parametrize("pattern", _rows())
def test_no_expression_repeats_without_a_bound_inside_a_repeat(pattern: str) -> None:
    assert _unbounded(_parser.parse(pattern)) == []


LINES = st.sampled_from(
    [
        LAUNCH,
        CORE.format(0, 1, 1),
        LOADED,
        MODEL,
        COMPILED,
        CAPTURED,
        SHARDS.format(9, 20, 3.0),
        DIED,
        REPORT.format("1.0"),
        "noise",
    ]
)


@given(st.lists(LINES, max_size=30))
def test_whatever_came_before_a_start_that_is_ready_is_over(lines: list[str]) -> None:
    reading = read(*lines, READY)
    assert all(start.end is not StartEnd.OPEN for start in reading.starts[-1:]) or DIED in lines
    numbers = [start.line for start in reading.starts]
    assert numbers == sorted(numbers)
    assert reading.started >= len(reading.starts)


@given(st.lists(LINES, max_size=30))
def test_starts_do_not_overlap_and_end_within_the_log(lines: list[str]) -> None:
    starts = read(*lines).starts
    for before, after in pairwise(starts):
        assert before.last_line < after.line
    assert all(0 < start.line <= start.last_line <= len(lines) for start in starts)
    assert all(start.newest.left is None or start.newest.left >= 0 for start in starts)
