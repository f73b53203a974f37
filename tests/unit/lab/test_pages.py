"""Both pages against the recordings of the real engines, and when their series move."""

from collections.abc import Callable

import pytest

from triage.lab.incidents import HEALTHY, INCIDENTS, REPLICAS, Flavour, Incident, ReplicaSpec, incident_named
from triage.lab.replica import Replica
from triage.lab.workload import Request

BY_FLAVOUR = {spec.flavour: spec for spec in REPLICAS if spec.steady is None}
RECORDED = {
    Flavour.VLLM: "vllm/vllm-0.32.0-queueing.prom",
    Flavour.SGLANG: "sglang/sglang-0.5.23-queueing.prom",
}
FLAVOURS = pytest.mark.parametrize("flavour", list(Flavour))
AT_FINISH = ("e2e_request_latency", "request_queue_time", "request_inference_time", "request_prefill_time")


def busy(flavour: Flavour, incident: Incident = HEALTHY, seconds: float = 60.0) -> Replica:
    replica = Replica(BY_FLAVOUR[flavour], incident, seed=3)
    replica.advance(seconds)
    return replica


@FLAVOURS
def test_families_types_edges_and_labels_are_those_of_the_real_engine(
    flavour: Flavour, parse_page: Callable, recording: Callable
) -> None:
    real = recording(RECORDED[flavour])
    ours = parse_page(busy(flavour).metrics.page(1.7e9))
    assert ours.keys() <= real.keys()
    for name, family in ours.items():
        assert family.kind == real[name].kind, name
        assert family.edges == real[name].edges, name

        def shape(samples: dict) -> set:
            return {(sample, frozenset(label for label, _ in where)) for sample, where in samples}

        if name != "vllm:cache_config_info":  # any subset of its thirty labels will do
            assert shape(family.samples) <= shape(real[name].samples), name
        for (_, where), value in family.samples.items():
            # values of enumerated labels: reason, source, mode, engine, ranks ...
            fixed = {pair for pair in where if pair[0] not in ("model_name", "pid", "is_streaming", "le")}
            assert name == "vllm:cache_config_info" or any(fixed <= there for _, there in real[name].samples), name
            assert isinstance(value, float)


def test_the_vllm_page_has_every_vllm_family_but_the_optional_estimates(
    parse_page: Callable, recording: Callable
) -> None:
    real = {name for name in recording(RECORDED[Flavour.VLLM]) if name.startswith("vllm:")}
    ours = parse_page(busy(Flavour.VLLM).metrics.page(1.7e9)).keys()
    missing = real - ours
    assert missing == {name for name in missing if name.startswith("vllm:estimated_")}


def test_a_fresh_page_has_what_the_fresh_recording_has(parse_page: Callable, recording: Callable) -> None:
    """Counters at zero on vLLM's page; on SGLang's they do not exist before their first use."""
    vllm = parse_page(Replica(BY_FLAVOUR[Flavour.VLLM], HEALTHY, seed=3).metrics.page(1.7e9))
    assert vllm["vllm:request_success"].samples
    assert not any(value for (name, _), value in vllm["vllm:generation_tokens"].samples.items() if "total" in name)
    fresh = parse_page(Replica(BY_FLAVOUR[Flavour.SGLANG], HEALTHY, seed=3).metrics.page(1.7e9))
    assert fresh.keys() <= recording("sglang/sglang-0.5.23-idle-fresh.prom").keys()
    for name in ("num_requests", "generation_tokens", "time_to_first_token_seconds", "num_aborted_requests"):
        assert f"sglang:{name}" not in fresh


def test_process_start_and_births_stand_on_the_page_of_a_single_process_only(parse_page: Callable) -> None:
    vllm = parse_page(busy(Flavour.VLLM).metrics.page(1_700_000_000.25))
    assert list(vllm["process_start_time_seconds"].samples.values()) == [1_700_000_000.25]
    assert set(vllm["vllm:time_to_first_token_seconds_created"].samples.values()) == {1_700_000_000.25}
    sglang = parse_page(busy(Flavour.SGLANG).metrics.page(1_700_000_000.25))
    assert not [name for name in sglang if name.startswith("process_") or name.endswith("_created")]


