"""Live names put into a runbook, so that its commands can be copied as they stand.

The names come from remote systems. In code they become one shell word (`shlex.quote`), outside of
it plain text: nothing in a name is read as Markdown, as shell or as a placeholder again.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from itertools import groupby

from triage.domain.text import clean
from triage.runbook.book import Runbook
from triage.runbook.markdown import Part, pieces, scan

# What the shipped runbooks ask for. A name that is not known stays visible as <name>.
PLACEHOLDERS: Mapping[str, str] = {
    "replica": "pod or target that the verdict is about",
    "namespace": "Kubernetes namespace of the engines",
    "workload": "what owns the pods, as in deployment/chat",
    "node": "node the replica runs on",
    "model": "model as clients name it",
    "url": "base URL of the replica",
    "peer_url": "base URL of another replica of the model",
    "gateway_url": "base URL that clients use",
    "prometheus_url": "base URL of the Prometheus server",
}

# ${name} is the shell's and %{name} curl's.
PLACEHOLDER = re.compile(r"(?<![$%])\{([a-z][a-z0-9_]*)\}")

_LONGEST = 500  # a longer name would be cut, and a cut name is a wrong one
# Hyphens inside a word and points inside a number mean nothing to Markdown; the rest of the
# punctuation may (CommonMark 2.4: each may be escaped), also by making a link of a bare address.
_PUNCTUATION = re.compile(r"(?<![A-Za-z0-9])-|-(?![A-Za-z0-9])|(?<![0-9])\.|\.(?![0-9])|[!-,/:-@\[-`{-~]")


def render(runbook: Runbook, names: Mapping[str, str]) -> str:
    """The body of the runbook with its placeholders filled in, as Markdown. names: remote text is fine."""
    known = {name: value for name, value in ((name, _usable(value)) for name, value in names.items()) if value}
    filled: list[str] = []
    for line in scan(runbook.body, runbook.first):
        if line.part is Part.TEXT:
            filled.append("".join(_fill_piece(piece.text, piece.ticks, known) for piece in pieces(line.text)))
        elif line.part is Part.CODE:
            filled.append(_fill(line.text, known, _word))
        else:
            filled.append(line.text)
    return "\n".join(filled)


def _usable(value: str) -> str:
    name = clean(value, _LONGEST + 1).strip()
    return name if len(name) <= _LONGEST else ""


def _fill(text: str, known: Mapping[str, str], write: Callable[[str], str | None]) -> str:
    def one(found: re.Match[str]) -> str:
        value = known.get(found[1])
        written = write(value) if value is not None else None
        return written if written is not None else f"<{found[1]}>"

    return PLACEHOLDER.sub(one, text)


def _fill_piece(text: str, ticks: int, known: Mapping[str, str]) -> str:
    if not ticks:
        return PLACEHOLDER.sub(lambda found: _plain(known.get(found[1], f"<{found[1]}>")), text)
    code = _fill(text, known, _word)
    # A name with backticks must not close the span: its delimiter is made longer than any run inside.
    longest = max((len(list(run)) for tick, run in groupby(code) if tick == "`"), default=0)
    fence = "`" * max(ticks, longest + 1 if code != text else 0)
    return f"{fence}{code}{fence}"


def _word(value: str) -> str | None:
    """One shell word; None for what a command would take for an option, however quoted."""
    return None if value.startswith("-") else shlex.quote(value)


def _plain(value: str) -> str:
    return _PUNCTUATION.sub(lambda found: f"\\{found[0]}", value)
