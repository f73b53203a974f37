"""The log reader on single lines, restarts, harmless lines, hostile text and large logs."""

# ruff: noqa: E501  lines of logs are quoted as they are written

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.dialects.logs import read_log
from triage.dialects.logs.table import marker_table
from triage.dialects.logs.throughput import read_throughput
from triage.dialects.logs.times import time_of
from triage.domain.logs import LogKind, LogReading
from triage.domain.logs import LogMark as M
from triage.domain.text import clean

VLLM = "(APIServer pid=1) INFO 01-15 10:00:00 [loggers.py:257] Engine 000: "
REPORT = (
    VLLM
    + "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: {} tokens/s, Running: 1 reqs, Waiting: 0 reqs"
)
DIED = "(EngineCore pid=2) ERROR 01-15 10:00:03 [multiproc_executor.py:315] Worker proc VllmWorker-0 died unexpectedly"
STARTED = "INFO:     Application startup complete."


def read(*lines: str) -> LogReading:
    return read_log("\n".join(lines) + "\n", "engine.log", "r0")


# ---- marks


@pytest.mark.parametrize(
    ("line", "mark", "engine"),
    [
        ("(APIServer pid=1) ERROR 01-16 17:16:49 [core_client.py:605] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", M.FATAL, "vllm"),
        ("ERROR 01-16 17:16:49 [core.py:946] EngineCore failed to start.", M.FATAL, "vllm"),
        ("vllm.engine.async_llm_engine.AsyncEngineDeadError: Background loop has errored already.", M.FATAL, "vllm"),
        ("TimeoutError: RPC call to sample_tokens timed out.", M.FATAL, "vllm"),
        ("RuntimeError: Engine process (pid 77) died.", M.FATAL, "vllm"),
        ("[2026-03-29 18:56:25 TP0] Scheduler hit an exception: Traceback (most recent call last):", M.FATAL, "sglang"),
        ("[2026-03-14 14:30:47] SIGQUIT received. signum=None, frame=None. It usually means one child failed.", M.FATAL, "sglang"),
        ("[2026-03-14 14:30:47] Received sigquit from a child process. It usually means the child failed.", M.FATAL, "sglang"),
        ("[2026-08-10 09:47:36] Subprocess scheduler_0 (pid=3417555) crashed with exit code -3. Triggering SIGQUIT", M.FATAL, "sglang"),
        ("[2026-08-10 09:47:36] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)", M.FATAL, "sglang"),
        ("[2026-08-10 09:47:36] Watchdog timeout (self.watchdog_timeout=300)", M.FATAL, "sglang"),
        ("[2026-08-10 09:47:36] Scheduler watchdog timeout (self.watchdog_timeout=30.0, self.soft=True)", M.STALL_WARNING, "sglang"),
        ("[2026-08-10 09:47:36 TP0] Decode out of memory happened. #retracted_reqs: 1", M.KV_FULL, "sglang"),
        ("/src/ggml/src/ggml.c:1864: GGML_ASSERT(tensor->op == GGML_OP_UNARY) failed", M.FATAL, ""),
        ("/app/libggml-base.so.0(ggml_abort+0x152)[0x7f5f4e61ed32]", M.FATAL, ""),
        ("srv  operator(): request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it", M.CONTEXT_ERROR, "llama.cpp"),
        ("srv    send_error: This server does not support metrics endpoint. Start it with `--metrics`", M.METRICS_OFF, "llama.cpp"),
        ('time=2026-05-27T23:30:25.892-05:00 level=ERROR source=server.go:316 msg="llama runner terminated" error="exit status 2"', M.FATAL, "ollama"),
        ('time=2026-02-25T18:14:44.253+08:00 level=INFO source=server.go:1388 msg="llama runner started in 9.99 seconds"', M.STARTED, "ollama"),
        ("[02/14/2025-09:38:53] [TRT-LLM] [E] [_torch][RANK 7] Executor loop crashed on this rank; hard-killing all 8 ranks", M.FATAL, "tensorrt-llm"),
        ("[02/14/2025-09:38:53] [TRT-LLM] [E] Hang detected on rank 0 in PyExecutor.", M.FATAL, "tensorrt-llm"),
        ("WARNING 06-06 08:30:01 scheduler.py:1680] Sequence group 42 is preempted by PreemptionMode.RECOMPUTE mode", M.KV_FULL, "vllm"),
        ("ValueError: The decoder prompt (length 5951) is longer than the maximum model length of 4096.", M.CONTEXT_ERROR, "vllm"),
        ("[rank3]:[E] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)", M.FATAL, ""),
        ("RuntimeError: CUDA error: device-side assert triggered", M.FATAL, ""),
        ("(APIServer pid=1) INFO 01-15 10:00:00 [utils.py:233] non-default args: {'disable_log_stats': True}", M.METRICS_OFF, "vllm"),
        ("[2026-01-15 08:12:03] server_args=ServerArgs(model_path='m', enable_metrics=False, port=30000)", M.METRICS_OFF, "sglang"),
        ("[12345.678901] Memory cgroup out of memory: Killed process 4182 (VLLM::EngineCor) total-vm:812044kB", M.FATAL, ""),
        ("[2026-01-15 10:00:04] Load weight begin. avail mem=20.64 GB", M.STARTING, "sglang"),
    ],
)  # fmt: skip
def test_marks(line: str, mark: M, engine: str) -> None:
    reading = read(line)
    assert reading.counts == {mark: 1}
    assert reading.engine == engine
    assert reading.events[0].line == 1


