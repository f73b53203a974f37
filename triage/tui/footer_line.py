"""The last line: the few keys that matter here, taken from what is really bound."""

from rich.text import Text
from textual.app import RenderResult
from textual.widget import Widget

from triage.tui import look
from triage.tui.keys import footer_pieces


class FooterLine(Widget):
    """Drops whole keys from the end when the line is short, but always ends in help."""

    DEFAULT_CSS = """
    FooterLine { height: 1; dock: bottom; background: $panel; }
    """

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _screen: self.refresh())

    def render(self) -> RenderResult:
        pieces = footer_pieces(self.screen.active_bindings, self.app.get_key_display)
        last = [piece for piece in pieces if piece[1] == "help"]
        rest = [piece for piece in pieces if piece[1] != "help"]
        tail = _line(last)
        line = Text(no_wrap=True, overflow="crop")
        for piece in rest:
            addition = _line([piece])
            if line.cell_len + addition.cell_len + tail.cell_len > self.size.width:
                continue
            line.append_text(addition)
        return line.append_text(tail)


def _line(pieces: list[tuple[str, str]]) -> Text:
    text = Text()
    for key, word in pieces:
        text.append(f" {key}", look.HEADING)
        text.append(f" {word} ")
    return text
