"""From kept readings to points of a chart: rates out of counters, holes where readings are missing."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from triage.tui.numbers import DASH, age

Trail = Sequence[tuple[float, float]]

# A pause longer than two and a half usual steps is a hole, as one late reading is not.
_HOLE = 2.5


def rates(trail: Trail) -> list[tuple[float, float]]:
    """Increase per second between neighbours; a counter that went back gives no point."""
    return [
        (later, (after - before) / (later - earlier))
        for (earlier, before), (later, after) in pairwise(trail)
        if later > earlier and after >= before
    ]


def resample(trail: Trail, columns: int) -> list[float | None]:
    """One value per column of time, oldest left. Several readings in one column: the highest, so no peak is lost.

    Between two readings the earlier one holds, unless the pause is a hole.
    """
    points = sorted((at, value) for at, value in trail if math.isfinite(at) and math.isfinite(value))
    if not points or columns < 1:
        return [None] * max(columns, 0)
    start, end = points[0][0], points[-1][0]
    span = end - start
    # A broken clock gives spans that are no time: too small or too large to divide by.
    if not 1e-9 <= span < math.inf:
        return [*[None] * (columns - 1), points[-1][1]]
    scale = (columns - 1) / span
    hole = _HOLE * median(later - earlier for (earlier, _), (later, _) in pairwise(points))
    drawn: list[float | None] = [None] * columns
    for at, value in points:
        place = round((at - start) * scale)
        held = drawn[place]
        drawn[place] = value if held is None else max(held, value)
    for (earlier, _), (later, _) in pairwise(points):
        if 0 < later - earlier <= hole:
            first, last = round((earlier - start) * scale), round((later - start) * scale)
            for place in range(first + 1, last):
                drawn[place] = drawn[first]
    return drawn


def span_text(trail: Trail) -> str:
    """How much time a trail covers."""
    return age(trail[-1][0] - trail[0][0]) if len(trail) > 1 else DASH
