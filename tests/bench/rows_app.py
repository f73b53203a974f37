"""Child process: the screen on a thousand replicas. `python -m tests.bench.rows_app feed|monitor`.

feed: a round every second in which one replica in twenty is another one than before.
monitor: the real monitor in the same process, reading a page of every replica every five seconds.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Final

from tests.bench.pages import page
from tests.tui import factory
from triage.dialects.pages import read_page
from triage.domain.limits import Limits
from triage.domain.reading import Scrape
from triage.domain.situation import Replica
from triage.domain.target import Target
from triage.monitor.monitor import Monitor
from triage.monitor.observation import Feed, Observation
from triage.tui.app import TriageApp

_REPLICAS: Final = 1000
_CHANGED: Final = 50
_EVERY_S: Final = 1.0
_INTERVAL_S: Final = 5.0
_OUT_OF_STEP: Final = 8


class _Rounds:
    """Observations that differ from one another in some rows."""

    def __init__(self) -> None:
        self._replicas: list[Replica] = [factory.busy(f"vllm-{place}") for place in range(_REPLICAS)]
        self._targets = tuple(factory.status(f"vllm-{place}") for place in range(_REPLICAS))
        self._sequence = 0

    def next(self) -> Observation:
        self._sequence += 1
        for turn in range(_CHANGED):
            place = (self._sequence * _CHANGED + turn) % _REPLICAS
            self._replicas[place] = factory.busy(f"vllm-{place}", run=self._sequence % 60, tokens=20_000 + place)
        return factory.observe(
            (factory.QUEUEING_VERDICT,),
            replicas=tuple(self._replicas),
            targets=self._targets,
            sequence=self._sequence,
            at=factory.AT + self._sequence,
        )


class _Pages:
    """A scrape source without a network: what a page costs when it has arrived."""

    def __init__(self) -> None:
        self.targets: Sequence[Target] = [Target(f"vllm-{place}", "http://bench") for place in range(_REPLICAS)]
        self._step = 0

    async def read(self) -> list[Scrape]:
        self._step += 1
        scrapes = []
        for place, target in enumerate(self.targets):
            at = time.time()
            read = read_page(page(self._step + place % _OUT_OF_STEP), target, "/metrics", at)
            scrapes.append(Scrape(target, at, 0.01, read, None))
            await asyncio.sleep(0)  # answers come one by one
        return scrapes

    async def close(self) -> None:
        pass


def _app(feed: Feed) -> TriageApp:
    return TriageApp(feed, runbook=lambda _: None, report=lambda _: "")


async def with_feed() -> None:
    rounds = _Rounds()
    feed = factory.FakeFeed(rounds.next())

    async def publish() -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            feed.publish(rounds.next())

    publishing = asyncio.create_task(publish())
    await _app(feed).run_async()
    publishing.cancel()


async def with_monitor() -> None:
    monitor = Monitor(_Pages(), name="bench", limits=Limits(), interval_s=_INTERVAL_S)
    loop = asyncio.create_task(monitor.run())
    await _app(monitor).run_async()
    loop.cancel()


if __name__ == "__main__":
    asyncio.run(with_monitor() if sys.argv[1] == "monitor" else with_feed())
