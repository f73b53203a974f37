"""Which runbook a verdict or a word leads to, and how a user's own take precedence."""

from pathlib import Path

import pytest

from triage.domain.errors import ConfigError, TriageError
from triage.domain.verdict import Kind
from triage.runbook import Library, RunbookError, load


def own(directory: Path, name: str, front: str, body: str = "# Ours\n") -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / f"{name}.md"
    path.write_text(f"---\ntopic: {name}\n{front}---\n{body}", encoding="utf-8")
    return path


FRONT = "verdicts: [queueing]\nseverity: warning\nlast_reviewed: 2026-11-30\n"


@pytest.fixture(scope="module")
def shipped() -> Library:
    return load()


def test_by_verdict_kind(shipped: Library) -> None:
    book = shipped.for_kind(Kind.QUEUEING)
    assert book is not None
    assert book.topic == "queueing"
    assert shipped.for_kind(Kind.CRASH_LOOP) is None


@pytest.mark.parametrize(
    ("word", "topic", "section"),
    [
        ("queueing", "queueing", None),
        ("lora-slots", "queueing", "adapter-slots"),
        ("adapter-slots", "queueing", "lora-slots"),
        ("nccl-hang", "engine-stalled", "no-token"),
        ("asleep", "engine-stalled", "asleep"),
        ("batch-size", "healthy", "batch-size"),  # an alias goes before a sub-cause of another runbook
    ],
)
def test_by_word(shipped: Library, word: str, topic: str, section: str | None) -> None:
    found = shipped.find(word)
    assert found.runbook.topic == topic
    assert (found.section is None) == (section is None)
    if found.section is not None:
        assert word in found.section.words
        assert section in found.section.words


def test_a_sub_cause_is_found_in_the_runbook_of_its_verdict(shipped: Library) -> None:
    book = shipped.for_kind(Kind.SLOW_DECODE)
    assert book is not None
    section = book.section("batch-size")
    assert section is not None
    assert section.title.startswith("batch-size")
    assert book.section("no-such-thing") is None


def test_an_unknown_word_names_the_nearest(shipped: Library) -> None:
    with pytest.raises(RunbookError, match="no runbook for 'quueing'") as caught:
        shipped.find("quueing")
    assert caught.value.hint == "did you mean queueing?"
    assert isinstance(caught.value, TriageError)
    with pytest.raises(RunbookError) as caught:
        shipped.find("zzzz")
    assert "list" in caught.value.hint


def test_a_file_of_the_same_name_wins(tmp_path: Path, shipped: Library) -> None:
    path = own(tmp_path, "queueing", FRONT)
    library = load([tmp_path])
    book = library.for_kind(Kind.QUEUEING)
    assert book is not None
    assert book.path == path
    assert book.title == "Ours"
    assert len(library.runbooks) == len(shipped.runbooks)


def test_the_first_directory_wins(tmp_path: Path) -> None:
    mine = own(tmp_path / "mine", "queueing", FRONT)
    own(tmp_path / "team", "queueing", FRONT)
    team_only = own(tmp_path / "team", "paging", "verdicts: [crash-loop]\nseverity: info\nlast_reviewed: 2026-11-30\n")
    library = load([tmp_path / "mine", tmp_path / "team"])
    assert library.find("queueing").runbook.path == mine
    assert library.find("crash-loop").runbook.path == team_only
    assert library.find("healthy").runbook.path.parent.name == "runbooks"


def test_a_verdict_in_an_own_file_of_another_name_wins_too(tmp_path: Path) -> None:
    path = own(tmp_path, "zz-house-rules", FRONT)
    library = load([tmp_path])
    book = library.for_kind(Kind.QUEUEING)
    assert book is not None
    assert book.path == path
    assert library.find("sequence-limit").runbook.path == path
    assert library.find("lora-slots").runbook.topic == "queueing"  # only the shipped one has that alias


def test_an_own_file_that_cannot_be_used_does_not_take_the_shipped_one_away(tmp_path: Path) -> None:
    path = own(tmp_path, "queueing", "verdicts: [queueing\n")
    library = load([tmp_path])
    assert library.find("queueing").runbook.path.parent != tmp_path
    (problem,) = library.problems
    assert str(problem).startswith(f"{path}:3: front matter is not YAML")


def test_asking_for_one_that_cannot_be_used_says_where_it_is_wrong(tmp_path: Path) -> None:
    path = own(tmp_path, "ours", "severity: warning\n")
    with pytest.raises(RunbookError, match=r"runbook ours cannot be used: .*:1: front matter lacks verdicts") as caught:
        load([tmp_path]).find("ours")
    assert str(path) in caught.value.what


def test_an_own_file_that_only_breaks_a_rule_is_used(tmp_path: Path) -> None:
    path = own(tmp_path, "queueing", FRONT, "no title, no headings\n")
    library = load([tmp_path])
    assert library.find("queueing").runbook.path == path
    assert library.problems == ()


def test_an_own_directory_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a directory"):
        load([tmp_path / "typo"])
