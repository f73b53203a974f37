"""Dialect tables on real recordings and on the quirks that the metrics reference lists."""

import pytest

from tests.data import RECORDINGS
from triage.dialects.pages import read_page
from triage.dialects.table import engine_tables, known_renames
from triage.domain.absence import Absent, Missing
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading, Role
from triage.domain.target import Target


def read(text: str) -> list[EngineReading]:
    return list(read_page(text.encode(), Target("a"), "page", None).engines)


def recording(name: str) -> EngineReading:
    (reading,) = read((RECORDINGS / name).read_text())
    return reading


@pytest.mark.parametrize(
    ("name", "engine", "dialect", "version", "model"),
    [
        ("vllm/vllm-0.32.0-queueing.prom", "vllm", "v1", "≥ 0.22.1", "tiny-qwen3"),
        ("vllm/vllm-0.29.0-idle-fresh.prom", "vllm", "v1", "≥ 0.22.1", "tiny-qwen3"),
        ("public/datadog/vllm_v0_2024-06.prom", "vllm", "v0", "< 0.12.0", "facebook/opt-125m"),
        ("sglang/sglang-0.5.23-queueing.prom", "sglang", "sglang", "≥ 0.5.23", "tiny-qwen3"),
        (
            "public/sglang/sglang_v0.4_docs_overloaded.prom",
            "sglang",
            "sglang",
            "",
            "meta-llama/Llama-3.1-8B-Instruct",
        ),
        ("llama-cpp/metrics_queueing.txt", "llama.cpp", "llamacpp", "", ""),
    ],
)
def test_engine_and_version_come_from_the_text(name: str, engine: str, dialect: str, version: str, model: str) -> None:
    reading = recording(name)
    assert (reading.engine, reading.dialect, reading.version, reading.model) == (engine, dialect, version, model)


# What the recordings' READMEs say was true at that moment.
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("vllm/vllm-0.32.0-queueing.prom", {Q.RUNNING: 2, Q.WAITING: 10, Q.WAITING_CAPACITY: 10}),
        ("vllm/vllm-0.32.0-kv-nearly-full.prom", {Q.RUNNING: 2, Q.WAITING: 4, Q.KV_USAGE: 0.947, Q.PREEMPTIONS: 5}),
        ("vllm/vllm-0.32.0-kv-just-preempted.prom", {Q.PREEMPTIONS: 6, Q.KV_USAGE: 0.789, Q.WAITING: 3}),
        ("vllm/vllm-0.32.0-spec-decode-ngram.prom", {Q.DRAFTS: 204, Q.DRAFT_TOKENS: 608, Q.ACCEPTED_TOKENS: 596}),
        ("vllm/vllm-0.32.0-engine-dead-last-scrape.prom", {Q.RUNNING: 1, Q.KV_USAGE: 0.105, Q.FAILED: 0}),
        ("vllm/vllm-0.32.0-after-client-errors.prom", {Q.HTTP_REFUSED: 4, Q.RUNNING: 1}),
        ("sglang/sglang-0.5.23-queueing.prom", {Q.RUNNING: 2, Q.WAITING: 10, Q.KV_USAGE: 0.30}),
        ("sglang/sglang-0.5.23-queueing-on-kv-capacity.prom", {Q.RUNNING: 1, Q.WAITING: 4}),
        ("sglang/sglang-0.5.23-kv-just-retracted.prom", {Q.PREEMPTIONS: 1, Q.RUNNING: 1, Q.WAITING: 5}),
        ("sglang/sglang-0.5.23-after-aborts.prom", {Q.ABORTED: 10, Q.KV_USAGE: 0.24}),
        ("llama-cpp/metrics_queueing.txt", {Q.RUNNING: 2, Q.WAITING: 4}),
        ("public/sglang/sglang_v0.4_docs_overloaded.prom", {Q.RUNNING: 162, Q.WAITING: 2826}),
    ],
)
def test_recordings_say_what_was_true(name: str, values: dict[Q, float]) -> None:
    reading = recording(name)
    assert {q: reading.get(q) for q in values} == {q: pytest.approx(v, abs=0.005) for q, v in values.items()}


