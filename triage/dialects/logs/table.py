"""The schema of markers.toml: which words in a log line mean what."""

import re
from functools import cache, cached_property
from importlib import resources

import msgspec

from triage.domain.logs import LogMark


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """needle: literal text that must be in the line; it is searched for first, in the whole file at once.

    pattern: what the line must match besides. engines: whose log it is found in, any engine's when empty.
    source: where the wording is from.
    """

    needle: str
    source: str
    pattern: str = ""
    engines: tuple[str, ...] = ()

    @cached_property
    def compiled(self) -> re.Pattern[str] | None:
        return re.compile(self.pattern) if self.pattern else None

    def match(self, line: str) -> re.Match[str] | None:
        """The match of the pattern, or of the needle when there is none."""
        return (self.compiled or re.compile(re.escape(self.needle))).search(line)


class Marker(_Words, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A line with a meaning. Of several in one line the first in the table counts."""

    mark: LogMark


class Limit(_Words, frozen=True, forbid_unknown_fields=True):
    """A start line that says how many requests may run at once; group 1 of the pattern is the number."""


class Progress(_Words, frozen=True, forbid_unknown_fields=True):
    """A line that is written only when the engine has made tokens."""


class Harmless(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A line in which words of the other tables mean nothing, and why; but for the marks it allows."""

    pattern: str
    why: str
    allows: tuple[LogMark, ...] = ()

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    marker: tuple[Marker, ...]
    limit: tuple[Limit, ...]
    progress: tuple[Progress, ...]
    harmless: tuple[Harmless, ...]

    def harmless_in(self, line: str) -> Harmless | None:
        """Why the words in this line mean nothing, if so."""
        return next((row for row in self.harmless if row.compiled.search(line)), None)


@cache
def marker_table() -> Table:
    """The shipped table."""
    return msgspec.toml.decode((resources.files("triage.dialects.logs") / "markers.toml").read_bytes(), type=Table)
