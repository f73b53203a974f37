"""Answers that are no engine's page: JSON, and pages of other software."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import RECORDINGS
from triage.dialects.foreign import software_of
from triage.dialects.json_page import drains, told_of_json
from triage.dialects.pages import read_page
from triage.domain.reading import PageReading
from triage.domain.target import Target


def read(body: bytes | str) -> PageReading:
    return read_page(body if isinstance(body, bytes) else body.encode(), Target("a"), "page", None)


@pytest.mark.parametrize("body", [b"[]", b"[]\n", (RECORDINGS / "samples/trtllm_iterations.json").read_bytes()])
def test_the_draining_route_is_told_with_the_one_to_use(body: bytes) -> None:
    assert drains(body)
    page = read(body)
    assert not page.engines
    assert not page.families
    assert "/prometheus/metrics" in page.problems[0]


def test_pretty_printed_statistics_are_told_too() -> None:
    body = json.dumps(json.loads((RECORDINGS / "samples/trtllm_iterations.json").read_bytes()), indent=2)
    assert "/prometheus/metrics" in read(body).problems[0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"models":[{"name":"qwen3","size":5,"size_vram":3}]}', "ps.json"),
        ('{"detail":"Not Found"}', "JSON"),
        ('[{"gpu": 1}]', "JSON"),
    ],
)
def test_other_json_is_called_json(body: str, words: str) -> None:
    assert not drains(body.encode())
    assert words in read(body).problems[0]


@given(
    st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: ("[" + text).encode("utf-8", "replace")))
)
def test_no_bytes_make_it_raise(body: bytes) -> None:
    assert isinstance(told_of_json(body), str)
    assert isinstance(drains(body), bool)


def test_deep_nesting_is_no_json() -> None:
    assert told_of_json(b"[" * 100_000) == ""


def test_a_quoted_name_is_no_json() -> None:
    page = read('{"vllm:num_requests_running","engine"="0","model_name"="m"} 3\n')
    assert page.engines[0].model == "m"


@pytest.mark.parametrize(
    ("names", "software"),
    [
        (("prometheus_tsdb_head_series", "prometheus_build_info", "go_goroutines"), "Prometheus"),
        (("alertmanager_alerts", "go_goroutines"), "Alertmanager"),
        (("nginx_ingress_controller_requests",), "ingress-nginx"),
        (("nginx_connections_active",), "nginx"),
        # VictoriaMetrics answers for itself although it scrapes engines.
        (("vm_rows", "vm_cache_entries", "prometheus_x"), "VictoriaMetrics"),
        (("nv_inference_request_success", "nv_gpu_utilization"), "Triton without the TensorRT-LLM backend"),
        (("python_gc_collections_total", "my_app_requests"), ""),
    ],
)
def test_the_software_is_told_by_its_names(names: tuple[str, ...], software: str) -> None:
    assert software_of(names) == software
    page = read("".join(f"{name} 1\n" for name in names))
    assert (page.engines, page.software) == ((), software)


def test_a_page_with_an_engine_or_a_device_is_theirs() -> None:
    assert read('envoy_x 1\nvllm:num_requests_running{engine="0",model_name="m"} 3\n').software == ""
    assert read('node_x 1\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 3\n').software == ""
