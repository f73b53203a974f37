"""Every key does what help says, and help says what is bound."""

import pytest
from textual.binding import Binding

from tests.tui import factory
from tests.tui.screen import lines, make_app, replayed, switches, text, until
from triage.tui.app import TriageApp
from triage.tui.evidence_screen import EvidenceScreen
from triage.tui.fleet_table import FleetTable
from triage.tui.keys import APP_KEYS, MOVE_KEYS, OVERVIEW_KEYS, VIEW_KEYS
from triage.tui.overview import Overview
from triage.tui.target_screen import TargetScreen


def under_cursor(app: TriageApp) -> str:
    row = app.screen.query_one(FleetTable).current
    assert row is not None
    return row.name


@pytest.mark.parametrize(("key", "view"), [("e", EvidenceScreen), ("enter", TargetScreen)])
@pytest.mark.parametrize("back", ["escape", "q", "1"])
async def test_views_open_and_close(key: str, view: type, back: str) -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press(key)
        assert isinstance(app.screen, view)
        await pilot.press(back)
        assert isinstance(app.screen, Overview)
        assert app.is_running


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_leaving_at_the_root(key: str) -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press(key)
        await pilot.pause()
        assert not app.is_running
    assert app.exit_report() == "report of round 1"


async def test_ctrl_c_quits_from_anywhere() -> None:
    for keys in (["e"], ["slash", "a"], ["colon", "x"], ["w"], ["r"]):
        _, app = replayed(factory.queueing())
        async with app.run_test() as pilot:
            for key in [*keys, "ctrl+c"]:
                await pilot.press(key)
            await pilot.pause()
            assert not app.is_running, keys


@pytest.mark.parametrize("typed", ["q", "quit", ":q", "q!"])
async def test_quitting_by_command(typed: str) -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press("colon", *typed, "enter")
        await until(pilot, lambda: not app.is_running)


async def test_nothing_was_read_so_there_is_nothing_to_report() -> None:
    _, app = replayed(None)
    async with app.run_test() as pilot:
        await pilot.press("q")
    assert app.exit_report() == ""


async def test_the_cursor_moves_like_in_vi_and_with_arrows() -> None:
    _, app = replayed(factory.fleet(100))
    async with app.run_test() as pilot:
        first = under_cursor(app)
        await pilot.press("j", "j", "k")
        second = under_cursor(app)
        await pilot.press("up", "down")
        assert under_cursor(app) == second != first
        await pilot.press("G")
        last = under_cursor(app)
        await pilot.press("pageup", "pagedown")
        assert under_cursor(app) == last
        await pilot.press("g")
        assert under_cursor(app) == first
        await pilot.press("k")
        assert under_cursor(app) == first


async def test_the_filter_opens_narrows_and_clears() -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press("slash", *"ghi")
        assert "1 of 5 rows" in text(app)
        await pilot.press("enter", "j")
        assert under_cursor(app) == "vllm-7f9-ghi"
        await pilot.press("escape")
        assert "1 of 5 rows" not in text(app)
        assert isinstance(app.screen, Overview)
        await pilot.press("slash", *"zzz")
        assert "no row matches" in text(app)
        await pilot.press("escape", "j")
        assert under_cursor(app)


async def test_a_pasted_escape_sequence_does_not_enter_the_filter() -> None:
    from textual.events import Paste

    _, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press("slash")
        app.screen.focused.post_message(Paste("\x1b]0;owned\x07\x9b31m"))  # type: ignore[union-attr]
        await pilot.press("d", "e", "f")
        assert "filter “def”" in text(app)


@pytest.mark.parametrize("key", ["exclamation_mark", "ctrl+z"])
async def test_faults_only(key: str) -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press(key)
        assert "vllm-7f9-def" not in text(app)
        assert "faults only" in lines(app)[1]
        await pilot.press(key)
        assert "vllm-7f9-def" in text(app)


async def test_sorting_by_letter_and_back() -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press("N")
        heading = next(line for line in lines(app) if "replica" in line and "state" in line)
        assert "replica▾" in heading
        names = [line[2:14] for line in lines(app) if line[2:11] == "vllm-7f9-"]
        assert names == sorted(names)
        await pilot.press("N")
        assert "replica▴" in text(app)
        await pilot.press("B")
        assert "▾" not in text(app)


async def test_the_interval_has_steps() -> None:
    feed, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press("plus")
        assert feed.interval_s == 10.0
        assert "every 10s" in lines(app)[0]
        await pilot.press("minus", "minus", "minus", "minus", "minus")
        assert feed.interval_s == 1.0
        for _ in range(9):
            await pilot.press("plus")
        assert feed.interval_s == 60.0


