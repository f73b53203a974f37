"""As much of Markdown as runbooks use: fences, code spans, headings, list items."""

import re
from collections.abc import Iterator
from enum import Enum, auto

import msgspec

_FENCE = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)?(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r"\s{0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(.*)$")
_TICKS = re.compile(r"`+")


class Part(Enum):
    TEXT = auto()
    FENCE = auto()  # the line that opens or closes a block of code
    CODE = auto()


class Line(msgspec.Struct, frozen=True):
    """number: 1-based, in the file. opens: the line opens a fence that nothing closes."""

    number: int
    text: str
    part: Part
    opens: bool = False


class Piece(msgspec.Struct, frozen=True):
    """A stretch of a text line. ticks: length of the delimiter of a code span, 0 for plain text."""

    text: str
    ticks: int


def scan(body: str, first: int) -> Iterator[Line]:
    """The body line by line, told apart into text and code. first: number of its first line in the file."""
    lines = body.split("\n")
    closing: re.Pattern[str] | None = None
    for place, text in enumerate(lines):
        number = first + place
        if closing is not None:
            closed = closing.match(text) is not None
            yield Line(number, text, Part.FENCE if closed else Part.CODE)
            closing = None if closed else closing
            continue
        fence = _FENCE.match(text)
        if fence is None:
            yield Line(number, text, Part.TEXT)
            continue
        mark = fence[1]
        closing = re.compile(rf"\s*{re.escape(mark[0])}{{{len(mark)},}}\s*$")
        unclosed = not any(closing.match(later) for later in lines[place + 1 :])
        yield Line(number, text, Part.FENCE, unclosed)


def pieces(text: str) -> Iterator[Piece]:
    """A text line cut into plain text and code spans; ticks without a partner are plain text."""
    plain = 0
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        opening = _TICKS.match(text, at)
        if opening is None:
            at += 1
            continue
        closing = next((run for run in _TICKS.finditer(text, opening.end()) if len(run[0]) == len(opening[0])), None)
        if closing is None:
            at = opening.end()
            continue
        if plain < opening.start():
            yield Piece(text[plain : opening.start()], 0)
        yield Piece(text[opening.end() : closing.start()], len(opening[0]))
        plain = at = closing.end()
    if plain < len(text):
        yield Piece(text[plain:], 0)


def heading(line: Line) -> tuple[int, str] | None:
    """Level and title, or None when the line is no heading."""
    found = _HEADING.match(line.text) if line.part is Part.TEXT else None
    return (len(found[1]), found[2] or "") if found else None


def item(line: Line) -> str | None:
    """What a numbered or bulleted line says, or None when it is no list item."""
    found = _ITEM.match(line.text) if line.part is not Part.CODE else None
    return found[1] if found else None


def is_table_row(line: Line) -> bool:
    return line.part is Part.TEXT and line.text.lstrip().startswith("|")
