"""The entries of the command line, made of what is bound on the view and of what has no key."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from textual.app import App
from textual.binding import ActiveBinding
from textual.screen import Screen

from triage.domain.verdict import Verdict
from triage.tui.command_screen import Command
from triage.tui.keys import GROUPS, LEAVE, MOVE, SORT
from triage.tui.switch import Switch

# What k9s, vim and shells have taught people to type.
_INCIDENT = "incident"
_ALIASES = {"quit": ("q", "q!", "wq", "exit"), "help": ("h",), "overview": ("fleet",)}


def commands(
    app: App[None],
    view: Screen[Any],
    *,
    verdicts: Sequence[Verdict],
    switches: Sequence[Switch],
    open_runbook: Callable[[str], None],
    turn_on: Callable[[Switch], None],
) -> Iterator[Command]:
    """One entry per bound action, one per runbook of a verdict, one per switch."""
    yield from _bound(app, view)
    for name in dict.fromkeys(verdict.runbook for verdict in verdicts if verdict.runbook):
        yield Command(f"runbook {name}", "read this runbook", partial(open_runbook, name))
    for switch in switches:
        name, state = f"{_INCIDENT} {switch.name}", "on" if switch.active() else ""
        yield Command(name, switch.title, partial(turn_on, switch), state, (f"demo {switch.name}",))


def incident_of(typed: str) -> str | None:
    """What a typed command wants to begin, in its own words, or None when it is another one."""
    word, _, name = typed.strip().removeprefix(":").partition(" ")
    return name.strip() or None if word in (_INCIDENT, "demo") else None


def _bound(app: App[None], view: Screen[Any]) -> Iterator[Command]:
    entries: dict[str, tuple[ActiveBinding, list[str]]] = {}
    for entry in view.active_bindings.values():
        binding = entry.binding
        leaving = binding.group == LEAVE and binding.action != "quit"
        if not entry.enabled or binding.group in (None, MOVE) or leaving or not binding.description:
            continue
        _, keys = entries.setdefault(binding.action, (entry, []))
        keys.append(app.get_key_display(binding))
    # In the order of the help, so that sorting, eleven entries long, does not bury the rest.
    ordered = sorted(entries.items(), key=lambda item: GROUPS.index(item[1][0].binding.group or MOVE))
    for action, (entry, keys) in ordered:
        name = (entry.binding.id or action).replace("_", " ")
        if entry.binding.group == SORT:
            name = f"sort {entry.binding.description}"
        run = partial(app.run_action, action, entry.node)
        yield Command(name, entry.binding.description, run, " ".join(keys), _ALIASES.get(name, ()))
