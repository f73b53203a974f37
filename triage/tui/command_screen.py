"""The command line: everything that can be done here, found by typing a part of its name."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList

from triage.tui.choice_list import Choice, ChoiceList
from triage.tui.line_input import LineInput


class Command(msgspec.Struct, frozen=True):
    """name: what is typed. aliases: other words for it, matched only whole."""

    name: str
    title: str
    run: Callable[[], object]
    keys: str = ""
    aliases: tuple[str, ...] = ()


def matching(commands: Sequence[Command], typed: str) -> list[Command]:
    """Whole names and aliases first, then names that start so, then any that contain every word."""
    sought = typed.strip().casefold().removeprefix(":")
    if not sought:
        return list(commands)
    words = sought.split()
    ranked: list[tuple[int, Command]] = []
    for command in commands:
        name = command.name.casefold()
        text = f"{name} {command.title.casefold()}"
        if sought == name or sought in command.aliases:
            ranked.append((0, command))
        elif name.startswith(sought):
            ranked.append((1, command))
        elif all(word in text for word in words):
            ranked.append((2, command))
    return [command for _, command in sorted(ranked, key=lambda entry: entry[0])]


class CommandScreen(ModalScreen[Command | None]):
    """Gives back the chosen command, or None."""

    DEFAULT_CSS = """
    CommandScreen { align: center bottom; background: $background 40%; }
    CommandScreen > Vertical { height: auto; max-height: 100%; width: 100%; background: $surface;
                               border-top: solid $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss_none", "back", show=False),
        Binding("down,ctrl+n", "step(1)", "next", show=False),
        Binding("up,ctrl+p", "step(-1)", "previous", show=False),
    ]

    def __init__(self, commands: Sequence[Command], unknown: Callable[[str], Command]) -> None:
        """unknown: what to do with words that no command is found by."""
        super().__init__()
        self._unknown = unknown
        self._commands = list(commands)
        self._found = list(commands)
        self._list = ChoiceList()
        self._list.can_focus = False
        self._input = LineInput(": command, for example q, runbook, faults; esc leaves")

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._list
            yield self._input

    def on_mount(self) -> None:
        self._show("")
        self._input.focus()

    def _show(self, typed: str) -> None:
        self._found = matching(self._commands, typed)
        self._list.show([Choice(command.name, command.title, command.keys) for command in self._found])

    def on_input_changed(self, event: Input.Changed) -> None:
        self._show(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        # Typing and enter may arrive in one burst, before the list has followed.
        found = matching(self._commands, event.value)
        place = (self._list.highlighted or 0) if found == self._found else 0
        if found or not event.value.strip():
            self.dismiss(found[place] if place < len(found) else None)
        else:
            self.dismiss(self._unknown(event.value.strip()))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._found[event.option_index])

    def action_step(self, step: int) -> None:
        if step > 0:
            self._list.action_cursor_down()
        else:
            self._list.action_cursor_up()

    def action_dismiss_none(self) -> None:
        self.dismiss(None)
