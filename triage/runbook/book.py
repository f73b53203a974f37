"""One runbook as it stands in its file."""

import datetime
from enum import StrEnum
from pathlib import Path

import msgspec

from triage.domain.errors import TriageError
from triage.domain.verdict import Kind
from triage.runbook.front import FrontMatter, Report
from triage.runbook.markdown import heading, pieces, scan


class Severity(StrEnum):
    """How fast somebody has to act once the verdict is likely."""

    CRITICAL = "critical"  # nobody is served by this replica
    WARNING = "warning"  # users wait, or the next incident would go unseen
    INFO = "info"  # nothing is broken


class Problem(msgspec.Struct, frozen=True):
    """What is wrong with a runbook, and where. line: 1-based."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class RunbookError(TriageError):
    """A runbook cannot be used, or none has the name that was asked for."""


class Section(msgspec.Struct, frozen=True):
    """A level-3 heading. words: the code spans in it, the sub-causes and aliases that it covers."""

    title: str
    words: tuple[str, ...]
    line: int


class Runbook(msgspec.Struct, frozen=True):
    """body: the Markdown below the front matter; it begins at line `first` of the file."""

    topic: str
    title: str
    kinds: tuple[Kind, ...]
    aliases: tuple[str, ...]
    severity: Severity
    last_reviewed: datetime.date
    path: Path
    body: str
    first: int
    sections: tuple[Section, ...]

    def section(self, word: str) -> Section | None:
        """The section that covers a sub-cause or an alias."""
        return next((section for section in self.sections if word in section.words), None)


def examine(path: Path) -> tuple[Runbook | None, tuple[Problem, ...]]:
    """The runbook and the problems of its front matter; None when those leave nothing to match it by."""
    problems: list[Problem] = []

    def report(line: int, text: str) -> None:
        problems.append(Problem(str(path), line, text))

    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeError) as error:
        report(1, f"cannot be read: {error}")
        return None, tuple(problems)
    end = next((place for place, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if lines[0].rstrip() != "---" or end is None:
        report(1, "no front matter: the file must begin with fields between two lines of ---")
        return None, tuple(problems)
    front = FrontMatter("\n".join(lines[1:end]), 2, report)
    return _build(path, front, "\n".join(lines[end + 1 :]), end + 2, report), tuple(problems)


def _build(path: Path, front: FrontMatter, body: str, first: int, report: Report) -> Runbook | None:
    topic = front.text("topic")
    if topic and topic != path.stem:
        report(front.line("topic"), f"topic is {topic!r}, but the file is called {path.stem!r}")
    chosen = [front.choice("verdicts", line, word, Kind) for line, word in front.words("verdicts")]
    kinds = tuple(kind for kind in chosen if kind is not None)
    aliases = tuple(word for _, word in front.words("aliases"))
    severity = front.choice("severity", front.line("severity"), front.text("severity"), Severity)
    reviewed = front.date("last_reviewed")
    if not topic or not kinds or severity is None or reviewed is None:
        return None
    title, sections = _outline(body, first)
    return Runbook(topic, title, kinds, aliases, severity, reviewed, path, body, first, sections)


def _outline(body: str, first: int) -> tuple[str, tuple[Section, ...]]:
    title = ""
    sections: list[Section] = []
    for line in scan(body, first):
        found = heading(line)
        if found is None:
            continue
        level, text = found
        if level == 1 and not title:
            title = text
        elif level == 3:
            words = tuple(piece.text for piece in pieces(text) if piece.ticks)
            sections.append(Section(text.replace("`", ""), words, line.number))
    return title, tuple(sections)