def test_finish_reasons_are_kept_apart_and_added_up() -> None:
    reading = recording("vllm/vllm-0.32.0-after-length-truncation.prom")
    assert {r: n for r, n in reading.finished.items() if n} == {"length": 16, "stop": 2}
    assert reading.get(Q.FINISHED) == 18


def test_saturated_top_bucket_is_at_least() -> None:
    """77 % of the first tokens lie above the top finite bucket (30 s) of this page."""
    ttft = recording("public/sglang/sglang_v0.4_docs_overloaded.prom").histograms[Q.TTFT]
    assert ttft.share_above_top() == pytest.approx(0.77, abs=0.01)
    interval = ttft.quantile(0.95)
    assert interval is not None
    assert (interval.low, interval.open_ended) == (30.0, True)


def test_a_counter_absent_until_first_use_is_absent_not_zero() -> None:
    reading = recording("sglang/sglang-0.5.23-idle-fresh.prom")
    assert reading.get(Q.PREEMPTIONS) == Absent(Missing.NOT_EXPORTED)
    assert reading.get(Q.ABORTED) == Absent(Missing.NOT_EXPORTED)


def test_created_series_are_timestamps_not_data() -> None:
    (reading,) = read(
        'vllm:generation_tokens_total{engine="0",model_name="m"} 5\n'
        'vllm:generation_tokens_created{engine="0",model_name="m"} 1.79e+09\n'
    )
    assert reading.get(Q.GENERATION_TOKENS) == 5


def test_old_and_new_name_together_count_once() -> None:
    (reading,) = read(
        'vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.4\n'
        'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5\n'
        'vllm:num_requests_running{engine="0",model_name="m"} 1\n'
    )
    assert reading.get(Q.KV_USAGE) == 0.5
    assert reading.names[Q.KV_USAGE] == "vllm:kv_cache_usage_perc"
    assert reading.version == "≥ 0.9.2, < 0.12.0"


def test_minus_one_and_nan_are_not_applicable() -> None:
    (reading,) = read(
        'vllm:num_requests_running{model_name="m"} 1\n'
        'vllm:gpu_prefix_cache_hit_rate{model_name="m"} -1.0\n'
        'vllm:gpu_cache_usage_perc{model_name="m"} NaN\n'
    )
    assert reading.dialect == "v0"
    assert reading.get(Q.HIT_RATE) == Absent(Missing.NOT_APPLICABLE)
    assert reading.get(Q.KV_USAGE) == Absent(Missing.NOT_APPLICABLE)


def test_data_parallel_engines_add_counts_and_take_the_fullest_cache() -> None:
    (reading,) = read(
        "".join(
            f'vllm:num_requests_running{{engine="{rank}",model_name="m"}} {running}\n'
            f'vllm:kv_cache_usage_perc{{engine="{rank}",model_name="m"}} {kv}\n'
            for rank, running, kv in (("0", 3, 0.2), ("1", 4, 0.9))
        )
    )
    assert (reading.get(Q.RUNNING), reading.get(Q.KV_USAGE)) == (7, 0.9)
    assert [(rank.label, rank.values[Q.RUNNING]) for rank in reading.ranks] == [("engine=0", 3), ("engine=1", 4)]


def test_processes_of_one_server_are_copies() -> None:
    (reading,) = read(
        'vllm:num_requests_running{engine="0",model_name="m"} 3\n'
        'vllm:kv_cache_usage_perc{engine="0",model_name="m",pid="7"} 0.2\n'
        'vllm:kv_cache_usage_perc{engine="0",model_name="m",pid="8"} 0.4\n'
    )
    assert reading.get(Q.KV_USAGE) == 0.4
    assert not reading.ranks


