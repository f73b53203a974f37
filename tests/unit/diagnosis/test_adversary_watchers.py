"""Metrics that are missing, metrics of something else, and names that only look gone."""

import pytest

from tests.factory import serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.logs import LogEvent, LogKind, LogMark, LogReading
from triage.domain.reading import GpuReading
from triage.domain.situation import (
    DashboardQuery,
    GpuWindow,
    MonitoredTarget,
    QueriedMetric,
    Situation,
    TargetStatus,
)
from triage.domain.stream import ProbeReading
from triage.domain.target import Failure, FailureReason, Target, TargetState
from triage.domain.verdict import Confidence, Kind, Verdict
from triage.situation.facts import read_queries

REFUSED = 'Get "http://10.0.0.7:8000/metrics": dial tcp 10.0.0.7:8000: connect: connection refused'
TIMED_OUT = 'Get "http://10.0.0.7:8000/metrics": context deadline exceeded'


def first(case: Situation) -> Verdict:
    return diagnose(case).verdicts[0]


def answered(target: str) -> ProbeReading:
    return ProbeReading("probes.json", target, "POST", "/v1/completions", 200, 0.4, 0.3, 8)


def down(error: str, url: str = "http://10.0.0.7:8000/metrics") -> MonitoredTarget:
    return MonitoredTarget("targets.json", "llm", url, "down", error)


UP = MonitoredTarget("targets.json", "llm", "http://10.0.0.8:8000/metrics", "up")


# ---- targets that monitoring calls down


@pytest.mark.parametrize("error", ["server returned HTTP status 500 Internal Server Error", "expected a start token"])
def test_a_route_that_answers_without_metrics_is_missing_metrics(error: str) -> None:
    verdict = first(situation(monitored=(down(error), UP), probes=(answered("gateway"),)))
    assert (verdict.kind, verdict.confidence) == (Kind.METRICS_MISSING, Confidence.CONFIRMED)


@pytest.mark.parametrize("error", [REFUSED, TIMED_OUT, "", "server returned HTTP status 503 Service Unavailable"])
@pytest.mark.parametrize(("others", "asked"), [((UP,), "engine"), ((), "gateway")])
def test_a_target_that_does_not_answer_may_be_dead_whoever_gave_the_answer(
    error: str, others: tuple[MonitoredTarget, ...], asked: str
) -> None:
    case = situation(monitored=(down(error), *others), probes=(answered(asked),))
    assert first(case).kind is Kind.INSUFFICIENT_DATA
    assert "10.0.0.7" in first(case).summary


def test_the_only_target_that_itself_answers_a_request_lacks_only_its_metrics() -> None:
    verdict = first(situation(monitored=(down(REFUSED),), probes=(answered("engine"),)))
    assert (verdict.kind, verdict.confidence) == (Kind.METRICS_MISSING, Confidence.LIKELY)


def test_a_dead_engine_explains_its_dark_target() -> None:
    event = LogEvent(LogMark.FATAL, 40, "EngineCore encountered a fatal error")
    log = LogReading("engine.log", "default", LogKind.ENGINE, "vllm", 50, (event,), {LogMark.FATAL: 1})
    case = situation(monitored=(down(REFUSED),), logs=(log,), probes=(answered("gateway"),))
    assert first(case).kind is Kind.ENGINE_DEAD


def test_a_fleet_with_a_target_down_is_not_healthy() -> None:
    case = situation(serving(), monitored=(down(REFUSED), UP), probes=(answered("gateway"),))
    assert all(verdict.kind is not Kind.HEALTHY for verdict in diagnose(case).verdicts)


# ---- pages of other software


def page(*families: str) -> TargetStatus:
    failure = Failure(FailureReason.NOT_METRICS, "no engine series on it")
    return TargetStatus(Target("x"), TargetState.NO_METRICS, failure, families=frozenset(families))


def test_a_page_with_nothing_but_its_runtime_is_missing_metrics() -> None:
    bare = page("python_info", "process_cpu_seconds_total", "process_cpu_seconds", "http_requests_total")
    verdict = first(situation(targets=(bare,), probes=(answered("engine"),)))
    assert verdict.kind is Kind.METRICS_MISSING


@pytest.mark.parametrize(
    "family", ["tgi_queue_size", "nv_trt_llm_request_metrics", "inference_pool_ready_pods", "litellm_requests_metric"]
)
def test_a_page_of_other_software_is_unread_not_missing(family: str) -> None:
    case = situation(targets=(page("process_cpu_seconds_total", family),), probes=(answered("engine"),))
    assert first(case).kind is Kind.INSUFFICIENT_DATA


# ---- names


def test_a_query_that_still_returns_series_is_not_stale() -> None:
    metric = QueriedMetric("sglang_num_running_reqs", False, ("sglang:num_running_reqs",))
    recorded = DashboardQuery("queries.json", "sglang_num_running_reqs", (metric,), empty=False)
    assert first(situation(serving(), queries=(recorded,))).kind is Kind.HEALTHY
    silent = DashboardQuery("queries.json", "sglang_num_running_reqs", (metric,), empty=True)
    verdict = first(situation(serving(), queries=(silent,)))
    assert (verdict.kind, verdict.confidence) == (Kind.METRICS_RENAMED, Confidence.CONFIRMED)
    assert "which the page calls sglang:num_running_reqs" in verdict.summary


@pytest.mark.parametrize(
    ("asked", "exported"),
    [
        ("sglang_num_running_reqs", "sglang:num_running_reqs"),
        ("sglang:num_running_reqs", "sglang_num_running_reqs"),
        ("rate(vllm_prompt_tokens_total[1m])", "vllm:prompt_tokens_total"),
    ],
)
def test_a_name_with_another_separator_is_the_same_name(asked: str, exported: str) -> None:
    metric = read_queries([asked], "queries.json", frozenset({exported}))[0].metrics[0]
    assert metric.renamed_to == (exported,)
    assert read_queries(["sum(my_own_total)"], "queries.json", frozenset({exported}))[0].metrics[0].renamed_to == ()


@pytest.mark.parametrize(
    ("line", "missing"),
    [("Not collecting DCP metrics: feature not supported", True), ("Failed to collect metrics: timeout", False)],
)
def test_an_exporter_without_profiling_fields_is_judged_by_what_its_log_complains_of(line: str, missing: bool) -> None:
    event = LogEvent(LogMark.COLLECTION_ERROR, 4, line)
    log = LogReading("exporter.log", "n", LogKind.EXPORTER, "", 9, (event,), {LogMark.COLLECTION_ERROR: 1})
    device = GpuReading("n", "dcgm.prom", None, "n", "0", "u", "", {"DEV_GPU_UTIL": 50.0})
    case = situation(gpus=(GpuWindow(device, device),), logs=(log,))
    assert (first(case).kind is Kind.METRICS_MISSING) is missing


def test_a_page_under_other_names_is_told_as_renamed_and_not_as_missing() -> None:
    said = "vllm's num_requests_running is platform_llm_num_requests_running"
    status = TargetStatus(
        Target("a"), TargetState.NO_METRICS, families=frozenset({"platform_llm_num_requests_running"}), relabelled=said
    )
    verdicts = diagnose(situation(targets=(status,))).verdicts
    assert next((v.kind, v.detail, v.confidence) for v in verdicts) == (
        Kind.METRICS_RENAMED,
        "relabelled",
        Confidence.LIKELY,
    )
    assert Kind.METRICS_MISSING not in {v.kind for v in verdicts}
    assert said in verdicts[0].summary
