"""The front matter of a runbook, read with line numbers.

The YAML is composed, not loaded: nodes know their lines, and words such as `no` stay words.
"""

import datetime
import difflib
import re
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import yaml

REQUIRED = ("topic", "verdicts", "severity", "last_reviewed")
FIELDS = (*REQUIRED, "aliases")

_WORD = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

Report = Callable[[int, str], None]
Choice = TypeVar("Choice", bound=StrEnum)


class FrontMatter:
    """Typed access to the fields; what is wrong goes to `report` with its line (1-based, in the file)."""

    def __init__(self, text: str, first: int, report: Report) -> None:
        self._report = report
        self._first = first
        self._nodes: dict[str, yaml.Node] = {}
        if self._compose(text):
            for name in REQUIRED:
                if name not in self._nodes:
                    report(1, f"front matter lacks {name}")

    def line(self, name: str) -> int:
        node = self._nodes.get(name)
        return self._at(node) if node is not None else 1

    def text(self, name: str) -> str:
        """A scalar, or "" when it is missing or something else (which is reported)."""
        node = self._nodes.get(name)
        if node is None:
            return ""
        value = self._scalar(node)
        if not value:
            self._report(self._at(node), f"{name} must be one word")
        return value

    def words(self, name: str) -> list[tuple[int, str]]:
        """The lower-case words of a list, each with its line."""
        node = self._nodes.get(name)
        if node is None:
            return []
        items: list[yaml.Node] = node.value if _is_list(node) else []
        if not _is_list(node) or (not items and name in REQUIRED):
            self._report(self._at(node), f"{name} must be a list of words, as in [one, two]")
        found = []
        for item in items:
            word = self._scalar(item)
            if _WORD.fullmatch(word):
                found.append((self._at(item), word))
            else:
                self._report(
                    self._at(item), f"{name}: {word!r} is not a word of lower-case letters, digits and hyphens"
                )
        return found

    def date(self, name: str) -> datetime.date | None:
        value = self.text(name)
        try:
            return datetime.date.fromisoformat(value) if value else None
        except ValueError:
            self._report(self.line(name), f"{name} must be a date such as 2026-12-01, not {value!r}")
            return None

    def choice(self, name: str, line: int, word: str, choices: type[Choice]) -> Choice | None:
        """The member of that value, or None, which is reported with the nearest known one."""
        if not word:  # already reported as missing
            return None
        try:
            return choices(word)
        except ValueError:
            pass
        known = [member.value for member in choices]
        near = difflib.get_close_matches(word, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        self._report(line, f"{name}: unknown word {word!r}: {hint}")
        return None

    def _compose(self, text: str) -> bool:
        import yaml

        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._report(self._first + (mark.line if mark else 0), f"front matter is not YAML: {error.problem}")
            return False
        except yaml.YAMLError as error:
            self._report(self._first, f"front matter is not YAML: {error}".replace("\n", " "))
            return False
        if not isinstance(node, yaml.MappingNode):
            self._report(self._first, "front matter must be fields, as in topic: queueing")
            return False
        for key, value in node.value:
            name = self._scalar(key)
            if name in self._nodes:
                self._report(self._at(key), f"front matter has {name} twice")
            elif name not in FIELDS:
                near = difflib.get_close_matches(name, FIELDS, 1)
                hint = f": did you mean {near[0]}?" if near else f": known are {', '.join(FIELDS)}"
                self._report(self._at(key), f"front matter has an unknown field {name!r}{hint}")
            else:
                self._nodes[name] = value
        return True

    def _scalar(self, node: "yaml.Node") -> str:
        return node.value.strip() if isinstance(node.value, str) else ""

    def _at(self, node: "yaml.Node") -> int:
        return int(node.start_mark.line) + self._first


def _is_list(node: "yaml.Node") -> bool:
    return isinstance(node.value, list) and bool(node.tag.endswith(":seq"))
