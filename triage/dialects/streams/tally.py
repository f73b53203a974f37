"""Counts of what came in one channel of a stream; the text itself is never kept."""

import json

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
        self._ids: dict[str, str] = {}
        self._moved: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._names)

    def add(self, part: ToolPart, at: float | None) -> None:
        key = self._key(part)
        if key not in self._names:
            if not self._names:
                self.first_s = at
            if len(self._names) >= _MOST_CALLS:
                return
            self._names[key] = ""
            self._sizes[key] = 0
        self._names[key] = self._names[key] or clean(part.name, 80)
        self._ids[key] = part.id or self._ids.get(key, "")
        self.chars += len(part.arguments)
        self._sizes[key] += len(part.arguments)
        if part.whole or self._sizes[key] > _LONGEST_ARGUMENTS:
            self._sizes[key] = _LONGEST_ARGUMENTS + 1
            self._arguments.pop(key, None)
        elif part.arguments:
            self._arguments.setdefault(key, []).append(part.arguments)

    def broken(self) -> str:
        """Which call has arguments that are not a JSON object, in words; "" when all are well.

        No arguments at all, and null, are well: a function may take none.
        """
        for number, (key, parts) in enumerate(self._arguments.items(), 1):
            text = "".join(parts)
            name = self._names[key] or f"call {number}"
            try:
                value = json.loads(text) if text.strip() else None
            except (ValueError, RecursionError) as error:
                why = clean(getattr(error, "msg", "") or "nested too deeply", 60)
                return f"arguments of {name} are not JSON: {why}"
            if value is not None and not isinstance(value, dict):
                return f"arguments of {name} are a JSON {_JSON_NAMES.get(type(value), 'number')}, not an object"
        return ""

    def _key(self, part: ToolPart) -> str:
        """Servers that send parallel calls whole may give all of them the same index: a new id begins a new call."""
        key = self._moved.get(part.key, part.key)
        other = bool(part.id and part.name and self._ids.get(key) and part.id != self._ids[key])
        if other and (part.whole or _is_json("".join(self._arguments.get(key, ())))):
            key = self._moved[part.key] = f"{part.key}#{len(self._names)}"
        return key


_JSON_NAMES = {str: "string", list: "array", bool: "boolean"}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
