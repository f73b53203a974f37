"""`triage runbook`: what it prints where, and its exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from triage.cli import runbook_commands
from triage.cli.main import run
from triage.domain.text import clean
from triage.resources import shipped

SHIPPED = sorted(shipped("runbooks").glob("*.md"))
BROKEN = "---\ntopic: queueing\nverdicts: [queuing]\nseverity: warning\nlast_reviewed: 2026-12-01\n---\n# Q\n"


def triage(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["triage", "runbook", *words])
    with pytest.raises(SystemExit) as ended:
        run()
    printed = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed.out, printed.err


def test_list_as_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = triage(capsys, monkeypatch, "list")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) == len(SHIPPED)
    assert any(line.split()[:2] == ["queueing", "warning"] and "lora-slots" in line for line in lines)
    assert len({line.index(line.split()[1]) for line in lines}) == 1  # columns


def test_list_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = triage(capsys, monkeypatch, "list", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == "triage.runbooks/1"
    book = next(book for book in document["runbooks"] if book["topic"] == "engine-stalled")
    assert book["verdicts"] == ["engine-stalled"]
    assert book["aliases"] == ["engine-hang", "nccl-hang"]
    assert book["severity"] == "critical"
    assert book["last_reviewed"].count("-") == 2
    assert Path(book["path"]).is_file()


def test_show_fills_nothing_in_but_shows_what_is_to_be_filled_in(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = triage(capsys, monkeypatch, "show", "nccl-hang")
    assert code == 0
    assert out.startswith("# Engine stalled")
    assert "logs <replica> --timestamps" in out
    assert "{replica}" not in out
    assert "no-token, nccl-hang" in err
    assert "in engine-stalled" in err


def test_show_raw_is_the_file(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = triage(capsys, monkeypatch, "show", "queueing", "--raw")
    assert (code, err) == (0, "")
    assert out.startswith("---\ntopic: queueing\n")
    assert "{replica}" in out


def test_on_a_terminal_it_is_laid_out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, _ = triage(capsys, monkeypatch, "show", "queueing")
    assert code == 0
    assert "## Meaning" not in out
    assert "<replica>" in out
    assert max(len(clean(line)) for line in out.splitlines()) <= 80


@pytest.mark.parametrize("words", [["show", "quueing"], ["lint", "/no/such/place"], ["list", "--runbooks", "/no/such"]])
def test_what_is_not_there_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    code, out, err = triage(capsys, monkeypatch, *words)
    assert (code, out) == (2, "")
    assert err.startswith("triage: no runbook")


@pytest.mark.parametrize("words", [["show"], ["list", "--format", "xml"], ["lint", "a", "b"], ["no-such-command"]])
def test_wrong_usage_is_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    code, out, err = triage(capsys, monkeypatch, *words)
    assert (code, out) == (2, "")
    assert err


def test_lint_of_the_shipped_ones(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert triage(capsys, monkeypatch, "lint") == (0, "", f"{len(SHIPPED)} runbooks, 0 problems\n")


def test_lint_of_a_broken_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "queueing.md"
    path.write_text(BROKEN, encoding="utf-8")
    code, out, err = triage(capsys, monkeypatch, "lint", str(tmp_path))
    assert code == 1
    assert out == f"{path}:3: verdicts: unknown word 'queuing': did you mean queueing?\n"
    assert err == "1 runbooks, 1 problems\n"


def test_lint_of_a_folder_without_any_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, _, err = triage(capsys, monkeypatch, "lint", str(tmp_path))
    assert code == 2
    assert "has no .md file" in err


def test_own_runbooks_go_first_and_a_broken_one_is_said_and_passed_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "queueing.md").write_text(BROKEN, encoding="utf-8")
    (tmp_path / "healthy.md").write_text(
        BROKEN.replace("queueing", "healthy").replace("queuing", "healthy").replace("# Q", "# House: ours"),
        encoding="utf-8",
    )
    code, out, err = triage(capsys, monkeypatch, "show", "healthy", "--runbooks", str(tmp_path))
    assert (code, out) == (0, "# House: ours\n")
    assert err.startswith(f"passed over: {tmp_path / 'queueing.md'}:3: ")
    code, out, _ = triage(capsys, monkeypatch, "show", "queueing", "--runbooks", str(tmp_path))
    assert code == 0
    assert "requests wait for a slot" in out


def test_the_command_line_starts_without_the_files_being_read() -> None:
    """`triage --version` imports this module: it must not bring the YAML reader or a renderer along."""
    heavy = ("yaml", "markdown_it", "textual")
    script = f"import sys, {runbook_commands.__name__}; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == "[]"
