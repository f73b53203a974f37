"""A scrolling page of ready-made lines. No markup is parsed on the way to the screen."""

from collections.abc import Callable, Sequence

from rich.text import Text
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from triage.tui.keys import MOVE_KEYS

Lines = Callable[[int], Sequence[Text]]


class Reader(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows what `lines(width)` gives, and asks again when the width changes."""

    DEFAULT_CSS = """
    Reader { height: 1fr; overflow-x: hidden; overflow-y: scroll;
             scrollbar-size-vertical: 1; scrollbar-background: $surface; }
    """
    BINDINGS = MOVE_KEYS

    def __init__(self) -> None:
        super().__init__()
        self._source: Lines = lambda _width: ()
        self._lines: list[Text] = []
        self._width = 0

    def show(self, source: Lines) -> None:
        self._source = source
        self._rebuild()

    def on_resize(self) -> None:
        if self._room != self._width:
            self._rebuild()

    @property
    def _room(self) -> int:
        # One column is the scroll bar's. Before the first layout the widget has no width yet.
        return max((self.size.width or self.app.size.width) - 1, 1)

    def _rebuild(self) -> None:
        self._width = self._room
        lines = list(self._source(self._width))
        if lines != self._lines:
            before, self._lines = len(self._lines), lines
            if before != len(lines):
                self.virtual_size = Size(self._width, len(lines))
            self.refresh()

    def render_line(self, y: int) -> Strip:
        place = self.scroll_offset.y + y
        width = self.scrollable_content_region.width
        if place >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        segments = self._lines[place].render(self.app.console, end="")
        return Strip(segments).adjust_cell_length(width).apply_style(self.rich_style)

    def action_move(self, step: int) -> None:
        self.scroll_relative(y=step, animate=False, force=True)

    def action_page(self, step: int) -> None:
        self.scroll_relative(y=step * max(self.size.height - 1, 1), animate=False, force=True)

    def action_end(self, step: int) -> None:
        self.scroll_to(y=self.max_scroll_y if step > 0 else 0, animate=False, force=True)
