"""Counts of what came in one channel of a stream; the text itself is never kept."""

import json
import re

from triage.dialects.streams.chunk import ToolPart
from triage.domain.text import clean


class Tally:
    """Characters of one channel and when they came. Leading white space is no text."""

    def __init__(self) -> None:
        self.chars = 0
        self.first_s: float | None = None
        self.last_s: float | None = None

    def add(self, text: str, at: float | None) -> None:
        if not self.chars:
            text = text.lstrip()
        if text:
            if not self.chars:
                self.first_s = at
            self.chars += len(text)
            self.last_s = at

    def take_back(self, chars: int) -> None:
        """The last `chars` characters were no text after all."""
        self.chars = max(self.chars - chars, 0)
        if not self.chars:
            self.first_s = self.last_s = None

    def move_to(self, other: "Tally") -> None:
        """All that was counted here belongs to `other`, which was empty."""
        other.chars, other.first_s, other.last_s = self.chars, self.first_s, self.last_s
        self.chars, self.first_s, self.last_s = 0, None, None


# Call markup that a parser should have turned into a tool call (diagnosis.md 6). Sources: vLLM and SGLang
# tool parsers (hermes, deepseek, llama pythonic, mistral, functionary); cases C39 and C107.
_MARKUP = re.compile(
    r"<tool_call>|<\|tool_call|<function=|<minimax:tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>"
    r"|<｜tool[▁_]calls?[▁_]begin｜>"
)
_LONGEST_MARKUP = 32


class MarkupWatch:
    """The first call markup in visible text, also when it is split over chunks."""

    def __init__(self) -> None:
        self.found = ""
        self._tail = ""

    def feed(self, text: str) -> None:
        if self.found:
            return
        joined = self._tail + text
        match = _MARKUP.search(joined)
        if match:
            self.found = match[0]
        self._tail = joined[-_LONGEST_MARKUP:]


# A call beyond this is counted, its arguments are not checked; nor are calls beyond the last one.
_LONGEST_ARGUMENTS = 256 * 1024
_MOST_CALLS = 64


class ToolCalls:
    """Tool calls, with their arguments only as long as it takes to check that they are JSON."""

    def __init__(self) -> None:
        self.chars = 0
        self.first_s: float | None = None
        self._names: dict[str, str] = {}
        self._arguments: dict[str, list[str]] = {}
        self._sizes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._names)

    def add(self, part: ToolPart, at: float | None) -> None:
        if part.key not in self._names:
            if not self._names:
                self.first_s = at
            if len(self._names) >= _MOST_CALLS:
                return
            self._names[part.key] = ""
            self._sizes[part.key] = 0
        self._names[part.key] = self._names[part.key] or clean(part.name, 80)
        self.chars += len(part.arguments)
        self._sizes[part.key] += len(part.arguments)
        if part.whole or self._sizes[part.key] > _LONGEST_ARGUMENTS:
            self._sizes[part.key] = _LONGEST_ARGUMENTS + 1
            self._arguments.pop(part.key, None)
        elif part.arguments:
            self._arguments.setdefault(part.key, []).append(part.arguments)

    def broken(self) -> str:
        """Which call has arguments that are not a JSON value, in words; "" when all are well.

        No arguments at all are well: a function may take none.
        """
        for number, (key, parts) in enumerate(self._arguments.items(), 1):
            text = "".join(parts)
            try:
                json.loads(text)
            except (ValueError, RecursionError) as error:
                name = self._names[key] or f"call {number}"
                why = clean(getattr(error, "msg", "") or "nested too deeply", 60)
                return f"arguments of {name} are not JSON: {why}"
        return ""
