"""The fleet table: draws only the rows in sight, and only the lines that changed.

Textual's DataTable keeps every cell of every row: with 1,000 live rows, ten new cells each, one
round costs about 140 ms of CPU in it, and a filter means removing and adding rows. Here a round
costs the rows in sight (under 10 ms), and sorting or filtering is just another list.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from triage.domain.target import TargetState
from triage.tui import look
from triage.tui.arrange import WIDE, Place, places
from triage.tui.cells import Column
from triage.tui.fleet import FleetRow, Level
from triage.tui.keys import MOVE_KEYS, OPEN_KEYS
from triage.tui.wording import fit, fit_middle

_LEVEL_MARK = {Level.WELL: " ", Level.WATCH: "·", Level.OVER_LIMIT: "!", Level.GONE: "?", Level.NAMED: "!"}
_MARK_STYLE = {Level.WATCH: look.NOTE, Level.OVER_LIMIT: look.WARN, Level.GONE: look.BAD, Level.NAMED: look.BAD}


class FleetTable(ScrollView, can_focus=True, inherit_bindings=False):
    """The cursor stays on its row when rows move; at the top it stays at the top, where the worst is."""

    DEFAULT_CSS = """
    FleetTable { height: 1fr; scrollbar-size-vertical: 1; scrollbar-background: $surface; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*MOVE_KEYS, *OPEN_KEYS]

    class Opened(Message):
        """The person wants the details of one row."""

        def __init__(self, row: FleetRow) -> None:
            super().__init__()
            self.row = row

    class Moved(Message):
        """Another row is under the cursor, or its content changed."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[FleetRow] = []
        self._cursor = 0
        self._pinned = False  # the cursor was moved by hand: it follows its row
        self._sorted: Column | None = None
        self._reverse = False

    @property
    def current(self) -> FleetRow | None:
        return self._rows[self._cursor] if self._rows else None

    def show(self, rows: Sequence[FleetRow], by: Column | None, reverse: bool) -> None:
        """Rows in their final order. by, reverse: for the arrow in the heading."""
        before, under = self._rows, self.current
        top = self.scroll_offset.y
        headings = (by, reverse) != (self._sorted, self._reverse)
        self._rows, self._sorted, self._reverse = list(rows), by, reverse
        cursor = 0
        if self._pinned:
            places_now = (place for place, row in enumerate(rows) if under is not None and row.key == under.key)
            cursor = next(places_now, self._clamped(self._cursor))
        moved, self._cursor = cursor - self._cursor, cursor
        if len(rows) != len(before) or self.virtual_size.height != len(rows) + 1:
            self.virtual_size = Size(self.size.width, len(rows) + 1)
            self.refresh()
        elif moved or headings:
            self.refresh()
        else:
            self._refresh_changed(before)
        if moved and self._pinned:
            self.scroll_to(y=max(top + moved, 0), animate=False, force=True)
        self.post_message(self.Moved())

    def _refresh_changed(self, before: Sequence[FleetRow]) -> None:
        top, height = self.scroll_offset.y, self.size.height - 1
        for place in range(top, min(top + height, len(self._rows))):
            if before[place] != self._rows[place]:
                self._refresh_row(place)

    def _refresh_row(self, place: int) -> None:
        self.refresh(Region(0, place - self.scroll_offset.y + 1, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        """The heading is line 0 whatever the scroll position; rows scroll below it."""
        width = self.scrollable_content_region.width
        columns = places(width if self.app.size.width < WIDE else max(width, WIDE))
        if y == 0:
            return Strip(self._heading(columns)).adjust_cell_length(width, self.rich_style)
        place = self.scroll_offset.y + y - 1
        if place >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        strip = Strip(self._segments(place, columns)).adjust_cell_length(width)
        if place == self._cursor and self.has_focus:
            return strip.apply_style(self._cursor_style())
        return strip.apply_style(self.rich_style)

    def _cursor_style(self) -> Style:
        if self.app.no_color:
            return Style(reverse=True)
        return self.rich_style + Style(bgcolor=self.app.theme_variables["panel"])

    def _heading(self, columns: Sequence[Place]) -> list[Segment]:
        style = self.rich_style + look.LABEL
        segments = [Segment("  ", style)]
        for place in columns:
            text = place.column.value
            shown = self._sorted in (place.column, Column.TTFT95 if place.column is Column.TTFT else place.column)
            if shown:
                text += "▴" if self._reverse else "▾"
            elif place.right:
                text += " "  # above the cell that is kept for marks
            segments.append(Segment(fit(text, place.width, right=place.right), style))
        return segments

    def _segments(self, place: int, columns: Sequence[Place]) -> list[Segment]:
        row = self._rows[place]
        dimmed = look.DIM if row.state is TargetState.STALE else look.NORMAL
        segments = [
            Segment("▸" if place == self._cursor else " ", look.BOLD),
            Segment(_LEVEL_MARK[row.level], _MARK_STYLE.get(row.level, look.NORMAL)),
        ]
        left = sum(column.width for column in columns)
        for column in columns:
            if row.why and column.right:
                # No numbers to show: the reason takes their place.
                segments.append(Segment(fit(f" {row.why}", left), _MARK_STYLE.get(row.level, look.NORMAL)))
                break
            segments.extend(_cell(row, column, dimmed))
            left -= column.width
        return segments

    def _clamped(self, place: int) -> int:
        return min(max(place, 0), max(len(self._rows) - 1, 0))

    def _move_to(self, place: int) -> None:
        old, self._cursor = self._cursor, self._clamped(place)
        self._refresh_row(old)
        self._refresh_row(self._cursor)
        height = max(self.size.height - 1, 1)
        top = self.scroll_offset.y
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, force=True)
        elif self._cursor >= top + height:
            self.scroll_to(y=self._cursor - height + 1, animate=False, force=True)
        self.post_message(self.Moved())

    def action_move(self, step: int) -> None:
        self._pinned = True
        self._move_to(self._cursor + step)

    def action_page(self, step: int) -> None:
        self._pinned = True
        self._move_to(self._cursor + step * max(self.size.height - 2, 1))

    def action_end(self, step: int) -> None:
        self._pinned = step > 0
        self._move_to(len(self._rows) - 1 if step > 0 else 0)

    def action_open(self) -> None:
        if self.current is not None:
            self.post_message(self.Opened(self.current))

    def on_click(self, event: events.Click) -> None:
        place = self.scroll_offset.y + event.y - 1
        if event.y > 0 and place < len(self._rows):
            self._pinned = True
            self._move_to(place)
            if event.chain == 2:
                self.action_open()

    def on_resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows) + 1)
        self.refresh()


def _cell(row: FleetRow, place: Place, dimmed: Style) -> list[Segment]:
    if place.column is Column.REPLICA:
        style = look.BOLD if row.level > Level.WELL and not dimmed else dimmed
        return [Segment(fit_middle(row.name, place.width - 1) + " ", style)]
    if place.column is Column.MODEL:
        return [Segment(fit_middle(row.model, place.width - 1) + " ", dimmed)]
    if place.column is Column.STATE:
        word = row.state.value if place.width > 10 else look.STATE_SHORT[row.state]
        return [Segment(fit(word, place.width), look.STATE_STYLE[row.state])]
    cell = row.cells.get(place.column)
    text, mark = (cell.text, cell.mark) if cell else ("–", "")
    style = look.WARN if mark == "!" else look.NOTE if mark else dimmed
    return [Segment(fit(text, place.width - 1, right=True), style), Segment(mark or " ", style)]
