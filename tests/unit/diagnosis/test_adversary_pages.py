"""Pages that spell or split their series otherwise, up to the verdict."""

from pathlib import Path

import pytest

from triage.diagnosis.diagnose import diagnose
from triage.dialects.pages import read_page
from triage.domain.quantity import Quantity as Q
from triage.domain.target import Target
from triage.domain.verdict import Kind
from triage.situation.folder import load_folder

_VLLM = """\
{p}num_requests_running{{engine="0",model_name="m"}} 4
{p}num_requests_waiting{{engine="0",model_name="m"}} 2
{p}generation_tokens_total{{engine="0",model_name="m"}} 900
"""
_SGLANG = """\
{p}num_running_reqs{{model_name="m",tp_rank="0"}} 3
{p}num_running_reqs{{model_name="m",tp_rank="1"}} 3
{p}num_queue_reqs{{model_name="m",tp_rank="0"}} 1
{p}num_decode_prealloc_queue_reqs{{model_name="m",tp_rank="0"}} 20
{p}num_decode_prealloc_queue_reqs{{model_name="m",tp_rank="1"}} 20
{p}num_decode_transfer_queue_reqs{{model_name="m",tp_rank="0"}} 7
{p}num_prefill_inflight_queue_reqs{{model_name="m",tp_rank="0"}} 99
"""


def values(page: str) -> dict[Q, float]:
    engine = read_page(page.encode(), Target("x"), "x.prom", None).engines[0]
    return dict(engine.values)


def test_every_prefix_of_a_dialect_reads_alike() -> None:
    plain = values(_VLLM.format(p="vllm:"))
    assert plain[Q.RUNNING] == 4
    for prefix in ("ray_vllm_", "ray_vllm:"):
        assert values(_VLLM.format(p=prefix)) == plain
    assert values(_SGLANG.format(p="sglang_")) == values(_SGLANG.format(p="sglang:"))


def test_evidence_names_a_series_as_the_page_has_it() -> None:
    engine = read_page(_VLLM.format(p="ray_vllm_").encode(), Target("x"), "x.prom", None).engines[0]
    assert engine.names[Q.RUNNING] == "ray_vllm_num_requests_running"


def test_queues_between_the_roles_add_up_and_copies_do_not() -> None:
    """Two tensor-parallel ranks repeat the same queue; in-flight sends are work, not a wait."""
    assert values(_SGLANG.format(p="sglang:"))[Q.HANDOFF_QUEUE] == 27


def folder(tmp: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp / name.replace("__", ".").replace("_", "-")).write_text(text)
    return tmp


def test_a_page_of_another_program_is_not_a_missing_engine(tmp_path: Path) -> None:
    other = "lmdeploy:num_requests_waiting 40\nlmdeploy:num_requests_running 32\nprocess_cpu_seconds_total 9\n"
    case = load_folder(folder(tmp_path, metrics_t0__prom=other, metrics_t1__prom=other))
    assert diagnose(case).verdicts[0].kind is Kind.INSUFFICIENT_DATA


def test_one_target_with_two_broken_pages_is_one_target(tmp_path: Path) -> None:
    html = "<html><body>502 Bad Gateway</body></html>"
    verdict = diagnose(load_folder(folder(tmp_path, metrics_t0__prom=html, metrics_t1__prom=html))).verdicts[0]
    assert verdict.kind is Kind.METRICS_MISSING
    assert "2 of 2" not in verdict.summary


@pytest.mark.parametrize("value", ["+Inf", "-Inf", "NaN", "1e308"])
def test_numbers_that_no_engine_can_mean_are_no_numbers(tmp_path: Path, value: str) -> None:
    """They once overflowed a sum on the way to the verdict."""
    page = _VLLM.format(p="vllm:")
    hostile = "\n".join(line.rsplit(" ", 1)[0] + f" {value}" for line in page.strip().split("\n")) + "\n"
    assert Q.RUNNING not in values(hostile)
    assert diagnose(load_folder(folder(tmp_path, metrics_t0__prom=page, metrics_t1__prom=hostile))).verdicts
