"""Every page under tests/data/recordings is recognised, and says what its README says was true at that moment."""

import re
from typing import NamedTuple

import pytest

from tests.data import RECORDINGS
from triage.dialects.pages import read_page
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import EngineReading, PageReading, Role
from triage.domain.target import Target

VLLM, SGLANG = ("vllm", "v1"), ("sglang", "sglang")


class Says(NamedTuple):
    """One engine or front end on a page: what it is, and the numbers that the README states."""

    engine: tuple[str, str]
    values: dict[Q, float]
    role: Role = Role.MIXED
    via: str = ""


def vllm(**values: float) -> list[Says]:
    return [Says(VLLM, {Q(name): value for name, value in values.items()})]


def sglang(**values: float) -> list[Says]:
    return [Says(SGLANG, {Q(name): value for name, value in values.items()})]


def front(engine: str, dialect: str, **values: float) -> list[Says]:
    return [Says((engine, dialect), {Q(name): value for name, value in values.items()}, Role.FRONTEND)]


def dynamo(**values: float) -> list[Says]:
    return front("dynamo", "frontend", **values)


def worker(engine: tuple[str, str], **values: float) -> list[Says]:
    return [Says(engine, {Q(name): value for name, value in values.items()}, via="Dynamo worker")]


def one(engine: str, dialect: str, **values: float) -> list[Says]:
    return [Says((engine, dialect), {Q(name): value for name, value in values.items()})]


