"""Everything behind the verdicts."""

from functools import partial

from textual.widget import Widget

from triage.monitor.observation import Observation
from triage.tui import look
from triage.tui.evidence_text import evidence_lines
from triage.tui.lines import line
from triage.tui.reader import Reader
from triage.tui.session import Session
from triage.tui.view import View


class EvidenceScreen(View):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._reader = Reader()

    def body(self) -> list[Widget]:
        return [self._reader]

    def crumb(self) -> str:
        return "evidence"

    def draw(self, observation: Observation | None) -> None:
        if observation is None:
            self._reader.show(lambda _width: [line((" no reading yet", look.DIM))])
        else:
            self._reader.show(partial(evidence_lines, observation, self.session.verdict_index))
