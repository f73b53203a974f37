"""The screen follows the feed, and lives through everything the feed does."""

import msgspec
import pytest

from tests.tui import factory
from tests.tui.screen import lines, make_app, replayed, text, until
from triage.domain.situation import Situation
from triage.domain.verdict import Diagnosis
from triage.monitor.observation import Observation
from triage.tui.view import View


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_new_round_replaces_the_old_one() -> None:
    feed, app = replayed(None)
    async with app.run_test() as pilot:
        await pilot.pause()
        assert "WAITING" in text(app)
        feed.publish(factory.queueing(1))
        await until(pilot, lambda: "LIKELY  queueing" in text(app))
        feed.publish(factory.healthy(2))
        await until(pilot, lambda: "LIKELY  healthy" in text(app))


@pytest.mark.parametrize("key", ["e", "enter"])
async def test_open_views_follow_too(key: str) -> None:
    feed, app = replayed(factory.queueing(1))
    async with app.run_test() as pilot:
        await pilot.press(key)
        feed.publish(factory.dark(2))
        await until(pilot, lambda: "0 ok" in lines(app)[0])
        assert "queueing" not in text(app) if key == "e" else "no longer among the targets" in text(app)
        await pilot.press("escape")
        await until(pilot, lambda: "metrics-missing" in text(app))


async def test_a_failing_feed_is_a_line_on_the_screen_until_it_works_again() -> None:
    feed, app = replayed(factory.queueing(1))
    async with app.run_test() as pilot:
        await pilot.pause()
        feed.fail(RuntimeError("socket [gone] \x1b[31m"))
        await until(pilot, lambda: "reading failed: socket [gone]" in text(app))
        assert "LIKELY  queueing" in text(app)
        feed.publish(factory.healthy(2))
        await until(pilot, lambda: "LIKELY  healthy" in text(app))
        assert "reading failed" not in text(app)


async def test_a_failing_feed_is_not_asked_in_a_busy_loop() -> None:
    feed, app = replayed(factory.queueing(1))
    async with app.run_test() as pilot:
        feed.fail(RuntimeError("broken"))
        await until(pilot, lambda: "broken" in text(app))
        before = feed.asked
        for _ in range(20):
            await pilot.pause()
        assert feed.asked <= before + 1


async def test_a_feed_that_repeats_itself_is_an_error_and_no_busy_loop() -> None:
    class Stuck(factory.FakeFeed):
        async def newer_than(self, sequence: int) -> Observation:
            self.asked += 1
            return factory.queueing(1)

    feed = Stuck(factory.queueing(1))
    app = make_app(feed)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "round 1 came after round 1" in text(app))
        assert feed.asked < 5


async def test_a_round_that_cannot_be_drawn_is_a_line_on_the_screen() -> None:
    feed, app = replayed(factory.queueing(1))
    broken = msgspec.structs.replace(factory.queueing(2).situation, replicas=(None,))  # type: ignore[arg-type]
    async with app.run_test() as pilot:
        feed.publish(Observation(2, factory.AT, broken, factory.queueing(2).diagnosis))
        await until(pilot, lambda: "could not be drawn" in text(app))
        assert "vllm-7f9-abc" in text(app)
        feed.publish(factory.healthy(3))
        await until(pilot, lambda: "LIKELY  healthy" in text(app))
        assert "could not be drawn" not in text(app)


async def test_a_diagnosis_without_verdicts_does_not_end_the_app() -> None:
    feed, app = replayed(factory.queueing(1))
    async with app.run_test() as pilot:
        feed.publish(Observation(2, factory.AT, Situation(None, 0.0), Diagnosis(None, 0.0, ())))
        await until(pilot, lambda: "WAITING" in text(app))
        for key in ("e", "escape", "r", "c", "right_square_bracket", "enter"):
            await pilot.press(key)
        await pilot.pause()
        assert app.is_running


async def test_pause_freezes_the_view_and_says_how_old_it_is() -> None:
    clock = Clock()
    feed, app = replayed(factory.queueing(1), clock=clock)
    async with app.run_test() as pilot:
        await pilot.press("space")
        clock.now = 12.0
        feed.publish(factory.healthy(2))
        await until(pilot, lambda: "PAUSED 12s old" in lines(app)[0])
        assert "LIKELY  queueing" in text(app)
        assert app.exit_report() == "report of round 2"
        await pilot.press("space")
        assert "PAUSED" not in text(app)
        assert "LIKELY  healthy" in text(app)


async def test_silence_is_said() -> None:
    clock = Clock()
    _, app = replayed(factory.queueing(1), clock=clock)
    async with app.run_test() as pilot:
        await pilot.pause()
        view = app.screen
        assert isinstance(view, View)
        clock.now = 14.0
        view.tick()
        await pilot.pause()
        assert "no new reading" not in text(app)
        clock.now = 16.0
        view.tick()
        await pilot.pause()
        assert "no new reading for 16s" in text(app)


async def test_the_chosen_verdict_stays_chosen_when_the_order_changes() -> None:
    feed, app = replayed(factory.queueing(1))
    async with app.run_test() as pilot:
        await pilot.press("right_square_bracket")
        assert "kv-pressure" in lines(app)[1]
        swapped = factory.observe((factory.KV_VERDICT, factory.QUEUEING_VERDICT), sequence=2)
        feed.publish(swapped)
        await until(pilot, lambda: "1 of 2" in lines(app)[1])
        assert "kv-pressure" in lines(app)[1]
        feed.publish(factory.healthy(3))
        await until(pilot, lambda: "healthy" in lines(app)[1])


async def test_an_open_runbook_is_not_replaced_while_it_is_read() -> None:
    feed, app = replayed(factory.queueing(1))
    async with app.run_test() as pilot:
        await pilot.press("r")
        feed.publish(factory.healthy(2))
        await until(pilot, lambda: "3 ok" in lines(app)[0])
        assert "kubectl get pods" in text(app)


async def test_a_runbook_that_cannot_be_read_is_a_message() -> None:
    def unreadable(kind: str) -> str | None:
        raise OSError(f"{kind}.md: permission [denied]")

    _, app = replayed(factory.queueing(1), runbook=unreadable)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await pilot.press("r")
        await until(pilot, lambda: "permission [denied]" in text(app))
        assert "LIKELY  queueing" in text(app)
