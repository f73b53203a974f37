"""Answers of a Prometheus in an evidence folder: alerts, rules, targets, and series that become readings."""

import json
import shutil
from pathlib import Path

import pytest

from tests.data import RECORDINGS
from tests.unit.dialects.prometheus.test_samples import POD, scraped
from triage.diagnosis.diagnose import diagnose
from triage.domain.quantity import Quantity as Q
from triage.domain.situation import Situation
from triage.domain.verdict import Confidence, Kind
from triage.report.document import document, to_json
from triage.report.others import others_say
from triage.report.plain import to_markdown, to_text
from triage.situation.folder import load_folder

PROM = RECORDINGS / "prometheus"
# Work inside and steps moving: healthy.
PAGE = """vllm:num_requests_running{{engine="0",model_name="m"}} 4
vllm:num_requests_waiting{{engine="0",model_name="m"}} 0
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.2
vllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}
vllm:inter_token_latency_seconds_bucket{{engine="0",model_name="m",le="0.05"}} {tokens}
vllm:inter_token_latency_seconds_bucket{{engine="0",model_name="m",le="+Inf"}} {tokens}
vllm:inter_token_latency_seconds_sum{{engine="0",model_name="m"}} {seconds}
vllm:inter_token_latency_seconds_count{{engine="0",model_name="m"}} {tokens}
vllm:time_to_first_token_seconds_bucket{{engine="0",model_name="m",le="0.5"}} {requests}
vllm:time_to_first_token_seconds_bucket{{engine="0",model_name="m",le="+Inf"}} {requests}
vllm:time_to_first_token_seconds_sum{{engine="0",model_name="m"}} {first}
vllm:time_to_first_token_seconds_count{{engine="0",model_name="m"}} {requests}
"""


def page(n: int) -> str:
    return PAGE.format(tokens=1000 + 900 * n, seconds=20 + 18 * n, requests=100 + 30 * n, first=20 + 6 * n)


def answer(series: list[dict[str, object]]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


def healthy(folder: Path) -> None:
    for n in range(2):
        (folder / f"metrics-t{n}.prom").write_text(page(n))


def loaded(folder: Path) -> Situation:
    return load_folder(folder)


def test_a_firing_alert_is_told_lowers_calm_and_decides_nothing(tmp_path: Path) -> None:
    healthy(tmp_path)
    calm = diagnose(loaded(tmp_path)).verdicts[0]
    assert (calm.kind, calm.confidence) == (Kind.HEALTHY, Confidence.LIKELY)
    shutil.copy(PROM / "1_steady_alerts.json", tmp_path / "alerts.json")
    shutil.copy(PROM / "1_rules.json", tmp_path / "rules.json")
    situation = loaded(tmp_path)
    assert sorted({alert.name for alert in situation.alerts if alert.state == "firing"})[:1] == ["EngineQueueing"]
    assert len(situation.alerts) == len({(a.name, a.labels) for a in situation.alerts}), "the list and the rules agree"
    diagnosis = diagnose(situation)
    verdict = diagnosis.verdicts[0]
    assert (verdict.kind, verdict.confidence) == (Kind.HEALTHY, Confidence.POSSIBLE)
    assert "nothing that was read agrees with the firing alert" in verdict.summary
    for report in (to_text(situation, diagnosis), to_markdown(situation, diagnosis)):
        assert "alert EngineQueueing is firing" in " ".join(report.split())
        assert "tiny has 12 waiting" in report
    listed = json.loads(to_json(situation, diagnosis))["alerts"]
    assert listed[0]["expression"].startswith("lab_requests_waiting")


def test_pending_alerts_do_not_disturb(tmp_path: Path) -> None:
    healthy(tmp_path)
    (tmp_path / "alerts.json").write_text('{"alerts": [{"labels": {"alertname": "A"}, "state": "pending"}]}')
    assert diagnose(loaded(tmp_path)).verdicts[0].confidence is Confidence.LIKELY


def test_scrape_targets_are_counted_in_one_line(tmp_path: Path) -> None:
    shutil.copy(PROM / "1_steady_targets.json", tmp_path / "targets.json")
    (line,) = others_say(loaded(tmp_path))
    assert line.startswith("targets.json: ")
    assert "down" in line
    assert "unknown" in line


def test_a_storm_of_alerts_stays_short(tmp_path: Path) -> None:
    alerts = [{"labels": {"alertname": f"A{n % 40}", "pod": f"p{n}"}, "state": "firing"} for n in range(2000)]
    (tmp_path / "alerts.json").write_text(json.dumps({"alerts": alerts}))
    lines = others_say(loaded(tmp_path))
    assert len(lines) == 9
    assert lines[-1] == "32 more kinds of alert"


def test_saved_ranges_become_scrapes(tmp_path: Path) -> None:
    series: dict[str, dict[str, object]] = {}
    for n in range(3):
        for entry in scraped(page(n), POD, 1000.0 + 15 * n):
            key = json.dumps(entry["metric"], sort_keys=True)
            series.setdefault(key, {"metric": entry["metric"], "values": []})["values"] += entry["values"]  # type: ignore[operator]
    every = list(series.values())
    (tmp_path / "query_range-gauges.json").write_text(answer(every[:3]))
    (tmp_path / "query-rest.json").write_text(answer(every[3:]))
    situation = loaded(tmp_path)
    (one,) = situation.replicas
    assert (one.target.name, one.model, one.window.readings, one.window.seconds) == ("p-0", "m", 3, 30.0)
    assert one.window.deltas[Q.GENERATION_TOKENS] == 1800
    assert diagnose(situation).verdicts[0].kind is Kind.HEALTHY
    assert document(situation, diagnose(situation)).targets[0].readings["running"] == 4


def test_saved_instant_answers_are_one_look(tmp_path: Path) -> None:
    entries = [
        {"metric": entry["metric"], "value": [1000.0 + n, entry["values"][0][1]]}
        for n, entry in enumerate(scraped(page(0), POD, 0.0))
    ]
    for n, entry in enumerate(entries):
        data = {"status": "success", "data": {"resultType": "vector", "result": [entry]}}
        (tmp_path / f"query{n}.json").write_text(json.dumps(data))
    (one,) = loaded(tmp_path).replicas
    assert (one.window.readings, one.window.last.values[Q.RUNNING]) == (1, 4.0)


@pytest.mark.parametrize("name", ["1_steady_query_running", "2_raw_counter_around_reset"])
def test_series_of_no_engine_are_something_unread(tmp_path: Path, name: str) -> None:
    healthy(tmp_path)
    shutil.copy(PROM / f"{name}.json", tmp_path / "query.json")
    situation = loaded(tmp_path)
    assert [seen.why for seen in situation.not_seen if seen.expected] == ["no series of a known engine in it"]
    assert diagnose(situation).verdicts[0].kind is Kind.INSUFFICIENT_DATA


def test_an_empty_answer_hides_nothing(tmp_path: Path) -> None:
    healthy(tmp_path)
    shutil.copy(PROM / "1_unknown_metric.json", tmp_path / "query.json")
    assert diagnose(loaded(tmp_path)).verdicts[0].confidence is Confidence.LIKELY


def test_an_expressions_answer_is_said_to_be_unreadable(tmp_path: Path) -> None:
    result = [{"metric": {"pod": "a"}, "value": [1.0, "2"]}]
    (tmp_path / "query.json").write_text(json.dumps({"status": "success", "data": {"result": result}}))
    (seen,) = [seen for seen in loaded(tmp_path).not_seen if seen.source == "query.json"]
    assert "no series name" in seen.why
