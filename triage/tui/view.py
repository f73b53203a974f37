"""What every full screen of the app has: title, notice and footer lines, and a way back."""

from abc import abstractmethod

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget

from triage.monitor.observation import Observation
from triage.tui import numbers
from triage.tui.footer_line import FooterLine
from triage.tui.keys import VIEW_KEYS
from triage.tui.notice_line import NoticeLine
from triage.tui.session import Session
from triage.tui.title_line import TitleLine


class View(Screen[None]):
    """A screen that shows Observations. Subclasses give the body and draw one observation."""

    DEFAULT_CSS = """
    View { overflow: hidden; }
    """
    BINDINGS = VIEW_KEYS
    ROOT = False

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self._title_line = TitleLine(session)
        self._notice_line = NoticeLine()

    def compose(self) -> ComposeResult:
        yield self._title_line
        yield self._notice_line
        yield from self.body()
        yield FooterLine()

    @abstractmethod
    def body(self) -> list[Widget]:
        """Widgets between the notice line and the footer."""

    @abstractmethod
    def draw(self, observation: Observation | None) -> None:
        """Hand the observation to the widgets. May raise: a bad one becomes an error line."""

    def crumb(self) -> str:
        """Name of this view in the title line; "" for the overview."""
        return ""

    def notices(self) -> list[tuple[str, bool]]:
        """What this view itself has to say in the notice line."""
        return []

    def refresh_view(self) -> None:
        """Draw what is to be shown now, whatever it is made of."""
        try:
            self.draw(self.session.shown)
            self.session.draw_error = ""
        except Exception as error:  # any defect of one round must not end the screen of a person on call
            self.session.draw_error = f"this reading could not be drawn: {type(error).__name__}: {error}"
        self.tick()

    def tick(self) -> None:
        """Once a second: what ages without a new observation."""
        self._title_line.show(self.crumb())
        silent = self.session.silent_for_s
        problems = [self.session.error, self.session.draw_error]
        if silent is not None and not self.session.error:
            problems.append(f"no new reading for {numbers.age(silent)}")
        self._notice_line.show([(text, True) for text in problems if text] + self.notices())

    def on_screen_resume(self) -> None:
        self.refresh_view()

    def action_close(self) -> None:
        if self.ROOT:
            self.app.exit()
        else:
            self.app.pop_screen()
