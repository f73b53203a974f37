"""A short list to choose from, drawn from plain text."""

from collections.abc import Sequence

import msgspec
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from triage.domain.text import clean

# Columns of the names at least, so that titles stand still while a list gets shorter.
_NAMES = 18


class Choice(msgspec.Struct, frozen=True):
    """name: what is typed to get it. title: what it does. beside: its key or state."""

    name: str
    title: str
    beside: str = ""


class ChoiceList(OptionList):
    """Options by their place in the list given to `show`."""

    DEFAULT_CSS = """
    ChoiceList { border: none; height: auto; max-height: 14; padding: 0; background: transparent;
                 scrollbar-size-vertical: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    ChoiceList:focus { border: none; }
    ChoiceList:nocolor > .option-list--option-highlighted { text-style: reverse; }
    """

    def show(self, choices: Sequence[Choice]) -> None:
        self.clear_options()
        width = max([_NAMES, *[len(clean(choice.name)) for choice in choices]])
        self.add_options([Option(_line(choice, width)) for choice in choices])
        self.highlighted = 0 if choices else None


def _line(choice: Choice, width: int) -> Content:
    return Content.assemble(
        (f"{clean(choice.name):<{width}} ", "bold"),
        clean(choice.title),
        (f"  {clean(choice.beside)}" if choice.beside else "", "dim"),
    )
