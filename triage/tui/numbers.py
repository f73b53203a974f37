"""Numbers as a tired person reads them. What is not known is a dash, never a zero."""

import math
from datetime import UTC, datetime

from triage.domain.absence import Number, known
from triage.domain.histogram import Interval
from triage.domain.verdict import Share

DASH = "–"
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(value: Number | None) -> str:
    """A whole number up to 99999, then with a scale letter: 1480, 1.2M."""
    if value is None or not known(value) or math.isnan(value):
        return DASH
    return f"{value:.0f}" if abs(value) < 99_999.5 else _scaled(value)


def plain(value: Number | None) -> str:
    """Three significant digits, without an exponent: 0.0312, 24.3, 1480, 1.3G."""
    if value is None or not known(value) or math.isnan(value):
        return DASH
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value) and abs(value) < 99_999.5:
        return f"{value:.0f}"
    size = abs(value)
    if size >= 99_999.5:
        return _scaled(value)
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    digits = 2 if size >= 1 else min(2 - math.floor(math.log10(size)), 6)
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def _scaled(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    for scale, letter in _SCALES:
        if abs(value) >= scale:
            return f"{value / scale:.3g}{letter}" if abs(value) < 1e15 else f"{value:.1e}"
    return f"{value:.0f}"


def short(value: float) -> str:
    """Two significant digits, enough to name a bucket edge: 0.25, 7.5, 640."""
    if math.isinf(value) or math.isnan(value):
        return plain(value)
    if abs(value) >= 10:
        return f"{value:.0f}" if abs(value) < 99_999.5 else _scaled(value)
    text = f"{value:.2g}"
    return f"{value:.6f}".rstrip("0") if "e" in text else text


def percent(value: Number | None) -> str:
    """A share of 0..1 as percent, without the sign: 93."""
    if value is None or not known(value) or math.isnan(value):
        return DASH
    return count(value * 100)


def milliseconds(value: Number | None) -> str:
    """Seconds as milliseconds, without the unit: 24, 8.3."""
    if value is None or not known(value) or math.isnan(value):
        return DASH
    scaled = value * 1000
    return f"{scaled:.1f}" if 0 < abs(scaled) < 9.95 else count(scaled)


def interval(where: Interval | None, *, seconds: bool = True) -> str:
    """The bucket a quantile lies in: 5–10, ≤0.3, ≥60; below 0.1 s in milliseconds."""
    if where is None:
        return DASH
    if seconds and where.high < 0.1:
        return f"{_edges(Interval(where.low * 1000, where.high * 1000))}ms"
    return _edges(where)


def _edges(where: Interval) -> str:
    if where.open_ended:
        return f"≥{short(where.low)}"
    return f"≤{short(where.high)}" if where.low <= 0 else f"{short(where.low)}–{short(where.high)}"


def age(seconds: Number | None) -> str:
    """How old: 0.6s, 12s, 3m, 2h, 4d."""
    if seconds is None or not known(seconds) or not math.isfinite(seconds):
        return DASH
    size = abs(seconds)
    if size < 9.95:
        return f"{seconds:.1f}s"
    for limit, step, letter in ((120, 1, "s"), (7200, 60, "m"), (172_800, 3600, "h")):
        if size < limit:
            return f"{seconds / step:.0f}{letter}"
    return f"{count(seconds / 86_400)}d"


def share(value: Share) -> str:
    """61 % (53–68)."""
    return f"{percent(value.value)} % ({percent(value.low)}–{percent(value.high)})"


def clock_time(at: float | None) -> str:
    """Unix seconds as time of day in UTC, the zone that logs and dashboards share."""
    if at is None:
        return DASH
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return DASH
