"""One measured budget, and the table of them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.bench.measure import growth

# Linear, within what caches and the garbage collector add when the heap grows a thousand times.
_LARGEST_EXPONENT = 1.15
HEADINGS = ("what", "measured", "reference, same run", "ratio", "budget", "held")


class Row(NamedTuple):
    """held: None where nothing could be measured; then `reference` says why."""

    what: str
    measured: str
    reference: str
    ratio: str
    budget: str
    held: bool | None


def against(what: str, measured_s: float, reference: str, reference_s: float, *, budget: float, note: str = "") -> Row:
    """A time as a multiple of a reference's time. budget: the largest ratio that is held."""
    ratio = measured_s / reference_s
    return Row(
        what,
        f"{duration(measured_s)}{note}",
        f"{reference}: {duration(reference_s)}",
        f"{ratio:.2g} ×" if ratio < 0.1 else f"{ratio:.2f} ×",
        f"≤ {budget:g} ×",
        ratio <= budget,
    )


def within(what: str, measured_s: float, *, budget_s: float, note: str = "") -> Row:
    """A time with a budget of its own."""
    return Row(what, f"{duration(measured_s)}{note}", "–", "–", f"≤ {duration(budget_s)}", measured_s <= budget_s)


def grows(what: str, unit: str, sizes: Sequence[int], seconds: Sequence[float]) -> Row:
    """How a time grows. The exponent over all sizes counts; the times stand there for who looks for a late turn."""
    exponent = growth(sizes, seconds)
    return Row(
        f"{what}, {', '.join(f'{size:,}' for size in sizes)} {unit}",
        ", ".join(map(duration, seconds)),
        "–",
        f"exponent {exponent:.2f}",
        f"≤ {_LARGEST_EXPONENT}",
        exponent <= _LARGEST_EXPONENT,
    )


def not_measured(what: str, budget: str, package: str) -> Row:
    """The reference is not installed."""
    return Row(what, "N/A", f"N/A: {package} is not installed", "N/A", budget, None)


def duration(seconds: float) -> str:
    """'0.21 ms', '84 ms', '1.30 s'."""
    if seconds < 0.01:
        return f"{1000 * seconds:.2f} ms"
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def failed(rows: Iterable[Row]) -> bool:
    """Whether a budget was measured and is not held."""
    return any(row.held is False for row in rows)


def table(rows: Sequence[Row]) -> str:
    """Markdown."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *[(*row[:5], _word(row.held)) for row in rows]]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _word(held: bool | None) -> str:
    return "N/A" if held is None else "yes" if held else "**no**"
