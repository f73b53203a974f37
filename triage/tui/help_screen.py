"""The key map as it is bound on the view that asked."""

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from triage.monitor.observation import Observation
from triage.tui import look
from triage.tui.reader import Reader
from triage.tui.session import Session
from triage.tui.view import View
from triage.tui.wording import fit

Groups = Sequence[tuple[str, Sequence[tuple[str, str]]]]

_MARKS = (
    ("▸", "the row under the cursor"),
    ("!", "breaks a limit, or a verdict names it"),
    ("?", "dark, never seen, or without engine metrics"),
    ("· ↑", "stale, or far above its peers"),
    ("–", "not known: enter says why"),
    ("~", "rate from an assumed interval"),
    ("5–10", "a quantile lies in this bucket"),
    ("nomet", "answers, but without engine metrics"),
)


class HelpScreen(View):
    def __init__(self, session: Session, groups: Groups) -> None:
        super().__init__(session)
        self._groups = groups
        self._reader = Reader()

    def body(self) -> list[Widget]:
        return [self._reader]

    def crumb(self) -> str:
        return "help"

    def draw(self, observation: Observation | None) -> None:  # noqa: ARG002 - the same text in every round
        self._reader.show(lambda width: help_lines(self._groups, width))


def help_lines(groups: Groups, width: int) -> list[Text]:
    """In two columns where there is room for them, so that all of it fits on one screen."""
    blocks = [_block(heading, entries) for heading, entries in [*groups, ("Marks", _MARKS)]]
    left: list[Text] = []
    right: list[Text] = []
    for block in blocks:
        column = left if len(left) <= len(right) or width < 76 else right
        column.extend(block)
    lines = []
    for place in range(max(len(left), len(right))):
        line = left[place].copy() if place < len(left) else Text(no_wrap=True)
        if place < len(right):
            line.append(" " * max(width // 2 - line.cell_len, 1))
            line.append_text(right[place])
        lines.append(line)
    return lines


def _block(heading: str, entries: Sequence[tuple[str, str]]) -> list[Text]:
    lines = [Text(f" {heading}", style=look.HEADING, no_wrap=True)]
    for keys, what in entries:
        line = Text(f"  {fit(keys, 13)}", style=look.LABEL, no_wrap=True)
        line.append(what, look.NORMAL)
        lines.append(line)
    return [*lines, Text()]
