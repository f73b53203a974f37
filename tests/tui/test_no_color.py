"""Colour is never the only sign, and NO_COLOR takes it away altogether."""

from collections.abc import Iterator

import pytest
from rich.color import Color

from tests.tui import factory
from tests.tui.screen import make_app, switches, text
from triage.tui.app import TriageApp

KEYS = ((), ("e",), ("escape", "enter"), ("escape", "r"), ("escape", "colon"), ("escape", "D"), ("escape", "w"))


def colours(app: TriageApp) -> Iterator[Color]:
    for strip in app.screen._compositor.render_strips():
        for segment in strip:
            if segment.style is not None:
                yield from (colour for colour in (segment.style.color, segment.style.bgcolor) if colour is not None)


async def test_no_color_leaves_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(factory.FakeFeed(factory.queueing()), switches=switches(["queueing"]))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        for keys in KEYS:
            if keys:
                await pilot.press(*keys)
            await pilot.pause()
            assert {colour.name for colour in colours(app)} <= {"default"}, keys


async def test_without_no_color_there_are_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    app = make_app(factory.FakeFeed(factory.queueing()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert len({colour.name for colour in colours(app)}) > 5


async def test_the_text_is_the_same_with_and_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    for value in (None, "1"):
        monkeypatch.delenv("NO_COLOR", raising=False)
        if value:
            monkeypatch.setenv("NO_COLOR", value)
        app = make_app(factory.FakeFeed(factory.queueing()))
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            shown.append(text(app))
    assert shown[0] == shown[1]


async def test_states_and_marks_are_words_and_characters() -> None:
    app = make_app(factory.FakeFeed(factory.queueing()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        rows = {line[2:14]: line for line in text(app).splitlines() if line[2:11] == "vllm-7f9-"}
    assert rows["vllm-7f9-abc"].startswith("▸!")
    assert "7.5–10!" in rows["vllm-7f9-abc"]
    assert "41↑" in rows["vllm-7f9-abc"]
    assert rows["vllm-7f9-ghi"].startswith(" ?")
    assert " dark " in rows["vllm-7f9-ghi"]
    assert " stale " in rows["vllm-7f9-mno"]
    assert " ok " in rows["vllm-7f9-def"]


async def test_the_row_under_the_cursor_is_reversed_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app(factory.FakeFeed(factory.queueing()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        row = next(strip for strip in strips if strip.text.startswith("▸"))
        assert all(segment.style is not None and segment.style.reverse for segment in row if segment.text.strip())
