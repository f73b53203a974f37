"""The schema of markers.toml: which words in a log line mean what."""

import re
from functools import cache, cached_property
from importlib import resources

import msgspec

from triage.domain.logs import LogMark, StartPhase

# A progress bar as tqdm draws it: "| 75/241 [12:40<28:13, 10.2s/it]"; rows write <bar> for it.
_BAR = (
    r"(?: Completed)? ?\|[^|\d]{0,120}\|? ?(?P<done>\d{1,7})/(?P<total>\d{1,7})"
    r"(?: \[[^\],]{1,40}, {1,3}(?P<pace>\d{1,6}(?:\.\d{1,3})?)(?P<unit>s/it|it/s))?"
)


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
        return re.compile(self.pattern.replace("<bar>", _BAR)) if self.pattern else None

    def match(self, line: str) -> re.Match[str] | None:
        """The match of the pattern, or of the needle when there is none."""
        return (self.compiled or re.compile(re.escape(self.needle))).search(line)


class Marker(_Words, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A line with a meaning. Of several in one line the first in the table counts.

    phase: the part of a start it tells of; begins: a process writes it once, when it is launched. Groups of its
    pattern: done, total, pace, unit (progress), percent, seconds (how long the phase took), path, key (of a cache
    of compiled code), hit, miss (whether that cache was used).
    """

    mark: LogMark
    phase: StartPhase | None = None
    begins: bool = False


class Launch(_Words, frozen=True, forbid_unknown_fields=True):
    """The first line of a process. It may carry other rows' words: all its arguments are in it."""


class Stop(_Words, frozen=True, forbid_unknown_fields=True):
    """A line of a process that was told to stop: fatal words behind it are of its orderly end."""


class ReuseRow(_Words, frozen=True, forbid_unknown_fields=True):
    """A line that says how much of a prompt was found in the cache. Groups of its pattern: track, prompt, cached."""


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
    launch: tuple[Launch, ...]
    stop: tuple[Stop, ...]
    reuse: tuple[ReuseRow, ...]
    harmless: tuple[Harmless, ...]

    def harmless_in(self, line: str) -> Harmless | None:
        """Why the words in this line mean nothing, if so."""
        return next((row for row in self.harmless if row.compiled.search(line)), None)


@cache
def marker_table() -> Table:
    """The shipped table."""
    return msgspec.toml.decode((resources.files("triage.dialects.logs") / "markers.toml").read_bytes(), type=Table)
