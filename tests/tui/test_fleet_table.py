"""The table draws what changed, and keeps the cursor where the person put it."""

from typing import Any

from textual.app import App, ComposeResult
from textual.geometry import Region

from tests.tui import factory
from tests.tui.screen import lines, until
from triage.tui.arrange import arranged
from triage.tui.cells import Column
from triage.tui.fleet import FleetRow, fleet_rows
from triage.tui.fleet_table import FleetTable


class TableApp(App[None]):
    def compose(self) -> ComposeResult:
        yield FleetTable()

    @property
    def table(self) -> FleetTable:
        return self.query_one(FleetTable)


def rows_of(count: int, sequence: int = 1) -> list[FleetRow]:
    observation = factory.fleet(count, sequence)
    return list(fleet_rows(observation.situation, observation.diagnosis))


def name(table: FleetTable) -> str:
    assert table.current is not None
    return table.current.name


async def test_the_cursor_follows_its_row_and_the_row_keeps_its_place() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        rows = rows_of(100)
        app.table.show(rows, None, False)
        app.table.focus()
        await pilot.press(*["j"] * 20)
        chosen = name(app.table)
        shown_at = next(index for index, line in enumerate(lines(app)) if line.startswith("▸"))
        app.table.show(rows[50:] + rows[:50], None, False)
        await pilot.pause()
        assert name(app.table) == chosen
        assert lines(app)[shown_at].startswith("▸")
        assert chosen in lines(app)[shown_at]


async def test_an_untouched_cursor_stays_at_the_worst_row() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        rows = rows_of(100)
        app.table.show(rows, None, False)
        app.table.show(rows[::-1], None, False)
        await pilot.pause()
        assert name(app.table) == rows[-1].name
        assert lines(app)[1].startswith("▸")


async def test_a_row_that_goes_leaves_the_cursor_near() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        rows = rows_of(10)
        app.table.show(rows, None, False)
        app.table.focus()
        await pilot.press("G")
        app.table.show(rows[:5], None, False)
        assert name(app.table) == rows[4].name
        app.table.show([], None, False)
        await pilot.press("j", "k", "G", "g", "enter", "pagedown")
        assert app.table.current is None
        app.table.show(rows, None, False)
        await pilot.pause()
        assert app.table.current is not None


async def test_only_changed_lines_in_sight_are_drawn_again() -> None:
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        rows = rows_of(1000)
        app.table.show(rows, None, False)
        await pilot.pause()
        drawn: list[tuple[Any, ...]] = []
        original = app.table.refresh

        def refresh(*regions: Region, **options: Any) -> FleetTable:
            drawn.append(regions)
            return original(*regions, **options)

        app.table.refresh = refresh  # type: ignore[method-assign,assignment]
        app.table.show(list(rows), None, False)
        assert drawn == []
        changed = rows_of(1000, 2)
        app.table.show([changed[3] if place == 3 else row for place, row in enumerate(rows)], None, False)
        assert drawn == [(Region(0, 4, 80, 1),)]
        drawn.clear()
        app.table.show([changed[900] if place == 900 else row for place, row in enumerate(rows)], None, False)
        assert [regions for regions in drawn if regions != (Region(0, 4, 80, 1),)] == []


async def test_a_thousand_rows_can_be_walked_while_they_change() -> None:
    app = TableApp()
    async with app.run_test(size=(140, 45)) as pilot:
        app.table.focus()
        for sequence in range(1, 6):
            app.table.show(arranged(rows_of(1000, sequence), Column.WAITING), Column.WAITING, False)
            await pilot.press("pagedown", "j")
        assert name(app.table)
        assert "wait▾" in lines(app)[0]
        await pilot.press("G")
        await until(pilot, lambda: lines(app)[-1].startswith("▸"))


async def test_the_mouse_works_where_there_is_one() -> None:
    app = TableApp()
    opened: list[str] = []
    app.on_fleet_table_opened = lambda event: opened.append(event.row.name)  # type: ignore[attr-defined]
    async with app.run_test(size=(80, 12)) as pilot:
        rows = rows_of(100)
        app.table.show(rows, None, False)
        await pilot.pause()
        await pilot.click(FleetTable, offset=(5, 3))
        assert name(app.table) == rows[2].name
        await pilot.click(FleetTable, offset=(5, 0))
        assert name(app.table) == rows[2].name


async def test_a_reason_takes_the_place_of_numbers() -> None:
    observation = factory.dark()
    app = TableApp()
    async with app.run_test(size=(80, 12)) as pilot:
        app.table.show(fleet_rows(observation.situation, observation.diagnosis), None, False)
        await pilot.pause()
        shown = "\n".join(lines(app))
        assert "dark   time-out: no answer within 5 s" in shown
        assert "never  refused: connection refused" in shown
        assert "nomet  not metrics: an HTML page" in shown
        assert " 0 " not in shown
