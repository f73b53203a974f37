"""What all screens of one run share: the feed, what it brought last, and what is looked at."""

from collections.abc import Callable, Sequence

from triage.domain.verdict import Kind, Scope, Verdict
from triage.monitor.observation import Feed, Observation
from triage.tui.switch import Switch

# Readings are late when three intervals pass without one: one may be slow, two are a pattern.
_LATE_INTERVALS = 3.0


class Session:
    """Mutable on purpose and in one place; everything it hands down is immutable.

    clock: monotonic seconds, only for how long ago something arrived here.
    """

    def __init__(
        self,
        feed: Feed,
        *,
        runbook: Callable[[str], str | None],
        switches: Sequence[Switch],
        switch_on: Callable[[str], None] | None,
        probe_on: bool,
        clock: Callable[[], float],
    ) -> None:
        self.feed = feed
        self.runbook = runbook
        self.switches = tuple(switches)
        self.switch_on = switch_on
        self.probe_on = probe_on
        self.newest: Observation | None = None
        self.shown: Observation | None = None
        self.paused = False
        self.error = ""  # of the feed; gone with its next good round
        self.draw_error = ""  # of drawing; gone with the next round that could be drawn
        self._clock = clock
        self._arrived_at = clock()
        self._shown_at = clock()
        self._chosen: tuple[Kind, Scope] | None = None

    def receive(self, observation: Observation) -> None:
        """Take a new round; it becomes visible unless the view is paused."""
        self.newest = observation
        self.error = ""
        self._arrived_at = self._clock()
        if not self.paused or self.shown is None:
            self.shown, self._shown_at = observation, self._arrived_at

    def toggle_pause(self) -> None:
        self.paused = not self.paused
        if not self.paused and self.newest is not None:
            self.shown, self._shown_at = self.newest, self._arrived_at

    @property
    def frozen_for_s(self) -> float:
        """Seconds since the round on screen arrived."""
        return max(self._clock() - self._shown_at, 0.0)

    @property
    def silent_for_s(self) -> float | None:
        """Seconds without a round, once that is longer than usual; else None."""
        silent = self._clock() - self._arrived_at
        return silent if silent > _LATE_INTERVALS * max(self.feed.interval_s, 1.0) else None

    @property
    def verdict_index(self) -> int:
        """Place of the chosen verdict in this round; 0 when it is gone or none was chosen."""
        if self.shown is None or self._chosen is None:
            return 0
        places = [(verdict.kind, verdict.scope) for verdict in self.shown.diagnosis.verdicts]
        return places.index(self._chosen) if self._chosen in places else 0

    @property
    def verdict(self) -> Verdict | None:
        if self.shown is None or not self.shown.diagnosis.verdicts:
            return None
        return self.shown.diagnosis.verdicts[self.verdict_index]

    def step_verdict(self, step: int) -> None:
        """Choose the next or previous verdict. Back at the first one, the first one stays chosen whatever it is."""
        if self.shown is None or not self.shown.diagnosis.verdicts:
            return
        verdicts = self.shown.diagnosis.verdicts
        place = (self.verdict_index + step) % len(verdicts)
        self._chosen = (verdicts[place].kind, verdicts[place].scope) if place else None
