"""The verdict card as a widget: enter opens the evidence."""

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static

from triage.monitor.observation import Observation
from triage.tui import look
from triage.tui.card import card_lines
from triage.tui.keys import LOOK
from triage.tui.lines import line

# The card may take half of the screen, and not more than it ever needs: the fleet must stay visible.
_MOST = 12


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
        self._probe_on = False
        self._drawn: Text | None = None

    def show(self, observation: Observation | None, index: int, waiting_for: str, *, probe_on: bool) -> None:
        """waiting_for: the feed's name, shown until the first round arrives."""
        self._observation, self._index, self._waiting_for = observation, index, waiting_for
        self._probe_on = probe_on
        self._redraw()

    def on_resize(self) -> None:
        self._redraw()

    def action_open(self) -> None:
        self.post_message(self.Opened())

    def _redraw(self) -> None:
        width = self.app.size.width
        if self._observation is None or not self._observation.diagnosis.verdicts:
            content = line((" WAITING", look.HEADING), f"  for the first reading of {self._waiting_for}")
        else:
            height = max(min(self.app.size.height // 2, _MOST), 1)
            lines = card_lines(self._observation, self._index, width, height, probe_on=self._probe_on)
            content = Text("\n").join(lines)
        if content != self._drawn:
            self._drawn = content
            self.update(content)
