"""Every log of the cases and recordings: its kind, and what must be read from it."""

from functools import cache

import pytest

from tests.cases.public import FOLDER
from tests.data import RECORDINGS
from triage.dialects.logs import read_log
from triage.domain.logs import LogKind, LogMark, LogReading
from triage.domain.logs import LogMark as M

E, A, K, X, U = LogKind.ENGINE, LogKind.ACCESS, LogKind.KERNEL, LogKind.EXPORTER, LogKind.UNKNOWN


@cache
def case(name: str) -> LogReading:
    path = FOLDER / name
    return read_log(path.read_text(errors="replace"), path.name, path.stem)


@cache
def recording(name: str) -> LogReading:
    path = RECORDINGS / name
    return read_log(path.read_text(errors="replace"), path.name, path.stem)


# kind, software, last line that proves progress, reports of throughput, marks
EXPECTED: dict[str, tuple[LogKind, str, int | None, int, dict[LogMark, int]]] = {
    "C01/engine.log": (E, "vllm", 4, 3, {}),
    "C02/engine.log": (E, "vllm", 4, 4, {}),
    "C06/engine.log": (E, "vllm", 6, 6, {}),
    "C08/engine.log": (E, "llama.cpp", None, 0, {M.KV_FULL: 11, M.CONTEXT_ERROR: 4, M.REQUEST_ERROR: 4}),
    "C09/engine.log": (E, "sglang", 7, 7, {}),
    "C101/usage.log": (A, "", None, 0, {}),
    "C102/engine.log": (E, "llama.cpp", 31, 8, {}),
    "C107/engine.log": (E, "sglang", 2, 0, {M.STARTED: 1}),
    "C108/gateway.log": (A, "envoy", None, 0, {}),
    "C11/engine.log": (E, "ollama", 6, 0, {M.REQUEST_ERROR: 4}),
    "C110/engine.log": (E, "sglang", 6, 6, {}),
    "C111/kernel.log": (K, "", None, 0, {}),
    "C118/engine.log": (E, "vllm", None, 0, {M.STARTING: 5}),
    "C118/previous.log": (E, "vllm", 10, 0, {M.STARTING: 8, M.STARTED: 1}),
    "C120/router.log": (A, "", None, 0, {}),
    "C13/engine.log": (E, "vllm", 1, 8, {}),
    "C15/engine.log": (E, "vllm", None, 0, {M.FATAL: 1, M.REQUEST_ERROR: 2}),
    "C16/engine.log": (E, "vllm", None, 0, {M.FATAL: 3}),
    "C17/engine.log": (E, "sglang", None, 0, {}),
    "C20/engine.log": (E, "sglang", 6, 4, {M.STALL_WARNING: 1}),
    "C21/engine.log": (E, "tensorrt-llm", None, 0, {M.REQUEST_ERROR: 1}),
    "C22/engine.log": (E, "vllm", None, 0, {M.STALL_WARNING: 4}),
    "C22/kernel.log": (K, "", None, 0, {}),
    "C23/engine.log": (E, "vllm", None, 1, {M.STALL_WARNING: 4}),
    "C23/gateway.log": (A, "envoy", None, 0, {}),
    "C28/engine.log": (E, "vllm", None, 0, {M.STARTING: 2, M.FATAL: 2}),
    "C35/engine.log": (E, "vllm", 4, 4, {}),
    "C37/gateway.log": (A, "envoy", None, 0, {}),
    "C44/gateway.log": (A, "load balancer", None, 0, {}),
    "C46/gateway.log": (A, "envoy", None, 0, {}),
    "C48/gateway.log": (A, "envoy", None, 0, {}),
    "C49/gateway.log": (A, "envoy", None, 0, {}),
    "C53/gateway.log": (A, "", None, 0, {}),
    "C54/engine.log": (E, "vllm", None, 0, {}),
    "C54/gateway.log": (A, "nginx", None, 0, {}),
    "C55/engine.log": (E, "vllm", 2, 3, {}),
    "C55/router.log": (U, "", None, 0, {}),
    "C59/engine.log": (E, "vllm", None, 0, {M.STARTING: 4}),
    "C60/previous.log": (E, "vllm", None, 0, {M.STARTING: 3}),
    "C61/engine.log": (E, "vllm", None, 0, {M.STARTING: 3}),
    "C62/previous.log": (E, "tgi", None, 0, {M.STARTING: 1}),
    "C63/device-plugin.log": (U, "", None, 0, {}),
    "C65/gateway.log": (A, "envoy", None, 0, {}),
    "C67/frontend.log": (E, "dynamo", None, 0, {M.REQUEST_ERROR: 2}),
    "C68/gateway.log": (A, "envoy", None, 0, {}),
    "C69/init.log": (U, "", None, 0, {}),
    "C70/engine.log": (E, "vllm", None, 0, {M.FATAL: 2}),
    "C70/kernel.log": (K, "", None, 0, {}),
    "C72/engine.log": (E, "vllm", None, 0, {M.STARTING: 1, M.FATAL: 1}),
    "C72/kernel.log": (K, "", None, 0, {}),
    "C77/gateway.log": (A, "envoy", None, 0, {}),
    "C78/gateway.log": (A, "envoy", None, 0, {}),
    "C80/gateway.log": (A, "", None, 0, {}),
    "C84/exporter-node-b.log": (X, "", None, 0, {M.COLLECTION_ERROR: 2}),
    "C89/gateway.log": (A, "envoy", None, 0, {}),
    "C90/exporter.log": (X, "", None, 0, {M.COLLECTION_ERROR: 7}),
    "C93/gateway.log": (A, "litellm", None, 0, {}),
    "C93/upstream.log": (A, "envoy", None, 0, {}),
    "C94/gateway.log": (A, "", None, 0, {}),
    "R01/engine.log": (E, "vllm", 25, 4, {}),
    "R02/engine.log": (E, "vllm", 34, 4, {}),
    "R03/engine.log": (E, "vllm", 23, 5, {}),
    "R04/engine.log": (E, "vllm", 6, 3, {M.STALL_WARNING: 1}),
    # The report in line 165 looks back over the ten seconds before the death in line 6.
    "R05/engine.log": (E, "vllm", None, 2, {M.FATAL: 6, M.REQUEST_ERROR: 30}),
    "R06/engine.log": (E, "vllm", 33, 5, {}),
    "R07/engine.log": (E, "vllm", 24, 4, {}),
    "R08/engine.log": (E, "vllm", 99, 4, {}),
    "R09/engine.log": (E, "vllm", 22, 4, {}),
    "R10/engine.log": (E, "vllm", 77, 4, {}),
    "R11/engine-replica-0.log": (E, "llama.cpp", 47, 12, {}),
    "R11/engine-replica-1.log": (E, "llama.cpp", 318, 90, {}),
    "R12/engine.log": (E, "vllm", 35, 8, {}),
    "R13/engine.log": (E, "sglang", 67, 45, {}),
    "R14/engine.log": (E, "dynamo", None, 0, {}),
    "R14/frontend.log": (E, "dynamo", 117, 0, {}),
    "R15/engine.log": (E, "vllm", 22, 5, {}),
    "R16/engine.log": (E, "llama.cpp", 141, 40, {}),
}
# The same gateway in every recorded case.
EXPECTED |= {f"{path.parent.name}/gateway.log": (A, "envoy", None, 0, {}) for path in FOLDER.glob("R*/gateway.log")}


