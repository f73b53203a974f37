"""The first line: where one is, what answers, how old the picture is."""

from collections import Counter

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import Static

from triage.domain.target import TargetState
from triage.domain.text import clean
from triage.monitor.observation import Observation
from triage.tui import look, numbers
from triage.tui.arrange import WIDE
from triage.tui.session import Session
from triage.tui.wording import fit_middle

_COUNTED = (
    ("ok", (TargetState.OK,)),
    ("dark", (TargetState.DARK, TargetState.NEVER)),
    ("stale", (TargetState.STALE,)),
    ("no metrics", (TargetState.NO_METRICS,)),
)


class TitleLine(Static):
    """Breadcrumbs to the left, counts to the right; on a narrow screen the crumbs give way."""

    DEFAULT_CSS = """
    TitleLine { height: 1; background: $panel; }
    """

    def __init__(self, session: Session) -> None:
        super().__init__("", markup=False)
        self._session = session
        self._crumb = ""
        self._drawn: Text | None = None

    def show(self, crumb: str) -> None:
        """crumb: the name of the view, "" for the overview."""
        self._crumb = crumb
        self.redraw()

    def on_resize(self) -> None:
        self.redraw()

    def redraw(self) -> None:
        line = title(self._session, self._crumb, self.size.width)
        if line != self._drawn:
            self._drawn = line
            self.update(line)


def title(session: Session, crumb: str, width: int) -> Text:
    """One line of exactly `width` cells."""
    right = Text()
    wide = width >= WIDE
    if session.paused:
        right.append(f" PAUSED {numbers.age(session.frozen_for_s)} old ", look.REVERSED)
        right.append("  ")
    shown = session.shown
    if shown is not None:
        if wide:
            right.append(f"{numbers.clock_time(shown.at)}  ", look.DIM)
        right.append_text(counts(shown, wide=wide))
        right.append("  " if wide or not session.paused else " ")
    if wide or not session.paused:
        right.append(f"every {numbers.plain(session.feed.interval_s)}s ", look.DIM)
    left = _crumbs(session.feed.name, crumb, max(width - right.cell_len - 2, 8))
    line = Text(no_wrap=True, overflow="crop")
    line.append(f" {left}", look.BOLD)
    line.append(" " * max(width - line.cell_len - right.cell_len, 1))
    line.append_text(right)
    line.truncate(width)
    return line


def _crumbs(name: str, crumb: str, room: int) -> str:
    """What the person is in stays readable longest: first the program's name goes, then the feed's."""
    crumbs = ["triage", clean(name), *([clean(crumb)] if crumb else [])]
    while len(crumbs) > 1 and cell_len(" ▸ ".join(crumbs)) > room:
        del crumbs[0]
    text = " ▸ ".join(crumbs)
    return text if cell_len(text) <= room else fit_middle(text, room)


def counts(observation: Observation, *, wide: bool) -> Text:
    """5 ok · 1 dark · 2 not seen."""
    situation = observation.situation
    states = Counter(status.state for status in situation.targets)
    if not situation.targets:
        states[TargetState.OK] = len(situation.replicas)
    text = Text()
    for word, members in _COUNTED:
        number = sum(states[member] for member in members)
        if number or word == "ok":
            text.append(" · " if text else "")
            shown = word if wide else word.replace("no metrics", look.STATE_SHORT[TargetState.NO_METRICS])
            text.append(f"{number} {shown}", look.STATE_STYLE[members[0]] if number else look.DIM)
    if observation.diagnosis.not_seen:
        text.append(f" · {len(observation.diagnosis.not_seen)} not seen", look.NOTE)
    return text
