"""Real time for simulated replicas: how far each of them should have got by now."""

import asyncio
import time
from collections.abc import Sequence

from triage.lab.replica import Replica

# A streamed token leaves at most this late. 100 wake-ups a second for a whole fleet cost well under
# 1 % of a core, and an answer of 25 ms a token keeps its rhythm.
_TICK_S = 0.01
# After a longer pause of this process (stopped, suspended) the lost time is skipped, not made up for.
_LONGEST_PAUSE_S = 30.0


class Pacer:
    """Keeps replicas at one common virtual time that runs with the clock.

    speed: virtual seconds per real second; tests run faster than life.
    """

    def __init__(self, replicas: Sequence[Replica], speed: float = 1.0) -> None:
        self._replicas = replicas
        self._speed = speed
        self._last = time.monotonic()
        self._virtual = max([replica.now for replica in replicas], default=0.0)

    def catch_up(self) -> None:
        """Bring every replica to now."""
        now = time.monotonic()
        self._virtual += min(now - self._last, _LONGEST_PAUSE_S) * self._speed
        self._last = now
        for replica in self._replicas:
            replica.advance(self._virtual)

    async def run(self) -> None:
        """Catch up for ever, so that waiting streams get their tokens."""
        while True:
            self.catch_up()
            await asyncio.sleep(_TICK_S)
