"""The first screen: verdict card, fleet table, and a line about the row under the cursor."""

from rich.text import Text
from textual.widget import Widget
from textual.widgets import Input, Static

from triage.domain.text import clean
from triage.monitor.observation import Observation
from triage.tui import look
from triage.tui.arrange import SORT_KEYS, arranged, chosen
from triage.tui.cells import Column
from triage.tui.fleet import FleetRow, fleet_rows
from triage.tui.fleet_table import FleetTable
from triage.tui.keys import OVERVIEW_KEYS
from triage.tui.line_input import LineInput
from triage.tui.session import Session
from triage.tui.target_screen import TargetScreen
from triage.tui.verdict_card import VerdictCard
from triage.tui.view import View
from triage.tui.wording import fit


class Overview(View):
    DEFAULT_CSS = """
    Overview #about { height: 1; color: $foreground 80%; }
    Overview #filter { display: none; }
    Overview #filter.-open { display: block; }
    """
    BINDINGS = OVERVIEW_KEYS
    ROOT = True
    AUTO_FOCUS = "FleetTable"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._card = VerdictCard()
        self._table = FleetTable()
        self._about = Static("", id="about", markup=False)
        self._filter = LineInput("filter by name, model, state or reason: enter keeps it, esc clears it")
        self._filter.id = "filter"
        self._rows: tuple[FleetRow, ...] = ()
        self._seen = 0
        self._faults_only = False
        self._by: Column | None = None
        self._reverse = False

    def body(self) -> list[Widget]:
        return [self._card, self._table, self._about, self._filter]

    def draw(self, observation: Observation | None) -> None:
        rows = fleet_rows(observation.situation, observation.diagnosis) if observation else ()
        name = clean(self.session.feed.name)
        self._card.show(observation, self.session.verdict_index, name, probe_on=self.session.probe_on)
        self._rows = rows
        self._arrange()

    def _arrange(self) -> None:
        rows = chosen(self._rows, self._filter.value, faults_only=self._faults_only)
        self._seen = len(rows)
        self._table.show(arranged(rows, self._by, reverse=self._reverse), self._by, self._reverse)

    def crumb(self) -> str:
        """The model, when all replicas serve the same one."""
        models = {row.model for row in self._rows if row.model}
        return models.pop() if len(models) == 1 else ""

    def notices(self) -> list[tuple[str, bool]]:
        pieces = []
        if self._faults_only:
            pieces.append("faults only (! shows all)")
        if self._filter.value:
            pieces.append(f"filter “{self._filter.value}” (esc clears)")
        if pieces:
            pieces.append(f"{self._seen} of {len(self._rows)} rows")
        return [(piece, False) for piece in pieces]

    def on_fleet_table_moved(self) -> None:
        row = self._table.current
        width = self.app.size.width - 1
        line = Text(" ", no_wrap=True, overflow="crop")
        if row is None:
            line.append("no row matches" if self._rows else "", look.DIM)
        else:
            parts = (row.name, row.state.value, *row.reasons, row.about)
            line.append(fit(" · ".join(part for part in parts if part), width))
        self._about.update(line)

    def on_resize(self) -> None:
        self.on_fleet_table_moved()

    def on_fleet_table_opened(self, event: FleetTable.Opened) -> None:
        self.app.push_screen(TargetScreen(self.session, event.row.key, event.row.name))

    async def on_verdict_card_opened(self) -> None:
        await self.app.run_action("evidence")

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._arrange()
        self.tick()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_filter()

    def action_filter(self) -> None:
        self._filter.add_class("-open")
        self._filter.focus()

    def _close_filter(self) -> None:
        self._filter.remove_class("-open")
        self._table.focus()

    def action_clear(self) -> None:
        self._filter.value = ""
        self._close_filter()

    def action_faults(self) -> None:
        self._faults_only = not self._faults_only
        self._arrange()
        self.tick()

    def action_verdict(self, step: int) -> None:
        self.session.step_verdict(step)
        self.refresh_view()

    def action_sort(self, key: str) -> None:
        by = SORT_KEYS[key]
        self._reverse = by == self._by and not self._reverse
        self._by = by
        self._arrange()