@FLAVOURS
@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda one: one.name)
def test_counters_never_fall_and_buckets_are_cumulative(
    flavour: Flavour, incident: Incident, parse_page: Callable
) -> None:
    replica = Replica(BY_FLAVOUR[flavour], HEALTHY, seed=3)
    before: dict = {}
    for round_ in range(12):
        if round_ == 6:
            replica.apply(incident)
        replica.advance(replica.now + 7.3)
        now = {}
        for name, family in parse_page(replica.metrics.page(1.7e9)).items():
            if family.kind in ("counter", "histogram"):
                now |= {(name, *key): value for key, value in family.samples.items()}
            if family.kind == "histogram":
                series: dict = {}
                for (sample, where), value in family.samples.items():
                    rest = frozenset(pair for pair in where if pair[0] != "le")
                    series.setdefault(rest, {})[sample.removeprefix(name), dict(where).get("le")] = value
                for one in series.values():
                    buckets = [value for (suffix, _), value in one.items() if suffix == "_bucket"]
                    assert buckets == sorted(buckets), name
                    assert buckets[-1] == one["_count", None], name
        assert before.keys() <= now.keys()
        assert all(now[key] >= value for key, value in before.items())
        before = now


@FLAVOURS
def test_the_same_seed_gives_the_same_page_however_time_is_cut(flavour: Flavour) -> None:
    whole = Replica(BY_FLAVOUR[flavour], incident_named("queueing"), seed=3)
    pieces = Replica(BY_FLAVOUR[flavour], incident_named("queueing"), seed=3)
    other = Replica(BY_FLAVOUR[flavour], incident_named("queueing"), seed=4)
    whole.advance(30.0)
    other.advance(30.0)
    for tick in range(3000):
        pieces.advance(tick / 100)
    pieces.advance(30.0)
    assert whole.metrics.page(1.7e9) == pieces.metrics.page(1.7e9)
    assert whole.metrics.page(1.7e9) != other.metrics.page(1.7e9)


def idle_replica(spec: ReplicaSpec, quiet: Incident) -> Replica:
    return Replica(spec, quiet, seed=1)


def ask(output: int, streaming: bool = True) -> Request:
    return Request(prompt_tokens=32, reasoning_tokens=0, visible_tokens=output, max_tokens=output, streaming=streaming)


def test_vllm_writes_phases_at_finish_and_tokens_at_once(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, parse_page: Callable, add_up: Callable
) -> None:
    replica = idle_replica(spec(), nothing_wrong)
    replica.engine.submit(ask(output=200), at=0.0)
    replica.advance(1.0)
    open_ = parse_page(replica.metrics.page(1.7e9))
    assert add_up(open_, "vllm:num_requests_running") == 1
    assert add_up(open_, "vllm:time_to_first_token_seconds_count") == 1
    assert add_up(open_, "vllm:inter_token_latency_seconds_count") > 50
    assert add_up(open_, "vllm:generation_tokens_total") > 50
    assert add_up(open_, "vllm:prompt_tokens_total") == 32
    for name in AT_FINISH:
        assert add_up(open_, f"vllm:{name}_seconds_count") == 0
    replica.advance(10.0)
    done = parse_page(replica.metrics.page(1.7e9))
    for name in AT_FINISH:
        assert add_up(done, f"vllm:{name}_seconds_count") == 1
    assert add_up(done, "vllm:request_success_total", finished_reason="stop") == 1
    assert add_up(done, "vllm:generation_tokens_total") == 200
    assert add_up(done, "vllm:request_generation_tokens_sum") == 200
    assert add_up(done, "vllm:inter_token_latency_seconds_count") == 199
    assert add_up(done, "vllm:kv_cache_usage_perc") == add_up(done, "vllm:num_requests_running") == 0
    # queue + prefill + decode is the whole of it when the front end takes no time
    phases = [add_up(done, f"vllm:request_{one}_time_seconds_sum") for one in ("queue", "prefill", "decode")]
    assert sum(phases) == pytest.approx(add_up(done, "vllm:e2e_request_latency_seconds_sum"))
    steps = add_up(done, "vllm:iteration_tokens_total_sum")
    assert steps == 200 + 32


def test_a_vllm_abort_leaves_no_trace(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, parse_page: Callable, add_up: Callable
) -> None:
    replica = idle_replica(spec(), nothing_wrong)
    sequence = replica.engine.submit(ask(output=200), at=0.0)
    replica.advance(1.0)
    replica.engine.abort(sequence)
    replica.advance(2.0)
    page = parse_page(replica.metrics.page(1.7e9))
    assert add_up(page, "vllm:request_success_total") == 0
    assert add_up(page, "vllm:e2e_request_latency_seconds_count") == 0
    assert add_up(page, "vllm:time_to_first_token_seconds_count") == 1


