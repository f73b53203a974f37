"""Runbooks: load, match, fill in with live names, lint.

A runbook is a Markdown file `<topic>.md` with front matter (topic, verdicts, aliases, severity,
last_reviewed), the headings of `HEADINGS`, and a mark on every step. A level-3 heading names the
sub-causes and aliases that its section covers as code spans.
"""

from triage.runbook.book import Problem, Runbook, RunbookError, Section, Severity, examine
from triage.runbook.fill import PLACEHOLDERS, render
from triage.runbook.library import Found, Library, load
from triage.runbook.lint import HEADINGS, MARKS, lint

__all__ = [
    "HEADINGS",
    "MARKS",
    "PLACEHOLDERS",
    "Found",
    "Library",
    "Problem",
    "Runbook",
    "RunbookError",
    "Section",
    "Severity",
    "examine",
    "lint",
    "load",
    "render",
]