STATEMENTS: dict[str, list[Says]] = {
    "vllm/vllm-0.29.0-idle-fresh.prom": vllm(running=0, waiting=0, finished=0),
    "vllm/vllm-0.29.0-first-request-warmup.prom": vllm(running=0, waiting=0, generation_tokens=0),
    "vllm/vllm-0.29.0-after-load.prom": vllm(running=0, waiting=0, finished=12, generation_tokens=12 * 150),
    "vllm/vllm-0.32.0-idle-fresh.prom": vllm(running=0, waiting=0, kv_capacity=2560, kv_blocks=20, kv_block_tokens=128),
    "vllm/vllm-0.32.0-queueing.prom": vllm(running=2, waiting=10, waiting_capacity=10, waiting_deferred=0),
    "vllm/vllm-0.32.0-after-client-timeouts-in-queue.prom": vllm(running=0, waiting=0, finished=8, aborted=0),
    "vllm/vllm-0.32.0-after-aborts.prom": vllm(running=0, finished=8, aborted=0),
    "vllm/vllm-0.32.0-after-length-truncation.prom": vllm(running=0, finished=18, preemptions=1),
    "vllm/vllm-0.32.0-after-client-errors.prom": vllm(running=1, http_refused=4),
    "vllm/vllm-0.32.0-kv-nearly-full.prom": vllm(running=2, waiting=4, kv_usage=0.947, preemptions=5),
    "vllm/vllm-0.32.0-kv-just-preempted.prom": vllm(running=2, waiting=3, kv_usage=0.789, preemptions=6),
    "vllm/vllm-0.32.0-after-kv-pressure.prom": vllm(running=0, waiting=0, preemptions=8),
    "vllm/vllm-0.32.0-spec-decode-ngram.prom": vllm(drafts=204, draft_tokens=608, accepted_tokens=596),
    "vllm/vllm-0.32.0-engine-dead-last-scrape.prom": vllm(running=1, kv_usage=0.105, failed=0),
    "sglang/sglang-0.5.23-idle-fresh.prom": sglang(running=0, waiting=0),
    "sglang/sglang-0.5.23-queueing.prom": sglang(running=2, waiting=10, kv_usage=0.30, kv_capacity=2560),
    "sglang/sglang-0.5.23-after-client-timeouts-in-queue.prom": sglang(running=0, waiting=0, aborted=4),
    "sglang/sglang-0.5.23-after-length-truncation.prom": sglang(running=0, waiting=0),
    "sglang/sglang-0.5.23-after-client-errors.prom": sglang(running=0, waiting=0),
    "sglang/sglang-0.5.23-after-aborts.prom": sglang(running=0, aborted=10, kv_usage=0.24),
    "sglang/sglang-0.5.23-queueing-on-kv-capacity.prom": sglang(running=1, waiting=4),
    "sglang/sglang-0.5.23-scheduler-stopped-t0.prom": sglang(running=0, waiting=1, inflight=2, engine_cpu=206.73),
    "sglang/sglang-0.5.23-scheduler-stopped-t1.prom": sglang(running=0, waiting=1, inflight=2, engine_cpu=206.73),
    "sglang/sglang-0.5.23-kv-nearly-full.prom": sglang(running=2, waiting=4, kv_usage=0.91),
    "sglang/sglang-0.5.23-kv-just-retracted.prom": sglang(running=1, waiting=5, preemptions=1),
    "sglang/sglang-0.5.23-after-kv-pressure.prom": sglang(running=0, waiting=0),
    "llama-cpp/metrics_idle.txt": one("llama.cpp", "llamacpp", running=0, waiting=0),
    "llama-cpp/metrics_queueing.txt": one("llama.cpp", "llamacpp", running=2, waiting=4),
    "llama-cpp/metrics_after.txt": one("llama.cpp", "llamacpp", running=0, waiting=0),
    # Nothing has been asked of it: no series of requests yet, 4 sequences at most, 64 blocks of 16 tokens.
    "dynamo/frontend_metrics_idle.txt": dynamo(
        sequence_limit=4, kv_blocks=64, kv_block_tokens=16, context_limit=1024
    ),
    "dynamo/frontend_metrics_loaded.txt": dynamo(inflight=24, queued=20),
    "dynamo/frontend_metrics_loaded2.txt": dynamo(inflight=24, queued=20),
    "dynamo/frontend_metrics_loaded_sglang.txt": dynamo(inflight=12),
    "dynamo/frontend_metrics_loaded_trtllm.txt": dynamo(inflight=12),
    "dynamo/frontend_metrics_worker_killed_0s.txt": dynamo(inflight=0, queued=0),
    "dynamo/frontend_metrics_worker_killed_12s.txt": dynamo(inflight=0, queued=0),
    "dynamo/worker_metrics_idle.txt": worker(("dynamo", "worker"), inflight=0, gateway_queue=0),
    "dynamo/worker_metrics_loaded.txt": worker(
        VLLM, running=4, waiting=20, kv_usage=0.828, preemptions=0, inflight=24, gateway_queue=0
    ),
    # The preempted one waits again.
    "dynamo/worker_metrics_loaded2.txt": worker(VLLM, running=3, waiting=21, preemptions=1, inflight=24),
    "dynamo/worker_metrics_loaded_sglang.txt": worker(SGLANG, running=3, waiting=9, inflight=12),
    "dynamo/worker_metrics_loaded_trtllm.txt": worker(
        ("tensorrt-llm", "trtllm"), running=2, waiting=10, kv_usage=0.39, inflight=12
    ),
    "public/datadog/vllm_v0_2024-06.prom": one("vllm", "v0", finished=1),
    "public/datadog/ray_vllm_v0_ray2.32.prom": [
        Says(("vllm", "v0"), {Q.GENERATION_TOKENS: 300, Q.FINISHED: 1, Q.RUNNING: 0}, via="Ray Serve"),
        Says(("vllm", "v0"), {Q.PREEMPTIONS: 0}, via="Ray Serve"),
    ],
    "public/datadog/nvidia_nim_llm.prom": one(
        "nim", "nim", running=1, waiting=0, sequence_limit=64, finished=5, failed=0, generation_tokens=174
    ),
    "public/datadog/hugging_face_tgi_excerpt.prom": one(
        "tgi", "tgi", running=0, waiting=0, finished=109, failed=2, engine_steps=1525, prompt_tokens=662
    ),
    "public/datadog/dcgm_exporter_t4.prom": [],
    "public/sglang/sglang_v0.4_docs_overloaded.prom": sglang(running=162, waiting=2826),
    "public/nvidia/triton_trtllm_readme.prom": one(
        "tensorrt-llm", "triton", running=1, waiting=1, kv_usage=0.4875, kv_blocks=6239, sequence_limit=512
    ),
    "samples/trtllm_serve.prom": one(
        "tensorrt-llm", "trtllm",
        running=64, sequence_limit=64, prefilling=4, waiting=17, kv_usage=0.97, swapped=2, failed=3,
        kv_blocks=5000, kv_block_tokens=32, prefix_block_hits=400, prefix_block_misses=1200,
    ),
    "samples/trtllm_bare.prom": one("tensorrt-llm", "bare", finished=40),
    "samples/ray_serve_vllm_v1.prom": [
        Says(VLLM, {Q.RUNNING: 10, Q.WAITING: 5, Q.KV_USAGE: 0.9, Q.GENERATION_TOKENS: 1000}, via="Ray Serve")
    ],
    "samples/endpoint_picker_llm_d.prom": front(
        "llm-d", "endpoint-picker",
        inflight=40, gateway_queue=31, gateway_saturation=1.2, pool_waiting=2, ready_endpoints=3, picker_errors=9,
    ),
    "samples/endpoint_picker_gie.prom": front(
        "llm-d", "endpoint-picker", inflight=9, pool_waiting=3, pool_kv_usage=0.3, ready_endpoints=2, failed=4
    ),
    "samples/production_stack_router.prom": front(
        "production-stack", "router", inflight=12, queued=4, ready_endpoints=2, generation_tokens=4000
    ),
    "samples/sglang_gateway.prom": front(
        "sglang-router", "smg", inflight=24, gateway_queue=6, rejected=3, ready_endpoints=1
    ),
    "samples/gen_ai_envoy_ai_gateway.prom": front("gen-ai", "genai"),
    # No engine's page: told for what it is.
    "envoy/stats_prometheus.txt": [],
    "litellm/metrics_key.txt": [],
    "litellm/metrics_no_key.txt": [],
}  # fmt: skip
# The others are empty, or an engine's.
SOFTWARE = {"envoy/stats_prometheus.txt": "Envoy", "litellm/metrics_key.txt": "LiteLLM"}


