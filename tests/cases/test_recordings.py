"""Real recordings, judged as the folders a person would make of them."""

import shutil
from pathlib import Path

import pytest

from tests.data import RECORDINGS
from triage.diagnosis.diagnose import diagnose
from triage.domain.verdict import Confidence, Kind, Verdict
from triage.situation.folder import load_folder


def first(folder: Path, **files: str) -> Verdict:
    for name, recording in files.items():
        stem = name.replace("_", "-")
        shutil.copy(RECORDINGS / recording, folder / f"{stem}{Path(recording).suffix}")
    return diagnose(load_folder(folder)).verdicts[0]


@pytest.mark.parametrize("engine", ["vllm/vllm-0.32.0", "sglang/sglang-0.5.23"])
def test_a_queue_that_has_just_begun(engine: str, tmp_path: Path) -> None:
    """Idle, then 2 running and 10 waiting 1.5 s after 12 streams were sent: one reading under load, so not for sure."""
    verdict = first(tmp_path, metrics_t0=f"{engine}-idle-fresh.prom", metrics_t1=f"{engine}-queueing.prom")
    assert verdict.kind is Kind.QUEUEING
    assert "one reading" in verdict.summary


def test_an_engine_whose_worker_was_killed(tmp_path: Path) -> None:
    verdict = first(
        tmp_path, metrics="vllm/vllm-0.32.0-engine-dead-last-scrape.prom", engine="vllm/vllm-0.32.0-engine-killed.log"
    )
    assert verdict.kind is Kind.ENGINE_DEAD


def test_the_client_side_of_that_death_is_a_second_witness(tmp_path: Path) -> None:
    verdict = first(
        tmp_path,
        metrics="vllm/vllm-0.32.0-engine-dead-last-scrape.prom",
        engine="vllm/vllm-0.32.0-engine-killed.log",
        stream="vllm/vllm-0.32.0-stream-engine-killed.sse",
    )
    assert verdict.kind is Kind.ENGINE_DEAD
    assert {item.family.value for item in verdict.evidence} == {"engine", "probe"}


def test_a_stopped_scheduler_is_told_by_the_front_end_that_goes_on(tmp_path: Path) -> None:
    """Its own gauges are from before it stopped: none running. No probe was sent."""
    stopped = "sglang/sglang-0.5.23-scheduler-stopped"
    verdict = first(tmp_path, metrics_t0=f"{stopped}-t0.prom", metrics_t1=f"{stopped}-t1.prom")
    assert (verdict.kind, verdict.confidence) == (Kind.ENGINE_STALLED, Confidence.LIKELY)
    assert "2 requests are inside" in verdict.summary
    assert "engine.no-cpu" in {item.id for item in verdict.evidence}


@pytest.mark.parametrize(
    ("engine", "before", "after"),
    [
        ("vllm/vllm-0.32.0", "kv-nearly-full", "kv-just-preempted"),
        ("sglang/sglang-0.5.23", "kv-nearly-full", "kv-just-retracted"),
    ],
)
def test_preemption_is_kv_pressure(engine: str, before: str, after: str, tmp_path: Path) -> None:
    verdict = first(tmp_path, metrics_t0=f"{engine}-{before}.prom", metrics_t1=f"{engine}-{after}.prom")
    assert (verdict.kind, verdict.detail) == (Kind.KV_PRESSURE, "preemption")


@pytest.mark.parametrize(
    ("engine", "idle"),
    [
        ("vllm/vllm-0.32.0", "after-aborts"),
        ("sglang/sglang-0.5.23", "after-aborts"),
        ("vllm/vllm-0.29.0", "after-load"),
    ],
)
def test_an_idle_engine_with_a_past_is_no_alarm(engine: str, idle: str, tmp_path: Path) -> None:
    """SGLang's KV gauge still says 0.24 here: a stale gauge of an idle engine is no pressure."""
    page = f"{engine}-{idle}.prom"
    assert first(tmp_path, metrics_t0=page, metrics_t1=page).kind in (Kind.HEALTHY, Kind.METRICS_FROZEN)