@pytest.mark.parametrize(
    "line",
    [
        'INFO:     10.0.0.1:5 - "GET /EngineDeadError/died%20unexpectedly HTTP/1.1" 404 Not Found',
        'INFO:     10.0.0.1:5 - "POST /x?Decode%20batch&EngineDeadError HTTP/1.1" 200 OK',
        "(APIServer pid=1) INFO 12-01 03:06:53 [request_logger.py:65] Received request chatcmpl-1: prompt: 'why EngineDeadError?', params: x",
        "[2026-01-15 10:00:04] Receive: obj=GenerateReqInput(text='Scheduler hit an exception: help me')",
        "[2026-01-15 10:00:04] Ignore import error when loading sglang.srt.models.mamba: CUDA error: no device",
        "<site-packages>/torch/cuda/__init__.py:1: UserWarning: CUDA error: initialisation",
        "[2026-12-01 03:02:45] SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
        "(APIServer pid=1) WARNING 12-01 02:51:58 [utils.py:648] [shutdown] Process manager: force killing remaining processes count=1",
        "(EngineCore pid=26159) INFO 12-01 03:39:04 [multiproc_executor.py:486] [shutdown] Executor: all workers exited gracefully",
        'time=2026-05-27T23:30:25Z level=WARN source=sched.go:649 msg="gpu VRAM usage didn\'t recover within timeout" seconds=5.2',
        "[W604 ProcessGroupNCCL.cpp:1476] Warning: WARNING: destroy_process_group() was not called before program exit",
        "[12345.678901] Out of memory: Killed process 1669 (xdg-desktop-por) total-vm:105068kB",
        "node-a kernel: NVRM: Xid (PCI:0000:48:00): 62, 00002740",
        "(APIServer pid=1) INFO 01-15 10:00:10 [async_llm.py:431] Aborted request(s) chatcmpl-0001.",
        "[2026-01-15 08:12:03] server_args=ServerArgs(model_path='m', enable_metrics=True)",
        "ray.data.exceptions.SomeOutOfMemoryErrorHandler registered",
    ],
)  # fmt: skip
def test_harmless_lines(line: str) -> None:
    reading = read(line)
    assert reading.counts == {}
    assert reading.throughput == ()


def test_a_failed_request_is_read_from_its_status_not_from_its_path() -> None:
    reading = read('INFO:     10.0.0.1:5 - "POST /v1/completions?x=EngineDeadError HTTP/1.1" 500 Internal Server Error')
    assert reading.counts == {M.REQUEST_ERROR: 1}
    wrapped = r'{"log":"INFO:     10.0.0.1:5 - \"POST /EngineDeadError HTTP/1.1\" 500 x\n","stream":"stdout"}'
    assert read(wrapped).counts == {M.REQUEST_ERROR: 1}
    assert read('INFO:     10.0.0.1:5 - "GET /health HTTP/1.1" 503 Service Unavailable').counts == {}


def test_every_row_of_the_table_can_match_a_line_and_names_its_source() -> None:
    table = marker_table()
    for row in (*table.marker, *table.limit, *table.progress):
        assert row.source
        assert len(row.needle) >= 3
    assert all(row.why for row in table.harmless)


