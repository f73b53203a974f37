"""`triage demo --headless`: incidents are named, through real HTTP on loopback."""

import json

import pytest

from tests.cli.run import triage


@pytest.mark.parametrize(
    ("incident", "code", "kinds"),
    [("healthy", 0, {"healthy"}), ("speculation-collapse", 1, {"slow-decode"})],
)
def test_an_incident_is_diagnosed(incident: str, code: int, kinds: set[str]) -> None:
    answer = triage("demo", "--headless", "--incident", incident, "--format", "json")
    assert answer.returncode == code, answer.stderr
    report = json.loads(answer.stdout)
    assert report["verdicts"][0]["kind"] in kinds
    assert report["window_s"] > 20, "the seconds before the demo opened are in the window"


def test_without_a_terminal_the_screen_does_not_start() -> None:
    """`triage demo` in a pipe must print and end, not wait for keys for ever."""
    answer = triage("demo", "--incident", "healthy", "--format", "json", env={"TERM": "dumb"})
    assert answer.returncode in (0, 3), answer.stderr
    assert json.loads(answer.stdout)["schema"] == "triage.diagnosis/1"


def test_an_unknown_incident_is_refused_with_those_that_are_meant() -> None:
    answer = triage("demo", "--headless", "--incident", "engine-stall")
    assert answer.returncode == 2
    assert "engine-stalled" in answer.stderr