async def test_refresh_asks_the_feed() -> None:
    feed, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press("ctrl+r")
        assert feed.refreshed == 1


async def test_verdicts_are_cycled() -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.pause()
        assert "LIKELY  queueing" in lines(app)[1]
        await pilot.press("right_square_bracket")
        assert "POSSIBLE  kv-pressure" in lines(app)[1]
        await pilot.press("r")
        assert "no runbook for kv-pressure" in text(app)
        await pilot.press("q", "right_square_bracket")
        assert "LIKELY  queueing" in lines(app)[1]
        await pilot.press("left_square_bracket")
        assert "POSSIBLE  kv-pressure" in lines(app)[1]


async def test_enter_on_the_card_opens_the_evidence() -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test() as pilot:
        await pilot.press("shift+tab", "enter")
        await pilot.pause()
        assert isinstance(app.screen, EvidenceScreen)


async def test_copy_puts_the_verdict_on_the_clipboard() -> None:
    _, app = replayed(factory.queueing())
    async with app.run_test(notifications=True) as pilot:
        await pilot.press("c")
        await until(pilot, lambda: "verdict copied" in text(app))
        assert "LIKELY  queueing (sequence-limit)" in app.clipboard
        assert "41 requests wait" in app.clipboard


async def test_demo_switches() -> None:
    log: list[str] = ["healthy"]
    _, app = replayed(factory.queueing(), switches=switches(log))
    async with app.run_test(notifications=True) as pilot:
        await pilot.press("D", "down", "enter")
        await until(pilot, lambda: "more requests than slots: on" in text(app))
        assert log == ["healthy", "queueing"]
        await pilot.press("colon", *"incident heal", "enter")
        await until(pilot, lambda: log[-1] == "healthy")


async def test_incidents_that_stand_in_no_list_are_typed() -> None:
    """Sums of incidents; and a word that means nothing is answered, not swallowed."""
    typed: list[str] = []

    def switch_on(name: str) -> None:
        typed.append(name)
        if "fire" in name:
            raise ValueError("there is no such incident: fire")

    _, app = replayed(factory.queueing(), switches=switches([]), switch_on=switch_on)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await pilot.press("colon", *"incident xid+queueing", "enter")
        await until(pilot, lambda: "xid+queueing: on" in text(app))
        await pilot.press("colon", *"incident fire", "enter")
        await until(pilot, lambda: "there is no such incident: fire" in text(app))
        assert typed == ["xid+queueing", "fire"]
        await pilot.press("colon", *"restart the pod", "enter")
        await until(pilot, lambda: "no such command: restart the pod" in text(app))


async def test_a_broken_switch_is_a_message() -> None:
    from triage.tui.app import Switch

    def broken() -> None:
        raise RuntimeError("port [taken]")

    _, app = replayed(factory.queueing(), switches=[Switch("a", "b", broken, lambda: False)])
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await pilot.press("D", "enter")
        await until(pilot, lambda: "port [taken]" in text(app))
        assert app.is_running


async def test_keys_that_make_no_sense_are_not_bound() -> None:
    feed = factory.FakeFeed(factory.queueing())
    app = make_app(feed, probe_on=False)
    async with app.run_test(size=(80, 60)) as pilot:
        await pilot.press("D", "w", "2", "9")
        assert isinstance(app.screen, Overview)
        await pilot.press("question_mark")
        assert "demo" not in text(app)
        assert "send probe" not in text(app)


async def test_help_follows_a_changed_key_map() -> None:
    _, app = replayed(factory.queueing())
    app.set_keymap({"evidence": "v", "faults": "f"})
    async with app.run_test(size=(80, 60)) as pilot:
        await pilot.press("f")
        assert "faults only" in lines(app)[1]
        await pilot.press("question_mark")
        shown = text(app)
        assert "v         evidence" in shown
        assert "f         faults only" in shown
        assert "e         evidence" not in shown


async def test_help_names_every_key_of_the_overview() -> None:
    _, app = replayed(factory.queueing(), switches=switches([]))
    async with app.run_test(size=(80, 60)) as pilot:
        await pilot.press("question_mark")
        shown = text(app)
        for binding in [*APP_KEYS, *OVERVIEW_KEYS, *MOVE_KEYS]:
            assert isinstance(binding, Binding)
            assert binding.description in shown, binding.id


def test_ids_of_bindings_are_unique_within_a_view() -> None:
    for keys in ([*APP_KEYS, *OVERVIEW_KEYS, *MOVE_KEYS], [*APP_KEYS, *VIEW_KEYS, *MOVE_KEYS]):
        ids = [binding.id for binding in keys if isinstance(binding, Binding)]
        assert None not in ids
        assert len(set(ids)) == len(ids)
