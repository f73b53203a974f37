"""The runbooks as people get them: inside the wheel."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import triage

REPOSITORY = Path(triage.__file__).resolve().parents[1]
TOPICS = {path.name for path in (REPOSITORY / "runbooks").glob("*.md")}

ASK = """
import pathlib, sys, triage
from triage.resources import shipped
from triage.runbook import lint, load
place = shipped("runbooks")
assert place.is_relative_to(pathlib.Path(sys.argv[1])), place
assert triage.__file__.startswith(sys.argv[1]), triage.__file__
print(len(load().runbooks), len(lint(place.glob("*.md"))))
"""


@pytest.mark.slow
def test_a_wheel_carries_them_and_finds_them(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the build backend is not installed here")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-q", "-w", str(tmp_path)],
        cwd=REPOSITORY,
        check=True,
        timeout=300,
    )
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(installed)
    assert {Path(name).name for name in names if name.startswith("triage/runbooks/")} == TOPICS
    assert not [name for name in names if name.startswith(("tests/", "runbooks/")) or "/tests/" in name]
    answer = subprocess.run(
        [sys.executable, "-c", ASK, str(installed)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert answer.stdout.split() == [str(len(TOPICS)), "0"]