def test_no_log_is_forgotten() -> None:
    assert set(EXPECTED) == {f"{path.parent.name}/{path.name}" for path in FOLDER.glob("*/*.log")}


@pytest.mark.parametrize("name", EXPECTED)
def test_logs_of_the_cases(name: str) -> None:
    reading = case(name)
    assert EXPECTED[name] == (
        reading.kind,
        reading.engine,
        reading.last_progress_line,
        len(reading.throughput),
        reading.counts,
    )
    assert reading.lines == (FOLDER / name).read_text(errors="replace").count("\n")


@pytest.mark.parametrize(
    ("name", "kind", "engine", "limit", "progress", "marks"),
    [
        (
            "vllm/vllm-0.32.0-engine-killed.log",
            E,
            "vllm",
            2,
            157,
            {M.STARTING: 4, M.STARTED: 2, M.FATAL: 4, M.REQUEST_ERROR: 1},
        ),
        ("vllm/vllm-0.32.0-server.log", E, "vllm", 2, 208, {M.STARTING: 4, M.STARTED: 2}),
        ("sglang/sglang-0.5.23-server.log", E, "sglang", 2, 464, {M.STARTING: 3, M.STARTED: 2}),
        (
            "sglang/sglang-0.5.23-retraction-server.log",
            E,
            "sglang",
            2,
            284,
            {M.STARTING: 3, M.STARTED: 2, M.KV_FULL: 1},
        ),
        ("llama-cpp/server.log", E, "llama.cpp", 2, 57, {M.STARTING: 2, M.STARTED: 1}),
        ("dynamo/mocker.log", E, "dynamo", 4, None, {M.CONTEXT_ERROR: 1}),
        ("dynamo/frontend.log", E, "dynamo", None, 32, {M.STARTED: 1, M.REQUEST_ERROR: 26}),
        ("envoy/access.log", A, "envoy", None, None, {}),
        ("nginx/access.log", A, "nginx", None, None, {}),
        ("nginx/error.log", U, "", None, None, {}),
        ("haproxy/haproxy.log", A, "haproxy", None, None, {}),
    ],
)
def test_recorded_logs(
    name: str, kind: LogKind, engine: str, limit: int | None, progress: int | None, marks: dict[LogMark, int]
) -> None:
    reading = recording(name)
    assert (reading.kind, reading.engine, reading.sequence_limit) == (kind, engine, limit)
    assert (reading.last_progress_line, reading.counts) == (progress, marks)


