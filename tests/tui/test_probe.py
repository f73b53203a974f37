"""The probe asks first, says how far it is, and can be stopped."""

from collections.abc import Callable

import pytest

from tests.tui import factory
from tests.tui.screen import make_app, replayed, text, until
from triage.domain.errors import TriageError
from triage.tui.overview import Overview


@pytest.mark.parametrize("key", ["escape", "n", "q"])
async def test_nothing_is_sent_without_a_yes(key: str) -> None:
    feed, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press("w")
        assert "2 requests, at most 400 tokens each" in text(app)
        await pilot.press(key)
        await pilot.pause()
        assert feed.probes == 0
        assert isinstance(app.screen, Overview)


@pytest.mark.parametrize("key", ["y", "enter"])
async def test_progress_and_result(key: str) -> None:
    feed, app = replayed(factory.queueing())
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await pilot.press("w", key)
        await until(pilot, lambda: "cold request to vllm-7f9-abc" in text(app))
        await pilot.press(key)
        feed.release_probe.set()
        await until(pilot, lambda: "answered whole: first token 0.4 s" in text(app))
        assert feed.probes == 1
        assert isinstance(app.screen, Overview)


async def test_it_can_be_stopped() -> None:
    feed, app = replayed(factory.queueing())
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await pilot.press("w", "y")
        await until(pilot, lambda: "cold request" in text(app))
        await pilot.press("escape")
        await until(pilot, lambda: "probe stopped" in text(app))
        feed.release_probe.set()
        await pilot.pause()
        assert "answered whole" not in text(app)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TriageError("nothing to probe", "no [engine] answers", "try later"), "no [engine] answers (try later)"),
        (ValueError("odd [/x]"), "ValueError: odd [/x]"),
    ],
)
async def test_a_failing_probe_is_a_message(error: Exception, said: str) -> None:
    class Failing(factory.FakeFeed):
        async def probe(self, progress: Callable[[str], None]) -> str:
            raise error

    app = make_app(Failing(factory.queueing()))
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await pilot.press("w", "y")
        await until(pilot, lambda: said in text(app))
        assert isinstance(app.screen, Overview)


async def test_new_rounds_arrive_behind_the_question() -> None:
    feed, app = replayed(factory.queueing(1))
    async with app.run_test() as pilot:
        await pilot.press("w")
        feed.publish(factory.healthy(2))
        await until(pilot, lambda: "3 ok" in text(app))
        assert "Send the probe?" in text(app)


async def test_leaving_while_a_probe_is_on_its_way() -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press("w", "y")
        await until(pilot, lambda: "cold request" in text(app))
        await pilot.press("ctrl+c")
        await until(pilot, lambda: not app.is_running)
