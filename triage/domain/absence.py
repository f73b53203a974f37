"""A number that is not there, and why. It can never be mistaken for zero."""

from enum import StrEnum
from typing import NoReturn, TypeAlias, TypeGuard

import msgspec


class Missing(StrEnum):
    """Why a quantity has no value. Each of these is a different state of the world."""

    NOT_EXPORTED = "not exported"  # the page was read and does not carry it
    NOT_APPLICABLE = "not applicable"  # carried, but says "not applicable" (NaN, -1)
    TOO_FEW = "too few samples"  # carried, but below the sample minimum of the statistic
    NO_WINDOW = "no second reading"  # a rate needs two readings
    RESET = "counter reset"  # the process restarted inside the window
    GAP = "gap in readings"  # a hole in the readings; no rate is computed from it
    STALE = "stale"  # seen earlier, not now
    NEVER_SEEN = "never seen"  # the target never answered
    UNREACHABLE = "unreachable"  # the target does not answer now


class Absent(msgspec.Struct, frozen=True):
    """Stands where a number would stand. Truth value and arithmetic are errors on purpose."""

    reason: Missing
    why: str = ""

    def __bool__(self) -> NoReturn:
        raise TypeError("an absent value is neither true nor false: ask known(value)")

    def __str__(self) -> str:
        return "–"


Number: TypeAlias = float | Absent

NOT_EXPORTED = Absent(Missing.NOT_EXPORTED)
NOT_APPLICABLE = Absent(Missing.NOT_APPLICABLE)
TOO_FEW = Absent(Missing.TOO_FEW)
NO_WINDOW = Absent(Missing.NO_WINDOW)


def known(value: Number) -> TypeGuard[float]:
    """True when the value is a number."""
    return not isinstance(value, Absent)


def value_or(value: Number, default: float) -> float:
    """The number, or `default` when absent. Only where absence and the default mean the same."""
    return default if isinstance(value, Absent) else value
