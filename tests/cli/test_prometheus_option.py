"""`--prometheus`: told when it cannot be read, and never beside an evidence folder."""

import json
from pathlib import Path

from tests.cli.run import triage


def test_the_doctor_says_why_it_cannot_be_read_and_what_to_do() -> None:
    done = triage("doctor", "--prometheus", "http://127.0.0.1:1")
    assert (done.returncode, done.stderr) == (1, "")
    said = " ".join(done.stdout.split())
    assert "could not be read prometheus 127.0.0.1:1: refused: nothing listens on 127.0.0.1:1" in said
    assert "port-forward" in said


def test_a_diagnosis_without_it_is_insufficient_and_names_it() -> None:
    done = triage("diagnose", "--prometheus", "http://127.0.0.1:1/api/v1/query", "--window", "2", "--format", "json")
    assert done.returncode == 3
    report = json.loads(done.stdout)
    assert report["verdicts"][0]["kind"] == "insufficient-data"
    assert "prometheus 127.0.0.1:1" in report["verdicts"][0]["summary"]
    (seen,) = [seen for seen in report["not_seen"] if seen["expected"]]
    assert "queueing" in seen["costs"]


def test_it_is_not_mixed_with_a_folder(tmp_path: Path) -> None:
    done = triage("diagnose", str(tmp_path), "--prometheus", "http://127.0.0.1:1")
    assert done.returncode == 2
    assert "--prometheus" in done.stderr
