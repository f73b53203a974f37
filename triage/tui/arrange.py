"""Which columns a width has room for, and in which order rows stand."""

import math
import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from triage.domain.target import TargetState
from triage.tui.cells import Column
from triage.tui.fleet import FleetRow, Level

WIDE = 110  # columns of terminal from which the wide layout is used

# Key of shift+letter sorting. Badness has no column of its own.
SORT_KEYS: dict[str, Column | None] = {
    "B": None,
    "N": Column.REPLICA,
    "S": Column.STATE,
    "R": Column.RUNNING,
    "W": Column.WAITING,
    "K": Column.KV,
    "T": Column.TTFT95,
    "M": Column.TOKEN_TIME,
    "O": Column.SPEED,
    "H": Column.HITS,
    "A": Column.AGE,
}


class Place(msgspec.Struct, frozen=True):
    """One column on the screen; width in cells, the gap before it included."""

    column: Column
    width: int
    right: bool = True


# Each numeric width: one gap, the widest usual text, one cell for the mark.
_NARROW = (
    Place(Column.STATE, 6, right=False),
    Place(Column.RUNNING, 5),
    Place(Column.WAITING, 6),
    Place(Column.KV, 5),
    Place(Column.TTFT95, 11),
    Place(Column.TOKEN_TIME, 8),
    Place(Column.SPEED, 7),
    Place(Column.HITS, 6),
    Place(Column.AGE, 6),
)
_WIDE = (
    Place(Column.STATE, 11, right=False),
    Place(Column.RUNNING, 6),
    Place(Column.WAITING, 7),
    Place(Column.KV, 5),
    Place(Column.TTFT, 19),
    Place(Column.TOKEN_TIME, 8),
    Place(Column.SPEED, 8),
    Place(Column.HITS, 6),
    Place(Column.AGE, 7),
)
_CURSOR = 2
_DROPPED = (Column.HITS, Column.SPEED, Column.TOKEN_TIME, Column.KV, Column.AGE, Column.TTFT95)


@lru_cache(maxsize=64)
def places(width: int) -> tuple[Place, ...]:
    """Columns for a table `width` cells wide; what the numbers leave goes to the names."""
    if width < WIDE:
        fixed = list(_NARROW)
        # Below 80 columns the least telling columns go first.
        for column in _DROPPED:
            if width - _CURSOR - sum(place.width for place in fixed) >= 14:
                break
            fixed = [place for place in fixed if place.column is not column]
        name = max(width - _CURSOR - sum(place.width for place in fixed), 8)
        return (Place(Column.REPLICA, name, right=False), *fixed)
    left = width - _CURSOR - sum(place.width for place in _WIDE)
    model = min(left * 2 // 5, 28)
    names = (Place(Column.REPLICA, left - model, right=False), Place(Column.MODEL, model, right=False))
    return (*names, *_WIDE)


def arranged(rows: Iterable[FleetRow], by: Column | None = None, *, reverse: bool = False) -> list[FleetRow]:
    """Rows by badness, or by one column with the largest first; what is unknown always comes last."""
    if by is None:
        return sorted(rows, key=_badness, reverse=reverse)
    named = sorted(rows, key=lambda row: _natural(row.name))
    if by is Column.REPLICA:
        return named[::-1] if reverse else named
    if by is Column.STATE:
        order = list(TargetState)
        return sorted(named, key=lambda row: order.index(row.state), reverse=not reverse)
    known: list[tuple[float, FleetRow]] = []
    unknown: list[FleetRow] = []
    for row in named:
        cell = row.cells.get(by)
        if cell is None or cell.value is None:
            unknown.append(row)
        else:
            known.append((cell.value, row))
    known.sort(key=lambda pair: pair[0], reverse=not reverse)
    return [row for _, row in known] + unknown


def chosen(rows: Iterable[FleetRow], needle: str, *, faults_only: bool) -> list[FleetRow]:
    """Rows whose name, model, state or reason contains `needle`, in any case."""
    sought = needle.casefold()
    return [
        row for row in rows if (not faults_only or row.level > Level.WELL) and (not sought or sought in _searched(row))
    ]


def _searched(row: FleetRow) -> str:
    return "\n".join((row.name, row.model, row.state.value, row.about, *row.reasons)).casefold()


def _badness(row: FleetRow) -> tuple[int, int, tuple[tuple[int, str], ...]]:
    # Queue lengths in powers of two: one request more or less must not move a row.
    queue = int(math.log2(row.waiting + 1)) if row.waiting > 0 and math.isfinite(row.waiting) else 0
    return -row.level, -queue, _natural(row.name)


@lru_cache(maxsize=8192)
def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """pod-9 before pod-10."""
    parts = re.split(r"(\d{1,18})", name)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts if part)