def page(name: str) -> PageReading:
    return read_page((RECORDINGS / name).read_bytes(), Target("a"), name, None)


def engine(name: str) -> EngineReading:
    (reading,) = page(name).engines
    return reading


def expositions() -> set[str]:
    """Every recorded text with a TYPE line or a suffix that says so."""
    found = set()
    for path in RECORDINGS.rglob("*"):
        if path.is_file() and path.suffix in (".prom", ".txt"):
            text = path.read_text(errors="replace")
            if path.suffix == ".prom" or re.search(r"^# TYPE ", text, re.M) or "metrics" in path.name:
                found.add(path.relative_to(RECORDINGS).as_posix())
    return found


def test_every_exposition_has_its_statement() -> None:
    assert expositions() == set(STATEMENTS)


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_recognised_and_says_what_was_true(name: str) -> None:
    read, said = page(name), STATEMENTS[name]
    assert [((r.engine, r.dialect), r.role, r.via) for r in read.engines] == [(s.engine, s.role, s.via) for s in said]
    for reading, statement in zip(read.engines, said, strict=True):
        assert {q: reading.get(q) for q in statement.values} == {
            q: pytest.approx(value, abs=0.005) for q, value in statement.values.items()
        }
    assert read.software == SOFTWARE.get(name, "")


def test_clients_that_left_are_seen_by_their_first_token_alone() -> None:
    """4 streams closed by their client: 12 first tokens, 8 ends, no abort counted."""
    histograms = engine("vllm/vllm-0.32.0-after-aborts.prom").histograms
    assert (histograms[Q.TTFT].count, histograms[Q.E2E].count) == (12, 8)


def test_ray_replicas_are_kept_apart() -> None:
    ranks = engine("samples/ray_serve_vllm_v1.prom").ranks
    assert [rank.values[Q.WAITING] for rank in ranks] == [5, 0]
    assert len({rank.label for rank in ranks}) == 2


def test_a_queue_time_of_zero_is_not_in_the_bare_collector() -> None:
    """40 finished, 8 queue times: the mean of those that waited is no mean of all."""
    reading = engine("samples/trtllm_bare.prom")
    assert (reading.histograms[Q.QUEUE_TIME].count, reading.histograms[Q.E2E].count) == (8, 40)
    assert {Q.QUEUE_TIME, Q.TTFT} <= reading.late


def test_the_engines_behind_a_picker_are_kept_apart() -> None:
    reading = engine("samples/endpoint_picker_llm_d.prom")
    assert {rank.label: rank.values[Q.POOL_WAITING] for rank in reading.ranks} == {
        "model_server_endpoint=pod-a": 0,
        "model_server_endpoint=pod-b": 2,
    }
    assert reading.histograms[Q.GATEWAY_QUEUE_TIME].mean() == 5


def test_gen_ai_parts_are_not_added_to_their_wholes() -> None:
    reading = engine("samples/gen_ai_envoy_ai_gateway.prom")
    assert reading.histograms[Q.PROMPT_LENGTH].mean() == 500
    assert reading.histograms[Q.OUTPUT_LENGTH].mean() == 90
    assert reading.histograms[Q.TTFT].mean() == 0.5


def test_times_of_tgi_are_seconds_although_no_name_says_so() -> None:
    reading = engine("public/datadog/hugging_face_tgi_excerpt.prom")
    assert reading.histograms[Q.REQUEST_TPOT].mean() == pytest.approx(0.0793, abs=1e-4)
    assert reading.histograms[Q.INFERENCE_TIME].mean() == pytest.approx(2.256, abs=1e-3)


def test_a_dynamo_worker_is_found_under_the_name_that_its_front_end_gives_it() -> None:
    """The front end writes the worker's id in decimal, the worker in hexadecimal."""
    worker_page = engine("dynamo/worker_metrics_loaded.txt")
    front_page = (RECORDINGS / "dynamo/frontend_metrics_loaded.txt").read_text()
    assert f'worker_id="{int(worker_page.worker, 16)}"' in front_page
    assert worker_page.model == page("dynamo/frontend_metrics_loaded.txt").engines[0].model
