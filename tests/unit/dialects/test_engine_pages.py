"""Dialect tables on real recordings and on the quirks that the metrics reference lists."""

from pathlib import Path

import pytest

from tests.data import RECORDINGS
from triage.dialects.pages import read_page
from triage.dialects.series import PageIndex, Placed
from triage.dialects.table import engine_tables, known_renames, table_of
from triage.domain.absence import Absent, Missing
from triage.domain.quantity import Form, form_of
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


def test_a_router_that_repeats_its_engines_is_no_engine_and_counts_nothing_twice() -> None:
    """The production-stack router exports some of vLLM's names for each server; here both stand on one page."""
    own = 'vllm:num_requests_running{engine="0",model_name="m"} 7\n'
    repeated = 'vllm:num_requests_running{server="http://a"} 7\nvllm:current_qps{server="http://a"} 1\n'
    readings = {reading.engine: reading for reading in read(own + repeated)}
    assert readings["vllm"].get(Q.RUNNING) == 7
    assert readings["production-stack"].role is Role.FRONTEND
    assert [reading.engine for reading in read(repeated)] == ["production-stack"]
    (old,) = read('vllm:num_requests_running{model_name="m"} 2\nvllm:num_requests_running{server="http://a"} 2\n')
    assert (old.dialect, old.get(Q.RUNNING)) == ("v0", 2)


def test_a_label_that_a_scraper_adds_does_not_hide_an_engine() -> None:
    (reading,) = read('vllm:num_requests_running{engine="0",model_name="m",server="rack-4"} 7\n')
    assert reading.get(Q.RUNNING) == 7


def test_ray_counters_with_and_without_the_suffix_count_once() -> None:
    for suffixes in (("",), ("_total",), ("", "_total")):
        lines = "".join(f'ray_vllm_prompt_tokens{suffix}{{engine="0",model_name="m"}} 58\n' for suffix in suffixes)
        (reading,) = read(f'ray_vllm_num_requests_running{{engine="0",model_name="m"}} 1\n{lines}')
        assert (reading.get(Q.PROMPT_TOKENS), reading.via) == (58, "Ray Serve")


def test_units_that_are_not_the_canonical_ones() -> None:
    (sglang,) = read(
        'sglang:num_running_reqs{model_name="m"} 1\n'
        'sglang:fwd_occupancy{model_name="m"} 85\n'
        'sglang:kv_transfer_latency_ms_bucket{le="20",model_name="m"} 3\n'
        'sglang:kv_transfer_latency_ms_bucket{le="+Inf",model_name="m"} 4\n'
        'sglang:kv_transfer_latency_ms_sum{model_name="m"} 100\n'
        'sglang:kv_transfer_latency_ms_count{model_name="m"} 4\n'
    )
    assert sglang.get(Q.DEVICE_BUSY) == pytest.approx(0.85)
    transfer = sglang.histograms[Q.KV_TRANSFER_TIME]
    assert (transfer.edges, transfer.mean(1)) == ((0.02,), pytest.approx(0.025))
    # Microseconds, as two counters; models of the ensemble that are not the engine do not become replicas.
    (triton,) = read(
        'nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 2\n'
        'nv_trt_llm_general_metrics{general_type="iteration_counter",model="tensorrt_llm",version="1"} 900\n'
        'nv_inference_request_duration_us{model="tensorrt_llm",version="1"} 5000000\n'
        'nv_inference_request_success{model="tensorrt_llm",version="1"} 10\n'
        'nv_inference_request_duration_us{model="preprocessing",version="1"} 70\n'
        'nv_inference_request_success{model="preprocessing",version="1"} 10\n'
    )
    assert triton.histograms[Q.E2E].mean() == pytest.approx(0.5)
    assert triton.histograms[Q.E2E].quantile(0.5) is None
    assert (triton.model, triton.get(Q.ENGINE_STEPS), triton.get(Q.FINISHED)) == ("tensorrt_llm", 900, 10)


