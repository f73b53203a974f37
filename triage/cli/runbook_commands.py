"""`triage runbook`: list, show, lint. What is known of the files, the package `triage.runbook` knows."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.cli.exits import Exit

if TYPE_CHECKING:
    from triage.runbook import Library, Runbook

app = typer.Typer(
    help="Runbooks: what to look at and what to do, one for each verdict.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


class ListFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


OwnOption = Annotated[
    list[Path] | None,
    typer.Option("--runbooks", metavar="DIR", help="Your own runbooks, before the shipped ones. Repeatable."),
]


@app.command("list")
def list_command(
    own: OwnOption = None,
    output: Annotated[ListFormat, typer.Option("--format", help="How to print the list.")] = ListFormat.TEXT,
) -> None:
    """All runbooks, their severity, and the topics that lead to them."""
    from triage.cli.output import write

    library = _load(own)
    write(_as_json(library) if output is ListFormat.JSON else _as_table(library))


@app.command("show")
def show_command(
    word: Annotated[str, typer.Argument(metavar="KIND_OR_TOPIC", help="A verdict, a topic, an alias or a sub-cause.")],
    raw: Annotated[bool, typer.Option("--raw", help="The Markdown as it stands in the file.")] = False,
    own: OwnOption = None,
) -> None:
    """One runbook. Names that only a running system knows stand as <replica>."""
    from triage.cli.output import notice, write
    from triage.runbook import render

    found = _load(own).find(word)
    if found.section is not None:
        notice(f"{word}: see {found.section.title!r} in {found.runbook.topic}")
    if raw:
        write(found.runbook.path.read_text(encoding="utf-8-sig"))
    else:
        write(_drawn(render(found.runbook, {})))


@app.command("lint")
def lint_command(
    directory: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="Instead of the shipped ones.")] = None,
) -> None:
    """Check runbooks: front matter, headings, marks on steps, placeholders, words that lead nowhere or twice."""
    from triage.cli.output import notice, write
    from triage.domain.errors import ConfigError
    from triage.resources import directories, files, shipped
    from triage.runbook import lint

    place = shipped("runbooks") if directory is None else directories("runbooks", [directory])[0]
    paths = [candidates[0] for candidates in files([place], ".md").values()]
    if not paths:
        raise ConfigError("no runbooks here", f"{place} has no .md file")
    problems = lint(paths)
    write("".join(f"{problem}\n" for problem in problems))
    notice(f"{len(paths)} runbooks, {len(problems)} problems")
    raise typer.Exit(Exit.WRONG if problems else Exit.OK)


def _load(own: list[Path] | None) -> "Library":
    from triage.cli.output import notice
    from triage.runbook import load

    library = load(own or ())
    for problem in library.problems:
        notice(f"passed over: {problem}")
    return library


def _drawn(markdown: str) -> str:
    """Laid out for a terminal; as Markdown for a pipe, where lines must stay whole."""
    import sys

    if not sys.stdout.isatty():
        return markdown.strip("\n") + "\n"
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    with console.capture() as captured:
        console.print(Markdown(markdown))
    return captured.get()


def _as_table(library: "Library") -> str:
    width = max(len(book.topic) for book in library.runbooks)
    return "".join(_row(book, width) for book in library.runbooks)


def _row(book: "Runbook", width: int) -> str:
    also = f"  ({', '.join(book.aliases)})" if book.aliases else ""
    return f"{book.topic:<{width}}  {book.severity.value:<8}  {book.title.rpartition(': ')[2]}{also}\n"


def _as_json(library: "Library") -> str:
    import msgspec

    books = [
        {
            "topic": book.topic,
            "title": book.title,
            "verdicts": book.kinds,
            "aliases": book.aliases,
            "severity": book.severity,
            "last_reviewed": book.last_reviewed,
            "path": str(book.path),
        }
        for book in library.runbooks
    ]
    document = {"schema": "triage.runbooks/1", "runbooks": books}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
