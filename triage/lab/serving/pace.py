"""A world at the pace of the clock."""

import asyncio
import time

from triage.lab.world.world import World

# A streamed token leaves at most this late.
_TICK_S = 0.01
# After a longer pause of this process (stopped, suspended) the lost time is skipped, not made up for.
_LONGEST_PAUSE_S = 30.0


class Pace:
    """speed: virtual seconds per real second; tests run faster than life."""

    def __init__(self, world: World, speed: float = 1.0) -> None:
        self.world = world
        self._speed = speed
        self._last = time.monotonic()
        self._ticked = asyncio.Event()

    def catch_up(self) -> float:
        """Bring the world to now; the virtual seconds that it is."""
        now = time.monotonic()
        spent, self._last = min(now - self._last, _LONGEST_PAUSE_S), now
        self.world.advance(self.world.now + spent * self._speed)
        return self.world.now

    async def tick(self) -> None:
        """Wait until the world has moved on."""
        await self._ticked.wait()

    async def run(self) -> None:
        """Catch up for ever."""
        while True:
            self.catch_up()
            ticked, self._ticked = self._ticked, asyncio.Event()
            ticked.set()
            await asyncio.sleep(_TICK_S)
