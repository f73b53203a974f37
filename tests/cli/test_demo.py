"""`triage demo --headless`: each incident is named, live, through real HTTP on loopback."""

import json

import pytest

from tests.cli.run import triage


@pytest.mark.slow
@pytest.mark.parametrize(
    ("incident", "code"), [("healthy", 0), ("queueing", 1), ("hidden-reasoning", 1), ("slow-decode", 1)]
)
def test_each_incident_is_diagnosed(incident: str, code: int) -> None:
    answer = triage("demo", "--headless", "--incident", incident, "--format", "json", "--window", "12")
    assert answer.returncode == code, answer.stderr
    first = json.loads(answer.stdout)["verdicts"][0]
    assert first["kind"] == incident
    assert first["confidence"] in ("likely", "confirmed")


@pytest.mark.slow
def test_a_probe_that_outlasts_the_window_leaves_no_hole_in_it() -> None:
    """At 230 ms a token the probe takes far longer than the window: scraping goes on meanwhile."""
    answer = triage("demo", "--headless", "--incident", "slow-decode", "--format", "json", "--window", "3")
    report = json.loads(answer.stdout)
    assert report["verdicts"][0]["kind"] == "slow-decode"
    assert report["window_s"] >= 2.5


def test_without_a_terminal_the_screen_does_not_start() -> None:
    """`triage demo` in a pipe must print and end, not wait for keys for ever."""
    answer = triage("demo", "--incident", "healthy", "--window", "2", "--format", "json", env={"TERM": "dumb"})
    assert answer.returncode in (0, 3), answer.stderr
    assert json.loads(answer.stdout)["schema"] == "triage.diagnosis/1"
