"""What the doctor says of pages, on recordings."""

import shutil

import pytest

from tests.data import RECORDINGS
from triage.cli.doctor import to_markdown, to_text
from triage.cli.doctor_report import Check, DoctorReport, Seen, hint_for, report_of
from triage.diagnosis.needs import lacks
from triage.dialects.pages import read_page
from triage.dialects.table import engine_tables
from triage.domain.target import Target, TargetState
from triage.domain.verdict import Kind
from triage.situation.folder import load_folder

PAGES = {
    "vllm": "vllm/vllm-0.32.0-queueing.prom",
    "sglang": "sglang/sglang-0.5.23-queueing.prom",
    "llama": "llama-cpp/metrics_queueing.txt",
    "worker": "dynamo/worker_metrics_loaded.txt",
    "bare": "samples/trtllm_bare.prom",
    "picker": "samples/endpoint_picker_gie.prom",
    "envoy": "envoy/stats_prometheus.txt",
    "device": "public/datadog/dcgm_exporter_t4.prom",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> DoctorReport:
    folder = tmp_path_factory.mktemp("pages")
    for name, recording in PAGES.items():
        shutil.copy(RECORDINGS / recording, folder / f"metrics-{name}-t0.prom")
    return report_of(load_folder(folder))


def check(report: DoctorReport, name: str) -> Check:
    return next(check for check in report.targets if check.name == name)


def seen(report: DoctorReport, name: str) -> Seen:
    (one,) = check(report, name).seen
    return one


def costs(one: Seen) -> dict[str, tuple[str, ...]]:
    return {verdict: cost.lacks for cost in one.costs for verdict in cost.verdicts}


def test_engine_version_and_dialect_are_told(report: DoctorReport) -> None:
    one = seen(report, "vllm")
    assert (one.engine, one.dialect, one.version, one.model) == ("vllm", "v1", "≥ 0.22.1", "tiny-qwen3")
    assert {"running", "waiting", "kv_usage", "ttft", "itl"} <= set(one.exported)
    assert not one.costs


def test_a_missing_quantity_names_its_verdicts_and_the_flag(report: DoctorReport) -> None:
    bare = seen(report, "bare")
    assert costs(bare)["queueing"] == ("waiting_capacity", "waiting")
    assert {"queueing", "load-imbalance", "engine-stalled"} <= {
        v for c in bare.costs if "running" in c.lacks for v in c.verdicts
    }
    (flag,) = [mend for mend in bare.mends if "running" in mend.quantities]
    assert "enable_iter_perf_stats: true" in flag.flag
    assert not flag.instead
    picker = seen(report, "picker")
    assert "queueing" in costs(picker)
    assert any("flow control" in mend.flag for mend in picker.mends)


def test_what_no_flag_brings_says_where_else_to_look(report: DoctorReport) -> None:
    llama = seen(report, "llama")
    assert costs(llama)["kv-pressure"]
    assert any(mend.instead and "kv_usage" in mend.quantities for mend in llama.mends)
    # Times of first tokens are read from other counters there: nothing is missing for slow-decode.
    assert "slow-decode" not in costs(llama)


def test_counters_that_move_at_the_end_cannot_show_a_stall(report: DoctorReport) -> None:
    page = read_page(
        b'trtllm_num_requests_running{model_name="m"} 1\ntrtllm_generation_tokens_total{model_name="m"} 9\n',
        Target("a"), "page", None,
    )  # fmt: skip
    assert Kind.ENGINE_STALLED in {lack.kind for lack in lacks(page.engines[0])}
    assert "generation_tokens" in seen(report, "sglang").late
    assert "engine-stalled" not in costs(seen(report, "sglang"))


def test_a_worker_is_told_with_what_is_around_it(report: DoctorReport) -> None:
    one = seen(report, "worker")
    assert (one.via, one.worker) == ("Dynamo worker", "3454d84ebd2328d0")
    assert "gateway_queue" in one.exported


def test_other_software_is_called_by_its_name(report: DoctorReport) -> None:
    envoy = check(report, "envoy")
    assert envoy.state is TargetState.NO_METRICS
    assert "Envoy" in envoy.says
    assert "other software" in envoy.hint
    assert check(report, "device").state is TargetState.OK


@pytest.mark.parametrize("width", [80, 60, 100])
def test_the_text_keeps_its_width(report: DoctorReport, width: int) -> None:
    lines = to_text(report, width).splitlines()
    assert all(len(line) <= width for line in lines if " " in line.strip())
    assert max(map(len, lines)) <= width


def test_markdown_names_the_same(report: DoctorReport) -> None:
    text = to_markdown(report)
    assert "enable_iter_perf_stats" in text
    assert text.count("\n- `") == len(PAGES)


def test_a_page_that_is_off_names_what_switches_it_on() -> None:
    hint = hint_for("404 not found: nothing at /metrics")
    assert all(flag in hint for flag in ("--enable-metrics", "--metrics", "DYN_SYSTEM_PORT"))
    assert hint_for("something new") == ""


def test_every_switch_of_a_table_reaches_the_report() -> None:
    """A switch whose quantities are all exported is not told; one that is missing is."""
    for table in engine_tables():
        for switch in table.switches:
            assert switch.flag
            assert len(switch.flag) < 100