def test_queues_between_prefill_and_decode_add_up_and_sends_are_no_wait() -> None:
    (reading,) = read(
        'sglang:num_running_reqs{engine_type="prefill",model_name="m"} 0\n'
        'sglang:num_prefill_bootstrap_queue_reqs{engine_type="prefill",model_name="m"} 3\n'
        'sglang:num_prefill_inflight_queue_reqs{engine_type="prefill",model_name="m"} 5\n'
        'sglang:num_decode_transfer_queue_reqs{engine_type="prefill",model_name="m"} 4\n'
        'sglang:num_bootstrap_failed_reqs_total{engine_type="prefill",model_name="m"} 1\n'
        'sglang:num_transfer_failed_reqs_total{engine_type="prefill",model_name="m"} 2\n'
        'sglang:fwd_occupancy{engine_type="prefill",model_name="m"} -1\n'
    )
    assert reading.role is Role.PREFILL
    assert [reading.get(q) for q in (Q.HANDOFF_QUEUE, Q.HANDOFF_SENDING, Q.HANDOFF_FAILED)] == [7, 5, 3]
    assert reading.get(Q.DEVICE_BUSY) == Absent(Missing.NOT_APPLICABLE)


def test_gauges_that_an_idle_engine_does_not_rewrite_are_named() -> None:
    assert Q.KV_USAGE in recording("sglang/sglang-0.5.23-after-aborts.prom").lingering
    assert Q.RUNNING in recording("public/nvidia/triton_trtllm_readme.prom").lingering
    assert not recording("vllm/vllm-0.32.0-after-aborts.prom").lingering


def test_a_number_that_a_label_does_not_have_is_absent() -> None:
    (reading,) = read(
        'vllm:num_requests_running{engine="0",model_name="m"} 1\n'
        'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="None"} 1\n'
    )
    assert reading.get(Q.KV_BLOCK_TOKENS) == 16
    assert reading.get(Q.KV_BLOCKS) == reading.get(Q.KV_CAPACITY) == Absent(Missing.NOT_EXPORTED)


def test_an_older_trtllm_collector_and_nim_are_told_apart_by_a_name_or_a_label() -> None:
    def first_tokens(labels: str) -> str:
        return f"time_to_first_token_seconds_sum{labels} 4\ntime_to_first_token_seconds_count{labels} 8\n"

    bare = first_tokens('{engine_type="trtllm",model_name="m"}')
    nim = (
        first_tokens('{model_name="m"}')
        + 'num_request_max{model_name="m"} 64\nnum_requests_running{model_name="m"} 3\n'
    )
    assert [(r.engine, r.dialect) for r in read(bare)] == [("tensorrt-llm", "bare")]
    assert [(r.engine, r.dialect) for r in read(nim)] == [("nim", "nim")]
    # Names that any program may use say nothing by themselves.
    assert read(first_tokens('{model_name="m"}')) == []


def test_dotted_names_read_like_the_others() -> None:
    (reading,) = read(
        '{"gen_ai.server.time_to_first_token_seconds_sum","gen_ai.request.model"="m"} 4\n'
        '{"gen_ai.server.time_to_first_token_seconds_count","gen_ai.request.model"="m"} 8\n'
    )
    assert (reading.model, reading.histograms[Q.TTFT].mean()) == ("m", 0.5)
    (behind,) = read(
        'agentgateway_gen_ai_server_time_to_first_token_sum{gen_ai_request_model="m"} 4\n'
        'agentgateway_gen_ai_server_time_to_first_token_count{gen_ai_request_model="m"} 8\n'
    )
    assert (behind.via, behind.histograms[Q.TTFT].mean()) == ("agentgateway", 0.5)


def test_models_that_do_not_exist_are_no_replicas_of_a_front_end() -> None:
    page = (RECORDINGS / "dynamo/frontend_metrics_loaded.txt").read_text()
    assert "unknown_model" in page
    assert [reading.model for reading in read(page)] == ["tiny"]


def test_a_worker_around_several_engines_says_nothing_of_any() -> None:
    around = "dynamo_work_handler_queue_depth 9\n"
    engines = "".join(f'vllm:num_requests_running{{engine="0",model_name="{model}"}} 1\n' for model in "ab")
    assert [reading.get(Q.GATEWAY_QUEUE) for reading in read(around + engines)] == [
        Absent(Missing.NOT_EXPORTED),
        Absent(Missing.NOT_EXPORTED),
    ]