@pytest.mark.parametrize(
    ("line", "limit"),
    [
        ("(APIServer pid=1) INFO 01-14 20:00:09 [utils.py:233] non-default args: {'model': 'm', 'max_num_seqs': 16}", 16),
        ("INFO 01-14 20:00:09 llm_engine.py:70] Initializing an LLM engine with config: max_num_seqs=256, seed=0", 256),
        ("[2026-12-01 03:03:07] max_total_num_tokens=2560, max_running_requests=2, context_len=2048", 2),
        ("[2026-12-01 03:03:07] server_args={'max_running_requests': None, 'port': 1}", None),
        ("srv    load_model: initializing, n_slots = 4, n_ctx_slot = 131072, kv_unified = 'true'", 4),
        ("[02/14/2025-09:38:53] [TRT-LLM] [I] max_seq_len=131072, max_num_requests=2048, max_num_tokens=8192", 2048),
        ("[02/14/2025-09:38:53] [TRT-LLM] [I] max_seq_len=8224, max_num_tokens=8192, max_batch_size=64", 64),
        ('2025/02/02 09:23:09 routes.go:1187: INFO server config env="map[OLLAMA_NUM_PARALLEL:3 OLLAMA_ORIGINS:[]]"', 3),
        ('2025/02/02 09:23:09 routes.go:1187: INFO server config env="map[OLLAMA_NUM_PARALLEL:0 OLLAMA_ORIGINS:[]]"', None),
    ],
)  # fmt: skip
def test_sequence_limits(line: str, limit: int | None) -> None:
    assert read(line).sequence_limit == limit


def test_the_limit_of_the_last_start_counts() -> None:
    assert (
        read("srv load_model: initializing, n_slots = 4", "srv load_model: initializing, n_slots = 8").sequence_limit
        == 8
    )


# ---- progress and restarts


def test_a_restart_after_a_fatal_line_is_progress() -> None:
    reading = read(REPORT.format(5.0), DIED, STARTED)
    assert (reading.last_progress_line, reading.counts[M.FATAL]) == (3, 1)


def test_a_report_after_a_fatal_line_looks_back_over_it() -> None:
    reading = read(REPORT.format(5.0), DIED, REPORT.format(5.0), REPORT.format(0.0))
    assert reading.last_progress_line == 1
    assert read(DIED, REPORT.format(5.0)).last_progress_line is None


def test_the_second_report_after_a_fatal_line_is_progress() -> None:
    assert read(DIED, REPORT.format(0.0), REPORT.format(5.0)).last_progress_line == 3


def test_ranks_report_for_themselves() -> None:
    other = REPORT.format(5.0).replace("Engine 000", "Engine 001")
    assert read(REPORT.format(5.0), DIED, other, REPORT.format(5.0)).last_progress_line == 1


def test_batches_of_sglang_are_written_as_they_happen() -> None:
    fatal = "[2026-01-15 10:00:00] Subprocess scheduler_0 (pid=1) crashed with exit code -9."
    batch = "[2026-01-15 10:00:04 TP0] Decode batch, #running-req: 2, #token: 363, token usage: 0.00, #queue-req: 8"
    assert read(fatal, batch).last_progress_line == 2


def test_idle_reports_are_no_progress() -> None:
    assert read(REPORT.format(0.0)).last_progress_line is None


