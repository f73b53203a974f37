"""A thing that can be turned on and off while the screen runs: the demo's incidents."""

from collections.abc import Callable

import msgspec


class Switch(msgspec.Struct, frozen=True):
    """name: one word. title: what it does, for a person. action: turns it on. active: is it on now?"""

    name: str
    title: str
    action: Callable[[], None]
    active: Callable[[], bool]