def test_the_engine_wins_over_the_worker_around_it() -> None:
    (reading,) = read(
        "dynamo_work_handler_queue_depth 9\ndynamo_component_gpu_cache_usage_percent 0.1\n"
        'vllm:num_requests_running{engine="0",model_name="m"} 1\n'
        'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.7\n'
    )
    assert (reading.get(Q.KV_USAGE), reading.get(Q.GATEWAY_QUEUE)) == (0.7, 9)
    assert reading.names[Q.KV_USAGE] == "vllm:kv_cache_usage_perc"


def test_tables_are_well_formed() -> None:
    for table in engine_tables():
        assert table.recognise.any, table.dialect
        for quantity, metric in table.metrics.items():
            assert metric.names, (table.dialect, quantity)
            assert not metric.count or form_of(quantity) is Form.HISTOGRAM
        assert (table.late | table.lingering) <= set(table.metrics), table.dialect
        family = {quantity for other in engine_tables() if other.engine == table.engine for quantity in other.metrics}
        for switch in table.switches:
            assert switch.instead or set(switch.quantities) <= family, (table.dialect, switch.flag)
        assert set(table.via) <= set(table.prefixes), table.dialect


def test_no_two_tables_have_one_name() -> None:
    names = [(table.engine, table.dialect) for table in engine_tables()]
    assert len(names) == len(set(names))
    assert table_of(*names[0]) is engine_tables()[0]


def test_renames_know_series_that_are_gone() -> None:
    renames = known_renames()
    assert renames["vllm:gpu_cache_usage_perc"].to == ("vllm:kv_cache_usage_perc",)
    assert renames["vllm:num_requests_swapped"].to == ()


def test_a_page_of_many_models_takes_time_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted instead of timed: every series may be looked at a fixed number of times, whatever the page."""
    looks = 0
    plain = PageIndex.series

    def counted(self: PageIndex, name: str) -> list[Placed]:
        nonlocal looks
        found = plain(self, name)
        looks += len(found)
        return found

    monkeypatch.setattr(PageIndex, "series", counted)

    def looked_at(models: int) -> float:
        nonlocal looks
        looks = 0
        text = "".join(f'vllm:num_requests_running{{engine="0",model_name="m{n}-{models}"}} 1\n' for n in range(models))
        assert len(read(text)) == models
        return looks / models

    assert looked_at(400) <= 1.1 * looked_at(50)


def test_names_made_to_match_many_tables_are_bounded() -> None:
    """One page with the names of every table: each engine is read, nothing is read twice, nothing is raised."""
    names = [name for table in engine_tables() for name in table.recognise.any]
    readings = read("".join(f"{name} 1\n" for name in names))
    assert len({(r.engine, r.dialect) for r in readings}) == len(readings)


def test_a_dialect_is_a_short_table() -> None:
    """The one that CONTRIBUTING shows is whole in fewer than 30 lines, and is what it shows."""
    root = Path(__file__).parents[3]
    shipped = (root / "triage/dialects/engines/nim.toml").read_text()
    assert len(shipped.splitlines()) < 30
    shown = (root / "CONTRIBUTING.md").read_text()
    block = shown.partition("```toml\n")[2].partition("```")[0]
    lines = [line.strip() for line in block.splitlines() if line.strip() and not line.strip().startswith("late")]
    assert len(lines) > 10
    assert all(line in shipped.splitlines() for line in lines)


def test_a_page_with_more_models_than_any_real_one_is_cut_and_says_so() -> None:
    text = "".join(f'vllm:num_requests_running{{engine="0",model_name="m{n}"}} {n}\n' for n in range(1200))
    page = read_page((text + "process_start_time_seconds 5\n").encode(), Target("a"), "page", None)
    assert len(page.engines) == 1000
    assert page.engines[999].get(Q.RUNNING) == 999
    # What names no model is every model's.
    assert page.engines[7].get(Q.PROCESS_START) == 5
    assert "1,200 models" in page.problems[0]


def test_series_of_all_models_are_left_out_before_they_take_minutes() -> None:
    models = "".join(f'vllm:num_requests_running{{engine="0",model_name="m{n}"}} 1\n' for n in range(200))
    routes = "".join(f'http_requests_total{{handler="{n}",status="2xx"}} 1\n' for n in range(600))
    page = read_page((models + routes).encode(), Target("a"), "page", None)
    assert len(page.engines) == 200
    assert page.engines[0].get(Q.HTTP_ANSWERED) == Absent(Missing.NOT_EXPORTED)
    assert "name no model" in page.problems[0]
