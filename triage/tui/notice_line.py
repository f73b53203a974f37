"""The line that is only there when something needs saying: errors, silence, a filter."""

from rich.text import Text
from textual.widgets import Static

from triage.tui import look
from triage.tui.wording import fit


class NoticeLine(Static):
    """One line of (text, is it bad?) pieces, gone when there are none."""

    DEFAULT_CSS = """
    NoticeLine { height: 1; display: none; background: $surface; }
    NoticeLine.-shown { display: block; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._pieces: list[tuple[str, bool]] = []

    def show(self, pieces: list[tuple[str, bool]]) -> None:
        if pieces != self._pieces:
            self._pieces = pieces
            self._redraw()

    def on_resize(self) -> None:
        self._redraw()

    def _redraw(self) -> None:
        self.set_class(bool(self._pieces), "-shown")
        # Before its first layout the line has no width of its own yet.
        width = self.size.width or self.app.size.width
        line = Text(no_wrap=True, overflow="crop")
        for text, bad in self._pieces:
            room = width - line.cell_len - 1
            if room > 8:
                line.append(" ")
                line.append(fit(text, room).rstrip(), look.BAD if bad else look.NOTE)
                line.append("  ")
        self.update(line)