def test_sglang_priorities_are_parts_of_the_total() -> None:
    (reading,) = read(
        'sglang:num_queue_reqs{model_name="m",priority="",tp_rank="0"} 5\n'
        'sglang:num_queue_reqs{model_name="m",priority="1",tp_rank="0"} 2\n'
        'sglang:num_queue_reqs{model_name="m",priority="2",tp_rank="0"} 3\n'
        'sglang:num_running_reqs{model_name="m",tp_rank="0"} 4\n'
    )
    assert (reading.get(Q.WAITING), reading.get(Q.RUNNING)) == (5, 4)


def test_sglang_tensor_ranks_repeat_and_data_ranks_add() -> None:
    (reading,) = read(
        "".join(
            f'sglang:num_running_reqs{{model_name="m",tp_rank="{tp}",dp_rank="{dp}",engine_type="decode"}} {n}\n'
            for dp, n in (("0", 2), ("1", 5))
            for tp in "01"
        )
    )
    assert reading.get(Q.RUNNING) == 7
    assert [rank.label for rank in reading.ranks] == ["dp_rank=0", "dp_rank=1"]
    assert reading.role is Role.DECODE


def test_streaming_and_other_requests_are_one_histogram() -> None:
    reading = recording("sglang/sglang-0.5.23-queueing.prom")
    assert reading.histograms[Q.TTFT].count == sum(
        float(line.rsplit(" ", 1)[1])
        for line in (RECORDINGS / "sglang/sglang-0.5.23-queueing.prom").read_text().splitlines()
        if line.startswith("sglang:time_to_first_token_seconds_count")
    )


def test_adapter_counts_come_from_the_newest_info_series() -> None:
    (reading,) = read(
        'vllm:num_requests_running{engine="0",model_name="m"} 1\n'
        'vllm:lora_requests_info{max_lora="4",running_lora_adapters="a,b",waiting_lora_adapters="c"} 1.7e9\n'
        'vllm:lora_requests_info{max_lora="4",running_lora_adapters="a",waiting_lora_adapters=""} 1.6e9\n'
    )
    assert [reading.get(q) for q in (Q.ADAPTER_SLOTS, Q.ADAPTERS_RUNNING, Q.ADAPTERS_WAITING)] == [4, 2, 1]


def test_a_changed_shape_is_read_anew() -> None:
    """The plan is kept per shape: a series that appears later must not shift the others."""
    one = 'vllm:num_requests_running{engine="0",model_name="m"} 1\n'
    two = 'vllm:num_requests_waiting{engine="0",model_name="m"} 2\n'
    assert read(one + two)[0].get(Q.WAITING) == 2
    (reading,) = read(two + 'vllm:num_preemptions_total{engine="0",model_name="m"} 9\n' + one)
    assert [reading.get(q) for q in (Q.RUNNING, Q.WAITING, Q.PREEMPTIONS)] == [1, 2, 9]


def test_hostile_labels_are_cleaned() -> None:
    (reading,) = read('llamacpp:requests_processing 1\nllamacpp:requests_deferred{x="\x1b]0;t\x07"} 2\n')
    assert reading.get(Q.WAITING) == 2
    (reading,) = read('vllm:num_requests_running{engine="0",model_name="a\x1b[2J\u202eb"} 1\n')
    assert reading.model == "ab"


def test_dynamo_front_end_and_worker() -> None:
    page = (RECORDINGS / "dynamo/frontend_metrics_loaded.txt").read_text()
    front = next(reading for reading in read(page) if reading.model == "tiny")
    assert (front.role, front.get(Q.INFLIGHT), front.get(Q.SEQUENCE_LIMIT)) == (Role.FRONTEND, 24, 4)
    worker = recording("dynamo/worker_metrics_loaded.txt")
    assert (worker.engine, worker.get(Q.RUNNING), worker.get(Q.WAITING)) == ("vllm", 4, 20)


def test_tables_are_well_formed() -> None:
    for table in engine_tables():
        assert table.recognise.any, table.dialect
        for quantity, metric in table.metrics.items():
            assert metric.names, (table.dialect, quantity)


def test_renames_know_series_that_are_gone() -> None:
    renames = known_renames()
    assert renames["vllm:gpu_cache_usage_perc"].to == ("vllm:kv_cache_usage_perc",)
    assert renames["vllm:num_requests_swapped"].to == ()