# ---- reports


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            VLLM + "Avg prompt throughput: 1.5 tokens/s, Avg generation throughput: 20.2 tokens/s, Running: 1 reqs, Waiting: 2 reqs, "
            "Deferred: 7 reqs, GPU KV cache usage: 10.5%, Prefix cache hit rate: 60.0%, External prefix cache hit rate: 9.0%",
            {"prompt_speed": 1.5, "generation_speed": 20.2, "running": 1, "waiting": 2, "kv_usage": 0.105, "hit_rate": 0.6, "rank": "000"},
        ),
        (
            "INFO 01-15 10:00:00 [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 3.92, Avg Draft acceptance rate: 98.0%",
            {"accept_length": 3.92, "accept_rate": 0.98, "generation_speed": None},
        ),
        (
            "[2026-01-15 10:00:04 DP1 TP0 EP0] Decode batch. #running-req: 3, #full token: 9, full token usage: 0.21, swa token usage: 0.90, "
            "gen throughput (token/s): 77.5, #queue-req: 2,",
            {"rank": "DP1 TP0 EP0", "running": 3, "kv_usage": 0.21, "generation_speed": 77.5, "waiting": 2},
        ),
        (
            "1.02.794.694 I slot print_timing: id  2 | task 0 |        eval time =    2219.53 ms /  1400 tokens (    1.59 ms per token,   630.31 tokens per second)",
            {"rank": "slot 2", "generation_speed": 630.31, "prompt_speed": None, "batch_tokens": 1400},
        ),
        (
            "0.03.378.063 I slot print_timing: id  0 | task 305 |        eval time =       0.00 ms /     1 tokens (    0.00 ms per token,     0.00 tokens per second)",
            {"generation_speed": None, "batch_tokens": 1},
        ),
        (
            "slot print_timing: id  2 | task 0 | draft acceptance = 0.57143 (  120 accepted /   210 generated), mean len =  3.05",
            {"accept_rate": 0.57143, "accept_length": 3.05},
        ),
        (
            "[01/16/2026-06:20:17] [TRT-LLM] [RANK 0] [I] iter = 5560, host_step_time = 20.0ms, num_scheduled_requests: 5, "
            "states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 5}",
            {"rank": "0", "running": 5, "generation_speed": 250.0, "prompt_speed": 0.0},
        ),
    ],
)  # fmt: skip
def test_reports(line: str, fields: dict[str, object]) -> None:
    report = read_throughput(line, 1, None)
    assert report is not None
    assert {name: getattr(report, name) for name in fields} == fields


@pytest.mark.parametrize(
    "line", ["Avg prompt throughput: x", "Decode batch, nothing", "eval time = soon", "num_scheduled_requests: 1", "SpecDecoding metrics: none"]
)  # fmt: skip
def test_reports_without_numbers(line: str) -> None:
    assert read_throughput(line, 1, None) is None


# ---- times


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("2026-01-15T10:00:00Z node kernel: x", 1768471200.0),
        ("2026-01-15T12:00:00.250000+0200 x", 1768471200.25),
        ("2026-01-15T02:30:00-07:30 x", 1768471200.0),
        ("[2026-01-15 10:00:00 TP0] Decode batch", 1768471200.0),
        ("2026-01-15 10:00:00,500\tINFO serve 123 -- x", 1768471200.5),
        ("[GIN] 2026/01/15 - 10:00:00 | 200 |", 1768471200.0),
        ("[01/15/2026-10:00:00] [TRT-LLM] [I] x", 1768471200.0),
        ('{"log":"' + "x" * 300 + '","stream":"stderr","time":"2026-01-15T10:00:00.0Z"}', 1768471200.0),
        ("(APIServer pid=1) INFO 01-15 10:00:00 [x.py:1] y", None),
        ("2026-13-45T10:00:00Z x", None),
        ("2026-01-15T10:00:00+99:99 x", None),
        ("0.03.378.063 I slot print_timing", None),
        ("", None),
    ],
)
def test_times(line: str, at: float | None) -> None:
    assert time_of(line) == at


def test_a_year_completes_a_date_that_lacks_it() -> None:
    assert time_of("(APIServer pid=1) INFO 01-15 10:00:00 [x.py:1] y", 2026) == 1768471200.0
    assert time_of("INFO 02-29 10:00:00 [x.py:1] y", 2026) is None


# ---- wrappings


@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        "2026-01-15T10:00:03.123456789Z {}",
        "2026-01-15T10:00:03.123456789Z stderr F {}",
        "vllm-1  | {}",
        "Oct 03 13:18:05 gemma vllm[26513]: {}",
        "[pod/llm-0/vllm] {}",
        '{{"log":"{}\\n","stream":"stderr","time":"2026-01-15T10:00:03Z"}}',
        "\x1b[1;36m{}\x1b[0;0m",
        "{}\r",
    ],
)
def test_what_runtimes_put_around_a_line(wrap: str) -> None:
    reading = read(wrap.format(DIED), wrap.format(DIED))
    assert (reading.kind, reading.engine, reading.counts) == (LogKind.ENGINE, "vllm", {M.FATAL: 2})
    assert "\x1b" not in reading.events[0].text


def test_most_lines_decide_about_the_kind() -> None:
    kernel = "2026-01-15T09:59:20.466440Z node-a kernel: nfs: server storage.example OK"
    assert read(*[kernel] * 3, REPORT.format(1.0)).kind is LogKind.KERNEL
    mixed = read(kernel, *[REPORT.format(1.0)] * 3)
    assert (mixed.kind, mixed.engine) == (LogKind.ENGINE, "vllm")


