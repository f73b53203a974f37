"""A runbook, rendered from Markdown. Links do nothing: the screen stays a screen."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Markdown, Static

from triage.domain.text import clean
from triage.monitor.observation import Observation
from triage.tui.keys import MOVE_KEYS
from triage.tui.session import Session
from triage.tui.view import View


class RunbookPage(VerticalScroll, can_focus=True, inherit_bindings=False):
    """Scrolls with the keys of the other views."""

    DEFAULT_CSS = """
    RunbookPage { height: 1fr; scrollbar-size-vertical: 1; scrollbar-background: $surface; padding: 0 1; }
    RunbookPage Markdown { padding: 0; margin: 0; background: transparent; }
    RunbookPage Markdown > * { margin: 0 0 1 0; }
    RunbookPage MarkdownH1 { content-align: left middle; }
    """
    BINDINGS = MOVE_KEYS

    def __init__(self, text: str | None, kind: str) -> None:
        super().__init__()
        self._text = text
        self._kind = kind

    def compose(self) -> ComposeResult:
        if self._text is None:
            yield Static(f"There is no runbook for {clean(self._kind)}.", markup=False)
        else:
            yield Markdown(self._text, open_links=False)

    def action_move(self, step: int) -> None:
        # At once: keys that come in one burst would all start from the same place otherwise.
        self.scroll_relative(y=step, animate=False, force=True, immediate=True)

    def action_page(self, step: int) -> None:
        self.scroll_relative(y=step * max(self.size.height - 1, 1), animate=False, force=True, immediate=True)

    def action_end(self, step: int) -> None:
        self.scroll_to(y=self.max_scroll_y if step > 0 else 0, animate=False, force=True)

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        event.stop()


class RunbookScreen(View):
    AUTO_FOCUS = "RunbookPage"

    def __init__(self, session: Session, kind: str, text: str | None) -> None:
        """text: Markdown with every placeholder filled, remote text in it already made harmless; or None."""
        super().__init__(session)
        self._kind = kind
        self._page = RunbookPage(text, kind)

    def body(self) -> list[Widget]:
        return [self._page]

    def crumb(self) -> str:
        return f"runbook {self._kind}"

    def draw(self, observation: Observation | None) -> None:
        """The text stays as it was opened: nobody wants a runbook to change while reading it."""