def test_a_dead_engine_is_dead_after_its_last_progress() -> None:
    reading = recording("vllm/vllm-0.32.0-engine-killed.log")
    fatal = reading.last(M.FATAL)
    assert fatal is not None
    assert reading.last_progress_line is not None
    assert fatal.line > reading.last_progress_line
    first = reading.first(M.FATAL)
    assert first is not None
    assert "Worker proc VllmWorker-0 died unexpectedly (exit code: -9)" in first.text


def test_limits_in_start_lines() -> None:
    assert case("C01/engine.log").sequence_limit == 16
    assert case("C08/engine.log").sequence_limit == 4


def test_reports_carry_what_the_lines_say() -> None:
    first = case("C13/engine.log").throughput[0]
    assert (first.prompt_speed, first.generation_speed, first.running, first.waiting) == (382.6, 118.5, 35, 115)
    assert (first.kv_usage, first.hit_rate, first.at, first.line) == (0.99, None, None, 1)
    last = case("C110/engine.log").throughput[-1]
    assert (last.accept_length, last.accept_rate, last.batch_tokens, last.waiting) == (1.57, 0.19, 140_210, 0)
    assert (last.rank, last.kv_usage, last.generation_speed) == ("TP0", 0.53, 204.4)
    prefill = case("R13/engine.log").throughput[0]
    assert (prefill.prompt_speed, prefill.batch_tokens, prefill.hit_rate) == (275.28, 156, 4 / 160)
    slot = case("C102/engine.log").throughput
    assert (slot[0].rank, slot[0].prompt_speed, slot[1].generation_speed) == ("slot 3", 1160.09, 41.49)
    real = recording("vllm/vllm-0.32.0-engine-killed.log").throughput
    assert [line.accept_length for line in real if line.accept_length] == [3.92, 1.0]


def test_times_need_a_full_date() -> None:
    event = case("C20/engine.log").first(M.STALL_WARNING)
    assert event is not None
    assert event.at == 1768471221.0  # 2026-01-15 10:00:21 UTC
    assert case("R05/engine.log").events[0].at is None
    text = (FOLDER / "R05/engine.log").read_text()
    assert read_log(text, "s", "t", year=2026).events[0].at == 1796096344.0  # 2026-12-01 03:39:04 UTC
