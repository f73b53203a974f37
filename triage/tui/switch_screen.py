"""The demo's incidents: choose one, and watch what it does to the verdict."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from triage.tui.choice_list import Choice, ChoiceList
from triage.tui.switch import Switch


class SwitchScreen(ModalScreen[Switch | None]):
    """Gives back the chosen switch, or None."""

    DEFAULT_CSS = """
    SwitchScreen { align: center middle; background: $background 40%; }
    SwitchScreen > Vertical { height: auto; width: 72; max-width: 100%; background: $surface;
                              border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,D", "dismiss_none", "back", show=False),
        Binding("j", "step(1)", "next", show=False),
        Binding("k", "step(-1)", "previous", show=False),
    ]

    def __init__(self, switches: Sequence[Switch]) -> None:
        super().__init__()
        self._switches = list(switches)
        self._list = ChoiceList()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static("Incidents: enter begins one, esc leaves; :incident A+B begins two", markup=False)
            yield self._list

    def on_mount(self) -> None:
        active = [switch.active() for switch in self._switches]
        self._list.show(
            [
                Choice(f"{'●' if on else ' '} {switch.name}", switch.title)
                for switch, on in zip(self._switches, active, strict=True)
            ]
        )
        if True in active:
            self._list.highlighted = active.index(True)
        self._list.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._switches[event.option_index])

    def action_step(self, step: int) -> None:
        if step > 0:
            self._list.action_cursor_down()
        else:
            self._list.action_cursor_up()

    def action_dismiss_none(self) -> None:
        self.dismiss(None)
