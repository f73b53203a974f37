"""Times whose year is not known: seconds since a year with 29 February began."""

from datetime import UTC, datetime

# A leap year, so that every month and day exists in it.
ANY_YEAR = 2000
_BEGAN = datetime(ANY_YEAR, 1, 1, tzinfo=UTC)
_YEAR_S = 366 * 86400.0


def second_of_year(at: float) -> float | None:
    """Unix seconds to seconds since the year began, in UTC; None for a time no calendar has."""
    try:
        return (datetime.fromtimestamp(at, UTC).replace(year=ANY_YEAR) - _BEGAN).total_seconds()
    except (ValueError, OverflowError, OSError):
        return None


def seconds_between(earlier: float, later: float) -> float:
    """From one second of the year to another; the shorter way around New Year."""
    apart = later - earlier
    if apart > _YEAR_S / 2:
        return apart - _YEAR_S
    return apart + _YEAR_S if apart < -_YEAR_S / 2 else apart
