"""Lines of a log that is held as one text: where they end, and what stands around a place in them."""

from triage.dialects.logs.times import clock_of
from triage.domain.text import clean

# A line is looked at within this distance of the words that were found, to both sides.
REACH = 2048
# The last line with a clock is looked for among so many characters at the end.
_TAIL = 16 * 1024


class Parts:
    """Ends of lines, and of the parts of a line that a progress bar drew over with CR.

    Positions must not go back: a line of a hundred thousand parts is searched for its end once.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._line_end = -1

    def end(self, position: int) -> int:
        if position > self._line_end:
            found = self._text.find("\n", position)
            self._line_end = len(self._text) if found < 0 else found
        turn = self._text.find("\r", position, self._line_end)
        return self._line_end if turn < 0 else turn


def last_clock(text: str) -> float | None:
    """Clock of the last line that has one."""
    for line in reversed(text[-_TAIL:].split("\n")):
        clock = clock_of(clean(line, REACH)) if line else None
        if clock is not None:
            return clock.seconds
    return None


def line_around(text: str, position: int) -> str:
    """The line, cleaned; of a very long one the part around the position. Progress bars end parts with CR."""
    low, high = max(position - REACH, 0), min(position + REACH, len(text))
    start = max(text.rfind("\n", low, position), text.rfind("\r", low, position)) + 1
    ends = [end for end in (text.find("\n", position, high), text.find("\r", position, high)) if end >= 0]
    return clean(text[max(start, low) : min(ends, default=high)], 2 * REACH)