def test_an_access_log_is_not_searched_for_marks() -> None:
    line = '[2026-01-15T10:00:00.000Z] "POST /EngineDeadError HTTP/1.1" 503 UC 300 95 1 - "198.51.100.7" "died unexpectedly"'
    assert read(line).counts == {}


def test_progress_bars_that_end_with_a_return() -> None:
    bar = "".join(f"Loading safetensors checkpoint shards: {n:3}% Completed | {n}/100\r" for n in range(0, 101, 10))
    reading = read("INFO 01-15 10:00:00 [x.py:1] Starting to load model m...", bar)
    assert reading.counts == {M.STARTING: 2}
    assert reading.events[1].text == "Loading safetensors checkpoint shards:   0% Completed | 0/100"


# ---- bounds and hostile text


def test_a_million_events_are_counted_and_few_kept() -> None:
    reading = read(*[DIED] * 5000, *[STARTED] * 5000)
    assert reading.counts == {M.FATAL: 5000, M.STARTED: 5000}
    assert len(reading.events) == 44
    first, last = reading.first(M.FATAL), reading.last(M.STARTED)
    assert first is not None
    assert last is not None
    assert (first.line, last.line) == (1, 10_000)
    assert [event.line for event in reading.events] == sorted(event.line for event in reading.events)


def test_the_newest_reports_are_kept() -> None:
    reading = read(*[REPORT.format(n) for n in range(2500)])
    assert len(reading.throughput) == 2000
    assert (reading.throughput[0].line, reading.throughput[-1].line) == (501, 2500)


def test_remote_text_is_cleaned_and_bounded() -> None:
    reading = read(DIED + "\x1b]0;owned\x07\u202e\u200b\x9b31m" + "x" * 100_000)
    text = reading.events[0].text
    assert len(text) <= 300
    assert text.isprintable()
    assert "owned" not in text


def test_the_words_found_are_in_the_text_even_far_into_a_line() -> None:
    text = read("(APIServer pid=1) " + "x" * 1500 + DIED).events[0].text
    assert text.startswith("…")
    assert "died unexpectedly" in text


@pytest.mark.parametrize(
    "text", ["", "\n", "\n\n\n", "\x00" * 1000, "{" * 5000, "[" * 5000, "no newline", "\ud800 lone"]
)
def test_garbage(text: str) -> None:
    reading = read_log(text, "s", "t")
    assert (reading.kind, reading.events, reading.throughput) == (LogKind.UNKNOWN, (), ())
    assert reading.lines == len(text.splitlines()) or "\x00" in text


@pytest.mark.parametrize(
    "attack",
    [
        '"POST ' * 400_000,
        "request completed " * 100_000,
        "GGML_ASSERT(" * 100_000,
        "eval time =" + " " * 1_000_000,
        "Engine process (pid" + "1" * 1_000_000,
        "[GIN] " * 200_000 + "| 200 |",
        "Avg prompt throughput: " + "1" * 1_000_000,
        "dynamo_" * 200_000,
        "1:" * 400_000 + 'HTTP/1.1" 5',
        "Loading " * 100_000 + "checkpoint shards:" + " " * 500_000,
        "x method=" + "a path=" * 200_000,
    ],
    ids=lambda attack: attack[:16].strip(),
)  # fmt: skip
def test_expressions_do_not_run_away(attack: str) -> None:
    """Each of these took no more than a tenth of a second; quadratic matching would take minutes."""
    for line in (attack, "(APIServer pid=1) " + attack, "srv  x: " + attack):
        read_log(line, "s", "t")
        read_log("\n".join(attack[i : i + 8000] for i in range(0, 80_000, 8000)), "s", "t")


_PARTS = st.sampled_from(
    [row.needle for row in marker_table().marker]
    + ["\n", "\r", "\x1b[0m", " ", "(APIServer pid=1) ", "INFO 01-15 10:00:00 [a.py:1] ", 'HTTP/1.1" 500', "Decode batch, #running-req: 1", "{", '{"status": 1}']
)  # fmt: skip


@given(st.lists(_PARTS | st.text(max_size=12), max_size=40).map("".join))
def test_nothing_in_a_log_raises(text: str) -> None:
    reading = read_log(text, "s", "t", year=2026)
    assert len(reading.events) <= 200
    assert all(1 <= event.line <= reading.lines for event in reading.events)
    assert all(event.text == clean(event.text, 300) for event in reading.events)
    assert sum(reading.counts.values()) >= len(reading.events)
