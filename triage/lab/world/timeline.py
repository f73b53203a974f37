"""Things that happen at a virtual moment, in order."""

import heapq
import math
from collections.abc import Callable
from itertools import count

Action = Callable[[float], None]


class Timeline:
    """Equal moments keep the order in which they were set. An action may set others, not before its own moment."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Action]] = []
        self._serial = count()

    @property
    def next_at(self) -> float:
        return self._due[0][0] if self._due else math.inf

    def at(self, moment: float, action: Action) -> None:
        heapq.heappush(self._due, (moment, next(self._serial), action))

    def proceed(self) -> None:
        moment, _, action = heapq.heappop(self._due)
        action(moment)
