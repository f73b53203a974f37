"""What scripts rely on: exit codes, streams, formats, and what is not loaded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.public import FOLDER
from tests.cli.run import triage
from triage import __version__

HEAVY = ("textual", "kubernetes", "pynvml", "prometheus_api_client")


def test_version() -> None:
    answer = triage("--version")
    assert (answer.returncode, answer.stdout.strip()) == (0, f"triage {__version__}")


@pytest.mark.parametrize(
    ("case", "code"),
    [("C23", 0), ("C30", 1), ("R05", 1), ("C87", 3)],
)
def test_the_exit_code_follows_the_first_verdict(case: str, code: int) -> None:
    answer = triage("diagnose", str(FOLDER / case), "--format", "json")
    assert answer.returncode == code
    assert json.loads(answer.stdout)["schema"] == "triage.diagnosis/1"
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "No such command"),
        (["diagnose", "/does/not/exist"], "cannot read"),
        (["diagnose", "--target", "ftp://x"], "neither http nor https"),
        (["diagnose", "--target", "x"], "x"),
        (["diagnose", "--target", "a=http://127.0.0.1:1", "--target", "a=http://127.0.0.1:2"], "two targets"),
        (["diagnose", "--target", "http://user:secret@h"], "password"),
        (["diagnose", "--format", "yaml"], "yaml"),
        (["diagnose", "--window", "0"], "greater than or equal to 2"),
        (["demo", "--headless", "--incident", "fire"], "load-surge"),
        (["schema", "nothing"], "diagnosis"),
        (["runbook", "show", "nothing"], "nothing"),
    ],
)
def test_usage_errors_are_2_and_say_what_is_wrong(words: list[str], said: str, tmp_path: Path) -> None:
    answer = triage(*words, cwd=tmp_path)
    assert answer.returncode == 2, answer.stderr
    assert said in answer.stderr
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    assert "secret" not in answer.stderr


def test_without_targets_it_says_what_to_try(tmp_path: Path) -> None:
    answer = triage("diagnose", cwd=tmp_path, env={"XDG_CONFIG_HOME": str(tmp_path), "TRIAGE_CONFIG": ""})
    assert answer.returncode == 2
    assert "triage demo" in answer.stderr


def test_an_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "triage.toml").write_text("[limits]\nfirst_visible_p95 = 3\n")
    answer = triage("diagnose", str(FOLDER / "C25"), cwd=tmp_path)
    assert answer.returncode == 2
    assert "first_visible_p95_s" in answer.stderr


def test_declared_limits_reach_the_diagnosis(tmp_path: Path) -> None:
    (tmp_path / "triage.toml").write_text("[limits]\ntime_per_token_mean_s = 0.5\n")
    answer = triage("diagnose", str(FOLDER / "C30"), cwd=tmp_path)
    assert answer.returncode != 1, answer.stdout


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["diagnose", str(FOLDER / "R02")], ["schema"]])
def test_headless_commands_load_no_screen_and_no_cluster(words: list[str]) -> None:
    code = (
        "import sys\nfrom triage.cli import main\nsys.argv = ['triage', *sys.argv[1:]]\n"
        "try:\n    main.run()\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    assert answer.stderr.strip().splitlines()[-1] == "[]"


def test_the_same_folder_gives_the_same_bytes_in_every_process() -> None:
    answers = {
        triage("diagnose", str(FOLDER / case), "--format", form, env={"PYTHONHASHSEED": seed}).stdout
        for case, form in (("R02", "json"),)
        for seed in ("0", "1", "2")
    }
    assert len(answers) == 1


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_a_dumb_locale_does_not_end_the_report(form: str) -> None:
    answer = triage("diagnose", str(FOLDER / "R02"), "--format", form, env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert answer.returncode == 1
    assert "queueing" in answer.stdout


def test_the_schema_is_a_json_schema() -> None:
    schema = json.loads(triage("schema", "diagnosis").stdout)
    assert "$ref" in schema or "properties" in schema


def test_every_verdict_kind_of_this_release_has_a_runbook_to_show() -> None:
    answer = triage("runbook", "show", "queueing")
    assert answer.returncode == 0
    assert "Mitigation" in answer.stdout
