"""Targets, alerts, rules and durations as the API writes them; recordings of a real server, and anything else."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import RECORDINGS
from tests.unit.dialects.prometheus.test_samples import ANY_JSON
from triage.dialects.prometheus.answers import (
    NotPrometheusError,
    duration,
    moment,
    opened,
    read_alerts,
    read_broken_rules,
    read_dropped,
    read_targets,
)
from triage.domain.text import clean


def recorded(name: str) -> Any:
    return opened((RECORDINGS / "prometheus" / f"{name}.json").read_bytes()).data


def test_targets_of_a_real_server() -> None:
    found = {target.seen.job: target for target in read_targets(recorded("1_steady_targets"), "p")}
    engine = found["engine"]
    assert (engine.seen.health, engine.every_s, engine.labels["role"]) == ("up", 2.0, "decode")
    assert engine.seen.url == "http://127.0.0.1:18101/metrics"
    assert engine.scraped_at == pytest.approx(1_796_093_452.389, abs=0.01)
    wrong = found["wrong-path"].seen
    assert (wrong.health, wrong.error) == ("down", "server returned HTTP status 404 Not Found")
    never = next(target for target in found.values() if target.seen.health == "unknown")
    assert never.scraped_at is None


def test_alerts_with_their_rules() -> None:
    (engine, *others) = read_alerts(recorded("1_rules"), "p")
    assert (engine.name, engine.state, engine.expression) == ("EngineQueueing", "firing", "lab_requests_waiting > 10")
    assert engine.summary == "tiny has 12 waiting"
    assert ("model_name", "tiny") in engine.labels
    listed = read_alerts(recorded("1_steady_alerts"), "p")
    assert {alert.name for alert in listed} == {alert.name for alert in (engine, *others)}
    assert [said.partition(":")[0] for said, _ in read_broken_rules(recorded("1_rules"))] == ["BrokenRule"]


def test_a_target_that_relabelling_drops() -> None:
    data = {"droppedTargets": [{"discoveredLabels": {"__address__": "h:1", "job": "engines"}}, {}]}
    first, second = read_dropped(data, "p")
    assert (first.health, first.url, first.job) == ("dropped", "http://h:1/metrics", "engines")
    assert second.health == "dropped"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15.0),
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("1h", 3600.0),
        ("", None),
        ("s", None),
        ("1", None),
        ("0s", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert duration(text) == seconds


def test_never_is_not_a_time() -> None:
    assert moment("0001-01-01T00:00:00Z") is None
    assert moment("2026-12-01T02:50:52.432900862Z") == pytest.approx(1_796_093_452.4329)
    assert moment("2026-12-01T02:50:52") is None, "no zone"


@given(st.binary(max_size=40))
def test_other_answers_are_not_taken_for_ours(body: bytes) -> None:
    with pytest.raises(NotPrometheusError):
        opened(body)


@given(ANY_JSON)
def test_anything_is_read_or_refused_and_what_is_read_is_clean(data: Any) -> None:
    for reader in (read_targets, read_alerts, read_dropped):
        try:
            found: Any = reader({"activeTargets": data, "alerts": data, "droppedTargets": data}, "p")
        except ValueError:
            continue
        for item in found:
            for text in msgspec.to_builtins(getattr(item, "seen", item)).values():
                assert not isinstance(text, str) or clean(text, 400) == text
    duration(data)
    moment(data)
