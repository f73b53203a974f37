"""Server-sent events out of bytes, in any chunking (WHATWG HTML, section 9.2.6).

Two deviations, both for what really lies in an incident folder: a line that begins with '{' is
newline-delimited JSON (Ollama's own API) and is given as data; what is pending when the input
ends is given too, marked as cut, because a cut stream is what is looked for.
"""

import re
from typing import Literal, NamedTuple

# Longest line, and longest event of many lines, in bytes. Servers send a few KB; a Responses
# API end event repeats the whole answer and reaches some hundred KB.
LONGEST = 1024 * 1024
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LONGEST_NAME = 200


class SseItem(NamedTuple):
    """One event or comment. event: the name of an `event:` line. cut: longer than LONGEST, or input ended in it."""

    kind: Literal["data", "comment"]
    text: str
    event: str = ""
    cut: bool = False


class SseDecoder:
    """Incremental; never raises. The same bytes give the same items, however they are chunked."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._line_cut = False
        self._first_line = True
        self._after_return = False  # the last byte was CR: a LF at the head of the next chunk belongs to it
        self._data: list[str] = []
        self._size = 0
        self._data_cut = False
        self._event = ""

    def feed(self, chunk: bytes) -> list[SseItem]:
        """The items that these bytes complete."""
        items: list[SseItem] = []
        if not chunk:
            return items
        start = 1 if self._after_return and chunk[0] == 0x0A else 0
        self._after_return = False
        for end in _LINE_END.finditer(chunk, start):
            self._extend(chunk[start : end.start()])
            self._end_line(items)
            start = end.end()
        self._after_return = start == len(chunk) and chunk[-1] == 0x0D
        self._extend(chunk[start:])
        return items

    def finish(self) -> list[SseItem]:
        """What was pending when the input ended, marked as cut."""
        items: list[SseItem] = []
        if self._line or self._line_cut:
            self._line_cut = True
            self._end_line(items)
        self._data_cut = True
        self._dispatch(items)
        return items

    def _extend(self, part: bytes) -> None:
        room = LONGEST - len(self._line)
        if len(part) > room:
            self._line_cut = True
            part = part[:room]
        self._line += part

    def _end_line(self, items: list[SseItem]) -> None:
        line, cut = bytes(self._line), self._line_cut
        self._line.clear()
        self._line_cut = False
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            self._dispatch(items)
            return
        text = line.decode("utf-8", "replace")
        if text[0] == ":":
            items.append(SseItem("comment", text[1:].removeprefix(" "), "", cut))
        elif text[0] == "{":
            items.append(SseItem("data", text, "", cut))
        else:
            name, _, value = text.partition(":")
            self._field(name, value.removeprefix(" "), cut)

    def _field(self, name: str, value: str, cut: bool) -> None:
        if name == "data":
            room = LONGEST - self._size
            self._data_cut = self._data_cut or cut or len(value) > room
            if room > 0:
                self._data.append(value[:room])
                self._size += len(value) + 1
        elif name == "event":
            self._event = value[:_LONGEST_NAME]

    def _dispatch(self, items: list[SseItem]) -> None:
        if self._data:
            items.append(SseItem("data", "\n".join(self._data), self._event, self._data_cut))
        self._data = []
        self._size = 0
        self._data_cut = False
        self._event = ""
