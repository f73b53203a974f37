"""Child process: the smallest Textual app that shows something, to compare with."""

from textual.app import App, ComposeResult
from textual.widgets import Static


class PlainApp(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("bench-line")


if __name__ == "__main__":
    PlainApp().run()
