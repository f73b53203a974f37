"""The verdict card as a widget: enter opens the evidence."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static

from triage.monitor.observation import Observation
from triage.tui import look
from triage.tui.arrange import WIDE
from triage.tui.card import card_lines
from triage.tui.keys import LOOK

# The card may take half of an 80×24 screen, and less of a small one: the fleet must stay visible.
_HEIGHT, _HEIGHT_WIDE, _HEIGHT_SMALL = 11, 12, 5


class VerdictCard(Static, can_focus=True):
    DEFAULT_CSS = """
    VerdictCard { height: auto; border-bottom: solid $primary 50%; }
    VerdictCard:focus { background: $surface; border-bottom: heavy $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "evidence", group=LOOK, id="card_open")]

    class Opened(Message):
        """The person wants all the evidence."""

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._observation: Observation | None = None
        self._index = 0
        self._waiting_for = ""
        self._drawn: Text | None = None

    def show(self, observation: Observation | None, index: int, waiting_for: str) -> None:
        """waiting_for: the feed's name, shown until the first round arrives."""
        self._observation, self._index, self._waiting_for = observation, index, waiting_for
        self._redraw()

    def on_resize(self) -> None:
        self._redraw()

    def action_open(self) -> None:
        self.post_message(self.Opened())

    def _redraw(self) -> None:
        width = self.app.size.width
        if self._observation is None or not self._observation.diagnosis.verdicts:
            content = Text(" WAITING", look.HEADING)
            content.append(f"  for the first reading of {self._waiting_for}", look.NORMAL)
        else:
            height = _HEIGHT_WIDE if width >= WIDE else _HEIGHT
            if self.app.size.height < 20:
                height = _HEIGHT_SMALL
            content = Text("\n").join(card_lines(self._observation, self._index, width, height))
        if content != self._drawn:
            self._drawn = content
            self.update(content)
