"""Line charts out of braille characters: two points wide and four high in each cell."""

import math
from collections.abc import Sequence

_BASE = 0x2800
# Unicode numbers the dots column by column, the bottom row last (Unicode 15, block 2800–28FF).
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


def plot(points: Sequence[float | None], rows: int, low: float, high: float) -> list[str]:
    """`rows` lines of len(points)/2 cells. A None leaves a hole; neighbours are joined by a stroke."""
    dots = rows * 4
    grid = [[0] * ((len(points) + 1) // 2) for _ in range(rows)]
    before: int | None = None
    for x, point in enumerate(points):
        if point is None or not math.isfinite(point):
            before = None
            continue
        height = _level(point, low, high, dots)
        start = height if before is None else before
        for y in range(min(start, height), max(start, height) + 1):
            if y == start and before is not None and start != height:
                continue  # the neighbour has drawn this one
            row, dot = divmod(dots - 1 - y, 4)
            grid[row][x // 2] |= _DOTS[x % 2][dot]
        before = height
    return ["".join(chr(_BASE + cell) if cell else " " for cell in row) for row in grid]


def _level(point: float, low: float, high: float, dots: int) -> int:
    if not 0 < high - low < math.inf:
        return 0
    return round(min(max((point - low) / (high - low), 0.0), 1.0) * (dots - 1))
