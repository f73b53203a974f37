"""The loader of shipped files: wheel layout, checkout layout, a user's own on top."""

from pathlib import Path

import pytest

import triage
from triage.domain.errors import ConfigError, TriageError
from triage.resources import directories, files, shipped

REPOSITORY = Path(triage.__file__).resolve().parents[1]


def make(directory: Path, *names: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_text(f"{directory.name}/{name}", encoding="utf-8")
    return directory


def test_a_wheel_has_them_inside_the_package(tmp_path: Path) -> None:
    package = make(tmp_path / "site-packages" / "triage", "__init__.py")
    inside = make(package / "runbooks", "queueing.md")
    make(tmp_path / "site-packages" / "runbooks", "somebody-elses.md")
    assert shipped("runbooks", package) == inside


def test_a_checkout_has_them_beside_the_package(tmp_path: Path) -> None:
    package = make(tmp_path / "triage", "__init__.py")
    make(tmp_path, "pyproject.toml")
    beside = make(tmp_path / "probes", "limits.yaml")
    assert shipped("probes", package) == beside


def test_a_folder_of_somebody_else_beside_an_installed_package_is_not_ours(tmp_path: Path) -> None:
    package = make(tmp_path / "site-packages" / "triage", "__init__.py")
    make(tmp_path / "site-packages" / "runbooks", "theirs.md")
    with pytest.raises(ConfigError, match="no runbooks") as caught:
        shipped("runbooks", package)
    assert isinstance(caught.value, TriageError)
    assert "install" in caught.value.hint


def test_this_checkout_is_found() -> None:
    assert shipped("runbooks") == REPOSITORY / "runbooks"
    assert (shipped("runbooks") / "queueing.md").is_file()


def test_own_directories_come_first_and_the_first_file_wins(tmp_path: Path) -> None:
    package = make(tmp_path / "triage", "__init__.py")
    ours = make(package / "runbooks", "queueing.md", "healthy.md")
    team = make(tmp_path / "team", "queueing.md", "notes.txt")
    mine = make(tmp_path / "mine", "queueing.md", "extra.md", ".hidden.md")
    places = directories("runbooks", [mine, team], package)
    assert places == (mine, team, ours)
    found = files(places, ".md")
    assert list(found) == ["extra", "healthy", "queueing"]
    assert found["queueing"] == (mine / "queueing.md", team / "queueing.md", ours / "queueing.md")
    assert found["healthy"] == (ours / "healthy.md",)


def test_a_directory_called_like_a_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "odd.md").mkdir()
    assert files([tmp_path], ".md") == {}


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_an_own_directory_that_is_none_is_an_error(tmp_path: Path, kind: str) -> None:
    wrong = tmp_path / "typo"
    if kind == "file":
        wrong.write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="typo is not a directory"):
        directories("runbooks", [wrong])
