"""The Prometheus text format, read by shape.

A page keeps its shape from scrape to scrape: the same series in the same order, other values.
So the text is only split into series keys and value texts here (0.13 ms for 48 KB); what the keys
mean is worked out once per shape by the caller and kept. Timestamps, exemplars, odd spacing and
broken lines take the slow way, line by line.
"""

import re
from typing import NamedTuple

from triage.domain.text import clean

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:.]*"
_LABELS = r"\{(?:[^\"{}\n]|\"(?:[^\"\\\n]|\\.)*\")*\}"
_LINE = re.compile(
    rf"[ \t]*((?:{_NAME})?(?:[ \t]*{_LABELS})?)[ \t]+(\S+)(?:[ \t]+-?[0-9.eE+]+)?(?:[ \t]*#.*)?[ \t\r]*$"
)
_SIMPLE_KEY = re.compile(rf"(?:{_NAME})(?:{_LABELS})?$")
_LABEL = re.compile(r"[ \t,]*(?:\"((?:[^\"\\\n]|\\.)*)\"|([a-zA-Z_][\w.]*))[ \t]*(?:=[ \t]*\"((?:[^\"\\\n]|\\.)*)\")?")
_ESCAPE = re.compile(r"\\(.)")
# More broken lines than these are counted, not quoted.
_QUOTED_PROBLEMS = 3


class Lines(NamedTuple):
    """keys[i] is the series as written ('name{a="b"}'), values[i] its value text."""

    keys: list[str]
    values: list[str]


class Series(NamedTuple):
    name: str
    labels: dict[str, str]


def split_lines(text: str) -> Lines:
    """Fast split, right for plain 'series value' lines; check `is_plain` once per shape."""
    keys: list[str] = []
    values: list[str] = []
    add_key, add_value = keys.append, values.append
    for line in text.split("\n"):
        if line and line[0] != "#":
            key, _, value = line.rpartition(" ")
            add_key(key)
            add_value(value)
    return Lines(keys, values)


def is_plain(keys: list[str]) -> bool:
    """True when every line was exactly 'series value', so that split_lines told the truth."""
    match = _SIMPLE_KEY.match
    return all(match(key) for key in keys)


def read_lines(text: str) -> tuple[Lines, tuple[str, ...]]:
    """The slow way: every legal line, and what was wrong with the others."""
    keys: list[str] = []
    values: list[str] = []
    problems: list[str] = []
    broken = 0
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped[0] == "#":
            continue
        found = _LINE.match(line) if len(line) <= 65536 else None
        if found is None or not found[1].strip() or not is_number(found[2]):
            broken += 1
            if broken <= _QUOTED_PROBLEMS:
                problems.append(f"line {number} is not a sample: {clean(stripped, 60)}")
            continue
        keys.append(found[1].strip())
        values.append(found[2])
    if broken > _QUOTED_PROBLEMS:
        problems.append(f"{broken - _QUOTED_PROBLEMS} more lines are not samples")
    return Lines(keys, values), tuple(problems)


def is_number(text: str) -> bool:
    """A float as the text format writes one."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def parse_series(key: str) -> Series:
    """'name{a="b"}' or '{"name",a="b"}' to name and unescaped, uncleaned labels."""
    name, brace, rest = key.partition("{")
    name = name.strip()
    labels: dict[str, str] = {}
    if brace:
        for found in _LABEL.finditer(rest[: rest.rfind("}")]):
            quoted, bare, value = found.groups()
            label = _unescape(quoted) if quoted is not None else bare
            if value is None:
                name = name or label
            else:
                labels[label] = _unescape(value)
    return Series(name, labels)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], text)
