"""Building styled lines. Every style is a span: a Text's own style is lost where it has no spans."""

from collections.abc import Iterable

from rich.style import Style
from rich.text import Text

from triage.tui import look


def line(*pieces: str | tuple[str, Style]) -> Text:
    """One line that is never wrapped; plain text only, so nothing in it is markup."""
    text = Text(no_wrap=True, overflow="crop")
    for piece in pieces:
        if isinstance(piece, str):
            text.append(piece)
        else:
            text.append(*piece)
    return text


def labelled(label: str, rows: Iterable[str], indent: int, cells: int, style: Style = look.NORMAL) -> list[Text]:
    """`label` before the first row, in `cells` cells after `indent` spaces; the other rows stand below it."""
    return [
        line((" " * indent + f"{label if place == 0 else '':<{cells}}", look.LABEL), (row, style))
        for place, row in enumerate(rows)
    ]
