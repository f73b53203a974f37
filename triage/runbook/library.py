"""All runbooks that can be used, and finding the one for a verdict or a word."""

import difflib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from triage.domain.verdict import DETAILS, Kind
from triage.resources import directories, files
from triage.runbook.book import Problem, Runbook, RunbookError, Section, examine


class Found(msgspec.Struct, frozen=True):
    """section: where in the runbook the word is treated, or None when it is the runbook's own subject."""

    runbook: Runbook
    section: Section | None = None


class Library(msgspec.Struct, frozen=True):
    """runbooks: a user's own before the shipped ones. problems: of files that could not be used."""

    runbooks: tuple[Runbook, ...]
    problems: tuple[Problem, ...] = ()

    def for_kind(self, kind: Kind) -> Runbook | None:
        """The runbook of a verdict kind."""
        return next((book for book in self.runbooks if kind in book.kinds), None)

    def find(self, word: str) -> Found:
        """By verdict kind, topic, alias or sub-cause, in this order. Raises RunbookError when nothing has that name."""
        for book in self.runbooks:
            if word == book.topic or word in book.kinds:
                return Found(book)
        for book in self.runbooks:
            if word in book.aliases:
                return Found(book, book.section(word))
        for book in self.runbooks:
            if any(word in DETAILS.get(kind, ()) for kind in book.kinds):
                return Found(book, book.section(word))
        raise self._not_found(word)

    def _not_found(self, word: str) -> RunbookError:
        broken = next((problem for problem in self.problems if Path(problem.path).stem == word), None)
        if broken is not None:
            return RunbookError(f"runbook {word} cannot be used", str(broken), "triage runbook lint shows everything")
        known = [name for book in self.runbooks for name in (book.topic, *book.kinds, *book.aliases)]
        near = difflib.get_close_matches(word, known, 1)
        hint = f"did you mean {near[0]}?" if near else "triage runbook list shows all"
        return RunbookError(f"no runbook for {word!r}", hint=hint)


def load(own: Iterable[Path] = ()) -> Library:
    """The shipped runbooks and a user's own over them.

    A file of the same name in an earlier directory wins; one that cannot be used is passed over
    for the next and stands in `problems`: at night a typing error must not take the page away.
    Raises ConfigError when a directory is not there.
    """
    places = directories("runbooks", own)
    ranked: list[tuple[int, Runbook]] = []
    problems: list[Problem] = []
    for candidates in files(places, ".md").values():
        for path in candidates:
            book, found = examine(path)
            if book is not None:
                ranked.append((places.index(path.parent), book))
                break
            problems.extend(found)
    ranked.sort(key=lambda pair: (pair[0], pair[1].topic))
    return Library(tuple(book for _, book in ranked), tuple(problems))
