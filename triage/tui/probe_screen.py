"""Sending the probe: says first what it costs, shows how far it is, can be stopped."""

import asyncio
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from triage.domain.errors import TriageError
from triage.domain.text import clean
from triage.monitor.observation import Feed
from triage.tui import look

_LINES = 5  # of progress that stay visible


class ProbeScreen(ModalScreen[tuple[str, bool] | None]):
    """Gives back (how it went, did it fail?), or None when nothing was sent."""

    DEFAULT_CSS = """
    ProbeScreen { align: center middle; background: $background 40%; }
    ProbeScreen > Vertical { height: auto; width: 76; max-width: 100%; background: $surface;
                             border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "send", "send", show=False),
        Binding("escape,n,q", "stop", "stop", show=False),
    ]

    def __init__(self, feed: Feed, cost: str) -> None:
        """cost: what sending it costs, in words."""
        super().__init__()
        self._feed = feed
        self._cost = cost
        self._said: list[str] = []
        self._sending = False
        self._text = Static("", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._text

    def on_mount(self) -> None:
        self._draw()

    def _draw(self) -> None:
        text = Text()
        if not self._sending:
            text.append("Send the probe?\n", look.HEADING)
            text.append(f"It sends {clean(self._cost)}; it queues like a user's request.\n\n")
            text.append("y", look.HEADING)
            text.append(" or enter sends   ")
            text.append("esc", look.HEADING)
            text.append(" leaves without sending")
        else:
            text.append("Probe on its way\n", look.HEADING)
            for line in self._said[-_LINES:] or ["…"]:
                text.append(f"{line}\n")
            text.append("\nesc", look.HEADING)
            text.append(" stops it")
        self._text.update(text)

    def _progress(self, line: str) -> None:
        self._said.append(clean(line))
        if self.is_attached:
            self._draw()

    def action_send(self) -> None:
        if not self._sending:
            self._sending = True
            self._draw()
            self._send()

    def action_stop(self) -> None:
        if self._sending:
            self.workers.cancel_node(self)
            self.dismiss(("probe stopped before it was done", True))
        else:
            self.dismiss(None)

    @work(exclusive=True, group="probe", exit_on_error=False)
    async def _send(self) -> None:
        try:
            outcome = (await self._feed.probe(self._progress), False)
        except asyncio.CancelledError:
            raise
        except TriageError as error:
            outcome = (str(error), True)
        except Exception as error:  # a defect of the probe must not take the screen away
            outcome = (f"probe failed: {type(error).__name__}: {error}", True)
        self.dismiss(outcome)
