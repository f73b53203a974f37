"""Folders as they really come: empty, half, hostile, huge. Never a crash, always a reason at the right place."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.public import FOLDER
from tests.cli.run import triage

PAGE = (
    'vllm:num_requests_running{{engine="0",model_name="{model}"}} 2\n'
    'vllm:generation_tokens_total{{engine="0",model_name="{model}"}} {tokens}\n'
)
HOSTILE = "x[/foo][@click=app.quit]\x1b]0;owned\x07\u202egnp"


def diagnosis(folder: Path) -> dict[str, Any]:
    answer = triage("diagnose", str(folder), "--format", "json")
    assert answer.returncode in (0, 1, 3), answer.stderr
    assert answer.stderr == ""
    found: dict[str, Any] = json.loads(answer.stdout)
    text = triage("diagnose", str(folder))
    assert not set(text.stdout) & set("\x1b\x07\u202e\x9b")
    return found


def unread(found: dict[str, Any]) -> dict[str, str]:
    return {seen["source"]: seen["why"] for seen in found["not_seen"] if seen["expected"]}


def test_a_folder_with_nothing(tmp_path: Path) -> None:
    found = diagnosis(tmp_path)
    assert found["verdicts"][0]["kind"] == "insufficient-data"
    assert found["at"] is None


def test_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "x.prom"
    file.write_text("a 1\n")
    answer = triage("diagnose", str(file))
    assert answer.returncode == 2
    assert "folder" in answer.stderr


def test_one_scrape(tmp_path: Path) -> None:
    (tmp_path / "metrics-t0.prom").write_text(PAGE.format(model="m", tokens=5))
    first = diagnosis(tmp_path)["verdicts"][0]
    assert first["kind"] == "insufficient-data"
    assert "second scrape" in first["next_test"]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("metrics-t0.prom", b"", "empty"),
        ("probes.json", b"{", "not JSON"),
        ("probes.json", b"[1, 2]", "expected an object"),
        ("targets.json", b"{}", "activeTargets"),
        ("queries.json", b"[3]", "expression"),
        ("container.json", b"{}", "cpu_limit"),
        ("ps.json", b"[]", "models"),
        ("pods.json", b"{}", "not read yet"),
        ("notes.txt", b"hello", "no reader"),
        ("response.json", b"{}", "no answer"),
        ("gateway.log", b'{"method":"POST","response_code":200,"duration":5,"response_flags":"-"}\n', "access log"),
    ],
)
def test_a_bad_file_costs_that_file_and_says_why(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "metrics-a-t0.prom").write_text(PAGE.format(model="m", tokens=5))
    (tmp_path / "metrics-a-t1.prom").write_text(PAGE.format(model="m", tokens=50))
    found = diagnosis(tmp_path)
    assert why in unread(found)[name]
    assert found["targets"][0]["readings"]["generation_tokens_delta"] == 45


@pytest.mark.parametrize(
    "body",
    [b"<html><body>502</body></html>", b"\xff\xfe\x00\x01", b"{}", b"vllm:num_requests_running{", b"\x00" * 5000],
)
def test_a_page_that_is_none(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "metrics-t0.prom").write_bytes(body)
    (tmp_path / "metrics-t1.prom").write_bytes(body)
    found = diagnosis(tmp_path)
    assert found["targets"][0]["state"] == "no metrics"
    assert found["targets"][0]["readings"] == {}


def test_hostile_names_are_shown_literally_and_harmlessly(tmp_path: Path) -> None:
    for moment, tokens in (("t0", 5), ("t1", 5000)):
        (tmp_path / f"metrics-{moment}.prom").write_text(PAGE.format(model=HOSTILE, tokens=tokens))
    (tmp_path / "engine.log").write_text(
        f"(EngineCore pid=1) ERROR 01-15 EngineCore encountered a fatal error {HOSTILE}\n"
    )
    found = diagnosis(tmp_path)
    assert found["targets"][0]["model"] == "x[/foo][@click=app.quit]gnp"


def test_a_very_deep_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "probes.json").write_text("[" * 100_000)
    assert "not JSON" in unread(diagnosis(tmp_path))["probes.json"]


def test_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "engine.log").symlink_to(tmp_path / "engine.log")
    found = diagnosis(tmp_path)
    assert found["verdicts"][0]["kind"] == "insufficient-data"


def test_the_expected_answer_is_never_read(tmp_path: Path) -> None:
    for file in (FOLDER / "C30").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with_answer = triage("diagnose", str(tmp_path), "--format", "json").stdout
    (tmp_path / "expected.yaml").write_text("verdict: healthy\n")
    assert triage("diagnose", str(tmp_path), "--format", "json").stdout == with_answer