def test_vllm_reports_the_reason_length(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, parse_page: Callable, add_up: Callable
) -> None:
    replica = idle_replica(spec(), nothing_wrong)
    request = Request(prompt_tokens=32, reasoning_tokens=40, visible_tokens=10, max_tokens=8)
    replica.engine.submit(request, at=0.0)
    replica.advance(5.0)
    page = parse_page(replica.metrics.page(1.7e9))
    assert add_up(page, "vllm:request_success_total", finished_reason="length") == 1
    assert add_up(page, "vllm:generation_tokens_total") == 8


def test_sglang_counts_finished_requests_late_and_live_tokens_every_forty_iterations(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, parse_page: Callable, add_up: Callable
) -> None:
    replica = idle_replica(spec(Flavour.SGLANG, block_size=1, num_blocks=16384), nothing_wrong)
    replica.engine.submit(ask(output=101), at=0.0)
    live, kv = set(), set()
    for tick in range(100):
        replica.advance(tick / 100)  # 11 ms a token: still running at 1 s
        page = parse_page(replica.metrics.page(1.7e9))
        live.add(add_up(page, "sglang:realtime_tokens_total", mode="decode"))
        kv.add(add_up(page, "sglang:num_used_tokens"))
        assert "sglang:generation_tokens" not in page
        assert "sglang:num_requests" not in page
    assert live == {0, 40, 80}
    assert kv == {0, 33, 73, 113}  # after the prefill batch and two decode reports
    replica.advance(5.0)
    done = parse_page(replica.metrics.page(1.7e9))
    assert add_up(done, "sglang:generation_tokens_total", is_streaming="true") == 101
    assert add_up(done, "sglang:num_requests_total", is_streaming="true") == 1
    assert add_up(done, "sglang:num_running_reqs") == add_up(done, "sglang:token_usage") == 0
    assert add_up(done, "sglang:inter_token_latency_seconds_count") == 100


def test_a_sglang_prefill_report_leaves_out_the_requests_it_brings_in(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, parse_page: Callable, add_up: Callable
) -> None:
    replica = idle_replica(spec(Flavour.SGLANG, max_batched_tokens=256), nothing_wrong)
    replica.engine.submit(ask(output=500), at=0.0)
    replica.advance(0.1)
    for _ in range(2):
        replica.engine.submit(ask(output=500), at=0.1)
    replica.advance(0.2)
    page = parse_page(replica.metrics.page(1.7e9))
    assert add_up(page, "sglang:num_running_reqs") == 1
    replica.advance(2.0)
    page = parse_page(replica.metrics.page(1.7e9))
    assert add_up(page, "sglang:num_running_reqs") == 3
    assert add_up(page, "sglang:gen_throughput") == pytest.approx(3 / 0.013, rel=0.01)


def test_sglang_counts_aborts_and_writes_queue_time_when_scheduled(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, parse_page: Callable, add_up: Callable
) -> None:
    replica = idle_replica(spec(Flavour.SGLANG, max_num_seqs=1), nothing_wrong)
    first, second = [replica.engine.submit(ask(output=100), at=0.0) for _ in range(2)]
    replica.advance(0.5)
    assert add_up(parse_page(replica.metrics.page(1.7e9)), "sglang:queue_time_seconds_count") == 1
    replica.engine.abort(first)
    replica.advance(0.6)
    page = parse_page(replica.metrics.page(1.7e9))
    assert add_up(page, "sglang:num_aborted_requests_total") == 1
    assert add_up(page, "sglang:queue_time_seconds_count") == 2
    assert add_up(page, "sglang:queue_time_seconds_sum") == pytest.approx(second.scheduled)


@pytest.mark.parametrize("output", [20, 200])
def test_sglang_hides_the_first_token_of_a_whole_answer_for_fifty_tokens(
    spec: Callable[..., ReplicaSpec], nothing_wrong: Incident, parse_page: Callable, add_up: Callable, output: int
) -> None:
    replica = idle_replica(spec(Flavour.SGLANG), nothing_wrong)
    sequence = replica.engine.submit(ask(output=output, streaming=False), at=0.0)
    replica.advance(10.0)
    page = parse_page(replica.metrics.page(1.7e9))
    seen = add_up(page, "sglang:time_to_first_token_seconds_sum", is_streaming="false")
    assert seen == pytest.approx(sequence.first_token + (min(output, 50) - 1) * 0.011)
    assert add_up(page, "sglang:time_to_first_token_seconds_count", is_streaming="true") == 0
