"""The rules that runbooks keep, so that a tired person finds every one alike."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from triage.domain.verdict import DETAILS
from triage.runbook.book import Problem, Runbook, examine
from triage.runbook.fill import PLACEHOLDER, PLACEHOLDERS
from triage.runbook.markdown import Line, Part, heading, is_table_row, item, pieces, scan

HEADINGS = ("Meaning", "Impact", "Diagnosis", "Mitigation")
STEPS = ("Diagnosis", "Mitigation")  # the parts that tell a person to do something
MARKS = ("[reads]", "[changes]")


def lint(paths: Iterable[Path]) -> tuple[Problem, ...]:
    """Everything that is wrong with these files, by themselves and beside one another, in order of file and line."""
    problems: list[Problem] = []
    books: list[Runbook] = []
    for path in paths:
        book, found = examine(path)
        problems.extend(found)
        if book is not None:
            books.append(book)
            problems.extend(Problem(str(path), line, text) for line, text in _check(book))
    problems.extend(_clashes(books))
    return tuple(sorted(problems, key=lambda problem: (problem.path, problem.line)))


def _check(book: Runbook) -> Iterator[tuple[int, str]]:
    lines = list(scan(book.body, book.first))
    yield from _headings(book, lines)
    yield from _steps(lines)
    yield from _sections(book)
    yield from _code(lines)
    yield from _placeholders(lines)


def _headings(book: Runbook, lines: list[Line]) -> Iterator[tuple[int, str]]:
    if not book.title:
        yield book.first, "no title: a line such as # Queueing: requests wait for a slot"
    seen: list[str] = []
    for line in lines:
        level, text = heading(line) or (0, "")
        if level != 2:
            continue
        if text not in HEADINGS:
            yield line.number, f"heading {text!r} is none of {', '.join(HEADINGS)}"
        elif text in seen:
            yield line.number, f"heading {text} a second time"
        elif any(HEADINGS.index(earlier) > HEADINGS.index(text) for earlier in seen):
            yield line.number, f"heading {text} comes too late: the order is {', '.join(HEADINGS)}"
        if text in HEADINGS:
            seen.append(text)
    for name in HEADINGS:
        if name not in seen:
            yield book.first, f"heading {name} is missing"


def _steps(lines: list[Line]) -> Iterator[tuple[int, str]]:
    part, steps, begun = "", 0, 0
    for line in lines:
        level, text = heading(line) or (0, "")
        if level == 2:
            if part in STEPS and not steps:
                yield begun, f"{part} has no step"
            part, steps, begun = text, 0, line.number
        step = item(line)
        if part in STEPS and step is not None:
            steps += 1
            if not step.startswith(tuple(f"{mark} " for mark in MARKS)):
                yield line.number, f"step does not begin with {' or '.join(MARKS)}"
    if part in STEPS and not steps:
        yield begun, f"{part} has no step"


def _sections(book: Runbook) -> Iterator[tuple[int, str]]:
    covered = {word for section in book.sections for word in section.words}
    wanted = [
        (f"sub-cause {detail} of {kind.value}", detail) for kind in book.kinds for detail in DETAILS.get(kind, ())
    ]
    wanted += [(f"alias {alias}", alias) for alias in book.aliases]
    for what, word in wanted:
        if word not in covered:
            yield book.first, f"{what} has no section: a heading such as ### `{word}`"


def _code(lines: list[Line]) -> Iterator[tuple[int, str]]:
    for line in lines:
        if line.opens:
            yield line.number, "block of code is never closed"
        if line.part is Part.TEXT and any(
            not piece.ticks and "`" in _unescaped(piece.text) for piece in pieces(line.text)
        ):
            yield line.number, "backtick without a partner on its line"


def _placeholders(lines: list[Line]) -> Iterator[tuple[int, str]]:
    block: list[Line] = []
    for line in lines:
        for found in PLACEHOLDER.finditer(line.text):
            if found[1] not in PLACEHOLDERS:
                yield line.number, f"unknown placeholder {found[0]}: known are {', '.join(PLACEHOLDERS)}"
            elif is_table_row(line):
                yield line.number, f"placeholder {found[0]} in a table: a name with | would move its columns"
        if line.part is Part.CODE:
            block.append(line)
            continue
        yield from _quoted(block)
        block = []
        for piece in pieces(line.text) if line.part is Part.TEXT else ():
            if piece.ticks:
                yield from _quoted([Line(line.number, piece.text, Part.CODE)])


def _quoted(block: list[Line]) -> Iterator[tuple[int, str]]:
    """Placeholders inside shell quotes: names are quoted when filled in, and quotes in quotes come apart."""
    quote = ""
    for line in block:
        text = line.text
        inside: set[int] = set()
        at = 0
        while at < len(text):
            character = text[at]
            if character == "\\" and quote != "'":
                at += 1
            elif quote:
                inside.add(at)
                quote = "" if character == quote else quote
            elif character in "'\"":
                quote = character
            elif character == "#" and (at == 0 or text[at - 1].isspace()):
                break
            at += 1
        for found in PLACEHOLDER.finditer(text):
            if found.start() in inside:
                yield line.number, f"placeholder {found[0]} inside quotes: it is quoted when filled in"


def _unescaped(text: str) -> str:
    return text.replace("\\\\", "").replace("\\`", "")


def _clashes(books: list[Runbook]) -> Iterator[Problem]:
    """A word must lead to one runbook."""
    owners: dict[str, Runbook] = {}
    for book in books:
        for word in dict.fromkeys((book.topic, *(kind.value for kind in book.kinds), *book.aliases)):
            owner = owners.setdefault(word, book)
            if owner is not book:
                yield Problem(str(book.path), 1, f"{word} already leads to {owner.path.name}")
