"""The key map as it is bound on the view that asked."""

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from triage.monitor.observation import Observation
from triage.tui import look
from triage.tui.keys import SORT
from triage.tui.lines import line
from triage.tui.reader import Reader
from triage.tui.session import Session
from triage.tui.view import View
from triage.tui.wording import fit, pack

Groups = Sequence[tuple[str, Sequence[tuple[str, str]]]]

_MARKS = (
    ("▸", "the row under the cursor"),
    ("!", "over a limit / in a verdict"),
    ("?", "dark, or no engine metrics"),
    ("· ↑", "stale / far above its peers"),
    ("–", "not known: enter says why"),
    ("~", "rate from assumed interval"),
    ("5–10", "the bucket a quantile is in"),
    ("nomet", "answers, no engine metrics"),
    ("+*** -*··", "for, against, how strongly"),
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
    two = width >= 76
    blocks = [_block(*group, width // 2 if two else width) for group in [*groups, ("Marks", _MARKS)]]
    left: list[Text] = []
    right: list[Text] = []
    for block in blocks:
        column = left if len(left) <= len(right) or not two else right
        column.extend(block)
    lines = []
    for place in range(max(len(left), len(right))):
        row = left[place].copy() if place < len(left) else line()
        if place < len(right):
            row.append(" " * max(width // 2 - row.cell_len, 1))
            row.append_text(right[place])
        lines.append(row)
    return lines


def _block(heading: str, entries: Sequence[tuple[str, str]], width: int) -> list[Text]:
    lines = [line((f" {heading}", look.HEADING))]
    if heading == SORT.description:
        rows = pack((f"{keys} {what}" for keys, what in entries), width - 3, 9, separator="  ")
        return [*lines, *(line(f"  {row}") for row in rows), line()]
    lines.extend(line((f"  {fit(keys, 10)}", look.LABEL), what) for keys, what in entries)
    return [*lines, line()]
