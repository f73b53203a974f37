"""Whose page it is when it is no engine's: told by how its names begin."""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib import resources

import msgspec


class _Beginnings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    software: dict[str, str]


@cache
def _beginnings() -> tuple[tuple[str, str], ...]:
    """(beginning, software), the longest first."""
    body = (resources.files("triage.dialects") / "foreign.toml").read_bytes()
    table = msgspec.toml.decode(body, type=_Beginnings).software
    return tuple(sorted(table.items(), key=lambda pair: (-len(pair[0]), pair[0])))


def software_of(families: Iterable[str]) -> str:
    """The software that most names on the page belong to; '' when no name tells.

    A page may carry a few names of another program (a client library, a proxy's own build information).
    """
    votes: Counter[str] = Counter()
    for family in families:
        for beginning, software in _beginnings():
            if family.startswith(beginning):
                votes[software] += 1
                break
    return min(votes, key=lambda name: (-votes[name], name), default="")
