"""One target: its history, its facts, its quantities and histograms."""

from functools import partial

from rich.text import Text
from textual.widget import Widget

from triage.monitor.observation import Observation
from triage.tui.charts import chart_lines
from triage.tui.fleet import find
from triage.tui.lines import line
from triage.tui.reader import Reader
from triage.tui.session import Session
from triage.tui.target_text import target_lines
from triage.tui.view import View


class TargetScreen(View):
    def __init__(self, session: Session, key: str, name: str) -> None:
        """key: of the row in the fleet table. name: as the table shows it."""
        super().__init__(session)
        self._key = key
        self._label = name
        self._reader = Reader()

    def body(self) -> list[Widget]:
        return [self._reader]

    def crumb(self) -> str:
        return self._label

    def draw(self, observation: Observation | None) -> None:
        if observation is None:
            self._reader.show(lambda _width: [line(" no reading yet")])
            return
        replica, status = find(observation.situation, self._key)
        target = self._key.partition("\n")[0]
        trails = partial(self.session.feed.trail, target)

        def lines(width: int) -> list[Text]:
            return [*chart_lines(trails, width), *target_lines(replica, status, width)]

        self._reader.show(lines)
