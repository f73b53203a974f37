"""The key map, and the help and footer made of what is really bound at the moment.

Each binding has an id, so that a keymap can move it to another key; help then shows the new one.
"""

from collections.abc import Callable, Mapping

from textual.binding import ActiveBinding, Binding, BindingType

from triage.tui.arrange import SORT_KEYS

LEAVE = Binding.Group("Leave")
LOOK = Binding.Group("Look closer")
DO = Binding.Group("Do")
VIEW = Binding.Group("What is shown")
MOVE = Binding.Group("Move")
SORT = Binding.Group("Sort (again: the other way round)")
GROUPS = (LOOK, DO, VIEW, LEAVE, MOVE, SORT)


def _key(keys: str, action: str, what: str, group: Binding.Group, *, show: bool = False, name: str = "") -> Binding:
    return Binding(keys, action, what, show=show, group=group, id=name or action.partition("(")[0].removeprefix("app."))


APP_KEYS: list[BindingType] = [
    _key("e", "evidence", "evidence", LOOK, show=True),
    _key("r", "runbook", "runbook", LOOK, show=True),
    _key("D", "switches", "demo", DO, show=True, name="demo"),
    _key("colon,ctrl+p", "command", "command", DO, show=True),
    _key("space", "pause", "pause", VIEW, show=True),
    _key("1", "overview", "overview", LOOK),
    _key("question_mark,f1", "help", "help", LOOK, show=True),
    _key("w", "probe", "send probe (asks first)", DO),
    _key("c", "copy", "copy verdict as text", DO),
    _key("ctrl+r", "refresh", "read now", DO),
    _key("plus,equals_sign", "slower", "longer interval", VIEW),
    _key("minus", "faster", "shorter interval", VIEW),
    Binding("ctrl+c", "quit", "quit", show=False, group=LEAVE, id="quit", priority=True),
]

VIEW_KEYS: list[BindingType] = [
    _key("escape,q", "close", "back", LEAVE, show=True),
]

OVERVIEW_KEYS: list[BindingType] = [
    _key("slash", "filter", "filter", VIEW, show=True),
    _key("exclamation_mark,ctrl+z", "faults", "faults only", VIEW, show=True),
    _key("left_square_bracket", "verdict(-1)", "previous verdict", VIEW, name="previous_verdict"),
    _key("right_square_bracket", "verdict(1)", "next verdict", VIEW, name="next_verdict"),
    _key("escape", "clear", "clear the filter", VIEW),
    _key("q", "close", "quit", LEAVE),
    *[
        _key(key, f"sort('{key}')", column.value if column else "badness", SORT, name=f"sort_{key.lower()}")
        for key, column in SORT_KEYS.items()
    ],
]

MOVE_KEYS: list[BindingType] = [
    _key("j,down", "move(1)", "down", MOVE, name="down"),
    _key("k,up", "move(-1)", "up", MOVE, name="up"),
    _key("pagedown", "page(1)", "page down", MOVE, name="page_down"),
    _key("pageup", "page(-1)", "page up", MOVE, name="page_up"),
    _key("g,home", "end(-1)", "first line", MOVE, name="first"),
    _key("G,end", "end(1)", "last line", MOVE, name="last"),
]

OPEN_KEYS: list[BindingType] = [
    Binding("enter", "open", "open", key_display="enter", group=LOOK, id="open"),
]

Active = Mapping[str, ActiveBinding]
Display = Callable[[Binding], str]


def help_groups(active: Active, display: Display) -> list[tuple[str, list[tuple[str, str]]]]:
    """(heading, [(keys, what they do)]) for every described key that is bound now."""
    found: dict[str, dict[str, list[str]]] = {group.description: {} for group in GROUPS}
    for entry in active.values():
        group = entry.binding.group
        if entry.enabled and group is not None and group.description in found and entry.binding.description:
            keys = found[group.description].setdefault(entry.binding.description, [])
            keys.append(display(entry.binding))
    return [
        (heading, [(" ".join(keys), what) for what, keys in whats.items()]) for heading, whats in found.items() if whats
    ]


def footer_pieces(active: Active, display: Display) -> list[tuple[str, str]]:
    """(key, word) of the few keys that the last line shows, each action once."""
    pieces: dict[str, tuple[str, str]] = {}
    for entry in active.values():
        if entry.enabled and entry.binding.show and entry.binding.description:
            pieces.setdefault(entry.binding.action, (display(entry.binding), entry.binding.description))
    return list(pieces.values())
