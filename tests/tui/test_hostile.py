"""Remote text is shown as it is, whatever it would mean as markup, as an action or to a terminal.

Every text field of an observation gets the same hostile string, with a number so that it can be
found again; then every screen is opened, and every link-like place clicked.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from tests.tui import factory
from tests.tui.screen import lines, make_app, text, until
from triage.domain.situation import NotSeen, Situation
from triage.domain.target import FailureReason, TargetState
from triage.monitor.observation import Observation
from triage.tui.app import Switch, TriageApp

HOSTILE = {
    "closing tag": "x[/foo]",
    "action": "x[@click=app.quit]go[/]",
    "both": "x[/foo][@click=app.quit]",
    "style": "[bold red]loud",
    "escaped": r"\[/foo] \\[x",
    "entity": "[$error]&amp;<b>{curly}%s",
    "emoji code": ":boom: :smile:",
    "markdown": "**b** [l](app.quit) `c` # h | t",
    "wide": "模型模型模型模型模型模型模型模型模型模型模型",
    "combining": "ẑ́̂̃̄̅a" * 12,
    "long": "n" * 4000,
    "spaces": " a  b ",
    "brackets": "[[[]]]][[/]]",
}
BYTES = {
    "title": "\x1b]0;owned\x07t",
    "clipboard": "\x1b]52;c;b3duZWQ=\x07c",
    "colours": "\x1b[31mred\x1b[0m",
    "c1": "\x9b31mred\x9d0;owned\x9c",
    "bidi": "ab‮cd⁦ef",
    "controls": "a\x00b\rc\nd\te\x7ff\x85g",
    "surrogate": "a\ud800b",
    "tags": "a\U000e0041b",
}
ALL = [*HOSTILE.values(), *BYTES.values()]
# All fields alike, and then each field with five of the strings, in an order that shifts.
MIXES = {"alike": [HOSTILE["both"]], "alike, wide": [HOSTILE["wide"]]} | {
    f"mixed {shift}": [*ALL[shift:], *ALL[:shift]] for shift in range(0, len(ALL), 4)
}
FORBIDDEN = set("\x1b\x9b\x9d\x07\x00\r\t\x7f\x85\u202e\u2066\ud800\U000e0041")

VIEWS: dict[str, tuple[str, ...]] = {
    "overview": (),
    "filtered": ("slash", "x", "enter"),
    "evidence": ("e",),
    "evidence end": ("e", "G"),
    "target": ("enter",),
    "target end": ("enter", "G"),
    "dark target": ("G", "enter"),
    "runbook": ("r",),
    "help": ("question_mark",),
    "commands": ("colon",),
    "demo": ("D",),
    "probe": ("w",),
    "copied": ("escape", "c"),
    "faults": ("exclamation_mark",),
    "paused": ("space",),
}


def poison(value: Any, mark: Callable[[], str]) -> Any:
    """The same struct with every plain string in it, however deep, replaced. Enums stay what they are."""
    if type(value) is str:
        return mark() if value else value
    if isinstance(value, msgspec.Struct):
        fields = {field: poison(getattr(value, field), mark) for field in value.__struct_fields__}
        return type(value)(**fields)
    if isinstance(value, tuple):
        return tuple(poison(item, mark) for item in value)
    if isinstance(value, frozenset):
        return frozenset(poison(item, mark) for item in value)
    if isinstance(value, dict):
        return {poison(key, mark): poison(item, mark) for key, item in value.items()}
    return value


def marks(*hostile: str) -> Callable[[], str]:
    """The strings in turn, each with a number of its own; a single one stays the same everywhere."""
    counter: Iterator[int] = itertools.count()

    def mark() -> str:
        number = next(counter)
        return f"{number}{hostile[number % len(hostile)]}" if len(hostile) > 1 else hostile[0]

    return mark


def poisoned(*hostile: str) -> Observation:
    """An observation in which nothing a remote system could have written is harmless."""
    return poison(
        factory.observe(
            factory.queueing().diagnosis.verdicts,
            replicas=(factory.busy("a"), factory.busy("b")),
            targets=(
                factory.status("a"),
                factory.status("c", TargetState.DARK, reason=FailureReason.TIMEOUT, detail="d", age_s=3.0),
                factory.status("d", TargetState.NO_METRICS, problems=("one", "two")),
            ),
            ruled_out=factory.queueing().diagnosis.ruled_out,
            not_seen=(NotSeen("gateway", "why", ("cost",)),),
        ),
        marks(*hostile),
    )


def hostile_app(*hostile: str) -> TriageApp:
    first = hostile[0]
    feed = factory.FakeFeed(poisoned(*hostile), name=first)
    switch = Switch(first, first, lambda: None, lambda: True)
    runbook = f"# {first}\n\n{first}\n\n```\n{first}\n```\n" + "\n\n".join(hostile)
    return make_app(feed, switches=[switch], runbook=lambda kind: runbook)


def test_the_poison_reaches_every_text_field() -> None:
    fields = re.findall(r"(\w+)='([^']+)'", repr(poisoned("\u2620")))
    assert len(fields) > 40
    assert {"name", "model", "source", "detail", "text", "summary", "because", "why"} <= {name for name, _ in fields}
    assert [name for name, value in fields if "\u2620" not in value] == []


@pytest.mark.parametrize("mix", MIXES)
async def test_every_view_survives(mix: str) -> None:
    app = hostile_app(*MIXES[mix])
    async with app.run_test(size=(80, 24), notifications=True, tooltips=True) as pilot:
        for view, keys in VIEWS.items():
            await pilot.press("escape", *keys)
            await pilot.pause()
            shown = text(app)
            assert app.is_running, view
            assert "could not be drawn" not in shown, view
            assert "owned" not in shown, view
            assert not set(shown) & FORBIDDEN, view
            assert len(lines(app)) == 24, view


@pytest.mark.parametrize("hostile", ["x[/foo][@click=app.quit]", "[bold]x", ":boom:"])
async def test_markup_is_shown_literally(hostile: str) -> None:
    app = hostile_app(hostile)
    async with app.run_test(size=(200, 60), notifications=True) as pilot:
        await pilot.pause()
        overview = text(app)
        assert overview.count(hostile) > 12
        for keys in (("e",), ("escape", "enter"), ("escape", "r"), ("escape", "D"), ("escape", "colon")):
            await pilot.press(*keys)
            await pilot.pause()
            assert hostile in text(app), keys
        await pilot.press("1")
        await pilot.pause()
        before = text(app).count(hostile)
        app.say(hostile, bad=True)
        await until(pilot, lambda: text(app).count(hostile) > before)


async def test_a_click_on_an_action_in_a_name_does_nothing() -> None:
    app = hostile_app("x[@click=app.quit]go[/]")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        for keys in ((), ("e",), ("escape", "r")):
            if keys:
                await pilot.press(*keys)
            await pilot.pause()
            places = [(line.find("go"), y) for y, line in enumerate(lines(app)) if "go" in line]
            for place in places[:6]:
                await pilot.click(offset=place)
            assert app.is_running
        assert app.return_code in (None, 0)


async def test_links_in_a_runbook_open_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    feed = factory.FakeFeed(factory.queueing())
    app = make_app(feed, runbook=lambda kind: "[click me](https://example.invalid/x) and <https://example.invalid/y>")
    monkeypatch.setattr(app, "open_url", lambda url, **options: opened.append(url))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("r")
        await pilot.pause()
        row = next(y for y, line in enumerate(lines(app)) if "click me" in line)
        for x in range(1, 60, 3):
            await pilot.click(offset=(x, row))
        assert app.is_running
    assert opened == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -5.0, 1e300])
async def test_odd_numbers_are_survived(value: float) -> None:
    def spoil(item: Any) -> Any:
        if isinstance(item, bool) or not isinstance(item, float | int | msgspec.Struct | tuple | dict):
            return item
        if isinstance(item, float):
            return value
        if isinstance(item, msgspec.Struct):
            return type(item)(**{field: spoil(getattr(item, field)) for field in item.__struct_fields__})
        if isinstance(item, tuple):
            return tuple(spoil(part) for part in item)
        if isinstance(item, dict):
            return {key: spoil(part) for key, part in item.items()}
        return item

    spoiled = spoil(factory.queueing())
    assert isinstance(spoiled.situation, Situation)
    feed = factory.FakeFeed(spoiled)
    feed.trails["vllm-7f9-abc"] = {
        quantity: tuple((value, value) for _ in trail) for quantity, trail in factory.trails().items()
    }
    app = make_app(feed)
    async with app.run_test(size=(80, 24)) as pilot:
        for keys in ((), ("e",), ("escape", "enter"), ("G",), ("escape", "W"), ("K",)):
            if keys:
                await pilot.press(*keys)
            await pilot.pause()
            assert "could not be drawn" not in text(app), keys
        assert app.is_running
