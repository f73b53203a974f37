"""The series of one page, by name."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from triage.dialects.exposition import Series


class Placed(NamedTuple):
    """One series of a page: its labels and its place among the values."""

    labels: dict[str, str]
    place: int


class PageIndex:
    """The series of one page by name. families: with and without the suffix that the text format adds."""

    def __init__(self, series: Iterable[Series]) -> None:
        self.by_name: dict[str, dict[tuple[tuple[str, str], ...], Placed]] = defaultdict(dict)
        for place, (name, labels) in enumerate(series):
            if "." in name:
                # UTF-8 names, as OpenTelemetry writes them, in the spelling of every older exporter.
                name = name.replace(".", "_")
                labels = {label.replace(".", "_"): value for label, value in labels.items()}
            # A series that stands twice is the last one's value, not the sum of both.
            self.by_name[name][tuple(sorted(labels.items()))] = Placed(labels, place)
        self._respelled = ("", "")
        self._shared: PageIndex | None = None
        self._know_families()

    def _know_families(self) -> None:
        self.families = frozenset(self.by_name) | frozenset(map(base_name, self.by_name))

    def under(self, prefixes: tuple[str, ...]) -> "PageIndex":
        """The same page with names that begin with another of the prefixes spelled with the first one."""
        used = self.prefix_used(prefixes)
        if not used or used == prefixes[0]:
            return self
        spelled = PageIndex(())
        for name, series in self.by_name.items():
            spelled.by_name[prefixes[0] + name[len(used) :] if name.startswith(used) else name] = series
        spelled._respelled = (prefixes[0], used)
        spelled._know_families()
        return spelled

    def prefix_used(self, prefixes: tuple[str, ...]) -> str:
        """The first of the prefixes that a name on the page begins with; '' when none does."""
        return next((prefix for prefix in prefixes if any(name.startswith(prefix) for name in self.by_name)), "")

    def without(self, strange: Callable[[dict[str, str]], bool]) -> "PageIndex":
        """The same page without the series whose labels are strange; itself when there are none."""
        if not any(strange(placed.labels) for series in self.by_name.values() for placed in series.values()):
            return self
        kept = PageIndex(())
        for name, series in self.by_name.items():
            own = {identity: placed for identity, placed in series.items() if not strange(placed.labels)}
            if own:
                kept.by_name[name] = own
        kept._respelled = self._respelled
        kept._know_families()
        return kept

    def divided(self, label: str, models: Iterable[str]) -> dict[str, "PageIndex"]:
        """For each model the series that name it, and those that name none, which all models share.

        In one pass: looking through the whole page for each of its models took 2.5 s for 100 of them.
        """
        parts = {model: PageIndex(()) for model in models}
        shared = PageIndex(())
        for name, series in self.by_name.items():
            for identity, placed in series.items():
                named = placed.labels.get(label)
                part = shared if named is None else parts.get(named)
                if part is not None:
                    part.by_name[name][identity] = placed
        for part in parts.values():
            part.families, part._respelled, part._shared = self.families, self._respelled, shared
        return parts

    def as_exported(self, name: str) -> str:
        """The name as the page has it."""
        here, there = self._respelled
        return there + name[len(here) :] if here and name.startswith(here) else name

    def series(self, name: str) -> list[Placed]:
        own = list(self.by_name[name].values()) if name in self.by_name else []
        return own + self._shared.series(name) if self._shared is not None else own

    def has(self, name: str) -> bool:
        return name in self.families


def base_name(name: str) -> str:
    """The family behind a series: without the suffix that the text format adds."""
    for suffix in ("_bucket", "_count", "_sum", "_total", "_created"):
        if name.endswith(suffix):
            return name[: -len(suffix)]
    return name
