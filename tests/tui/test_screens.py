"""Each screen at both sizes, compared with the text that was looked at and kept."""

import pytest

from tests.tui import factory
from tests.tui.screen import SIZES, compare, lines, replayed, switches, text

OBSERVED = {
    "queueing": factory.queueing,
    "healthy": factory.healthy,
    "insufficient": factory.insufficient,
    "dark": factory.dark,
    "fleet": factory.fleet,
}

# name of the golden file: (observation, keys to get there, a word that must be on it)
VIEWS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "overview-queueing": ("queueing", (), "LIKELY  queueing"),
    "overview-healthy": ("healthy", (), "LIKELY  healthy"),
    "overview-insufficient": ("insufficient", (), "UNDECIDED"),
    "overview-dark": ("dark", (), "token refused"),
    "overview-fleet": ("fleet", (), "1000 ok"),
    "overview-second-verdict": ("queueing", ("right_square_bracket",), "POSSIBLE  kv-pressure"),
    "overview-filtered": ("queueing", ("slash", "d", "e", "f", "enter"), "1 of 5"),
    "overview-faults": ("queueing", ("exclamation_mark",), "3 of 5"),
    "overview-paused": ("queueing", ("space",), "PAUSED"),
    "evidence": ("queueing", ("e",), "engine.waiting"),
    "evidence-end": ("queueing", ("e", "G"), "Not seen"),
    "evidence-insufficient": ("insufficient", ("e",), "collect"),
    "target": ("queueing", ("enter",), "running"),
    "target-end": ("queueing", ("enter", "G"), "p95"),
    "target-dark": ("queueing", ("j", "enter"), "no answer within 5 s"),
    "target-one-reading": ("insufficient", ("enter",), "not applicable: kv_usage"),
    "runbook": ("queueing", ("r",), "kubectl get pods"),
    "runbook-none": ("healthy", ("r",), "no runbook"),
    "help": ("queueing", ("question_mark",), "send probe"),
    "command": ("queueing", ("colon", *"run"), "runbook kv-pressure"),
    "demo": ("queueing", ("D",), "more requests than slots"),
    "probe": ("queueing", ("w",), "2 requests, at most 400 tokens each"),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", VIEWS)
async def test_screen(name: str, size: tuple[int, int]) -> None:
    observed, keys, word = VIEWS[name]
    feed, app = replayed(OBSERVED[observed](), switches=switches(["queueing"]))
    feed.trails["vllm-7f9-abc"] = factory.trails()
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        shown = text(app)
        assert word in shown
        compare(f"{name}-{size[0]}x{size[1]}", shown)


async def test_before_the_first_reading_the_screen_says_what_it_waits_for() -> None:
    _, app = replayed(None)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "WAITING  for the first reading of prod-eu" in text(app)
        for key in ("e", "escape", "r", "c", "right_square_bracket", "enter", "j", "W", "space", "exclamation_mark"):
            await pilot.press(key)
        await pilot.pause()
        assert app.is_running


@pytest.mark.parametrize("size", [(40, 10), (20, 5), (60, 16), (109, 24), (110, 24), (250, 60)])
async def test_any_terminal_size_is_survived(size: tuple[int, int]) -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test(size=size) as pilot:
        for key in ("e", "escape", "enter", "escape", "r", "escape", "question_mark", "escape", "colon", "escape"):
            await pilot.press(key)
        await pilot.pause()
        assert len(lines(app)) == size[1]
        assert "LIKELY" in text(app)


async def test_resizing_switches_the_layout() -> None:
    _, app = replayed(factory.queueing(), switches=switches(["queueing"]))
    async with app.run_test(size=(140, 45)) as pilot:
        await pilot.pause()
        wide = text(app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        narrow = text(app)
    assert "ttft p50/p95" in wide
    assert "model" in wide.split("ttft p50/p95")[0].splitlines()[-1]
    assert "ttft95" in narrow
    compare("overview-queueing-80x24", narrow)
