"""`triage demo --headless`: incidents are named, through real HTTP on loopback."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_ended_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    """A connection that is lost, a supervisor: no gateway process and no file may stay."""
    argv = [sys.executable, "-m", "triage.cli", "demo", "--headless", "--incident", "engine-stalled"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stderr is not None
        while "asking llama" not in (line := demo.stderr.readline()):
            assert line, "it ended by itself"
        (folder,) = tmp_path.iterdir()
        children = Path(f"/proc/{demo.pid}/task/{demo.pid}/children")
        below = [int(pid) for pid in children.read_text().split()] if children.exists() else []
        demo.send_signal(number)
        assert demo.wait(20) == 128 + number
    assert not folder.exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in below)
