"""The app: follows the feed, hands each observation to the view on top, and holds the global keys."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from textual import work
from textual.app import App
from textual.screen import Screen

from triage.domain.errors import TriageError
from triage.domain.text import clean
from triage.monitor.observation import Feed, Observation
from triage.tui import look
from triage.tui.command_screen import Command, CommandScreen
from triage.tui.commands import commands, incident_of
from triage.tui.evidence_screen import EvidenceScreen
from triage.tui.evidence_text import verdict_text
from triage.tui.keys import APP_KEYS, help_groups
from triage.tui.overview import Overview
from triage.tui.session import Session
from triage.tui.switch import Switch
from triage.tui.view import View

__all__ = ["Switch", "TriageApp"]

_INTERVALS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0)
# After a failed round the feed is asked again, not in a busy loop and not after minutes.
_RETRY_LEAST_S, _RETRY_MOST_S = 0.5, 5.0
# How long the thread that judges may keep the interpreter while a key waits. Answering a key takes a dozen turns
# of the loop, and each may wait this long: with the usual 5 ms a key waits 60 ms, with 1 ms 12 ms.
_TURN_S = 0.001


class TriageApp(App[None]):
    """The screens on one feed.

    feed: where observations come from. runbook: Markdown for a verdict's runbook key, or None; whatever
    it filled in from remote systems must be harmless already. report: short text of an observation, for
    the scrollback. switches: what the demo can turn on; switch_on: the same by typed words.
    probe_on: may the probe be sent? clock: monotonic seconds.
    """

    TITLE = "triage"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = APP_KEYS
    CSS = """
    Toast { width: 60; max-width: 90%; }
    """

    def __init__(
        self,
        feed: Feed,
        *,
        runbook: Callable[[str], str | None],
        report: Callable[[Observation], str],
        switches: Sequence[Switch] = (),
        switch_on: Callable[[str], None] | None = None,
        probe_on: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # With native colours Textual's filter for NO_COLOR takes every colour out; otherwise it would
        # paint in greys, which are colours too.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.register_theme(look.THEME)
        self.theme = look.THEME.name
        self._feed = feed
        self._report = report
        self._session = Session(
            feed, runbook=runbook, switches=switches, switch_on=switch_on, probe_on=probe_on, clock=clock
        )

    def get_default_screen(self) -> Screen[None]:
        latest = self._feed.latest()
        if latest is not None:
            self._session.receive(latest)
        return Overview(self._session)

    def on_mount(self) -> None:
        sys.setswitchinterval(_TURN_S)
        self._follow()
        self.set_interval(1.0, self._tick)

    def exit_report(self) -> str:
        """The report of the newest observation, "" when there was none."""
        newest = self._session.newest
        return self._report(newest) if newest is not None else ""

    @work(exclusive=True, group="feed", exit_on_error=False)
    async def _follow(self) -> None:
        wait = _RETRY_LEAST_S
        while True:
            newest = self._session.newest
            sequence = newest.sequence if newest is not None else -1
            try:
                observation = await self._feed.newer_than(sequence)
                if observation.sequence <= sequence:
                    raise ValueError(f"round {observation.sequence} came after round {sequence}")
            except Exception as error:  # whatever it is, it becomes a line on the screen, and we ask again
                self._session.error = f"reading failed: {_said(error)}"
                self._refresh_views()
                await asyncio.sleep(wait)
                wait = min(wait * 2, _RETRY_MOST_S)
                continue
            wait = _RETRY_LEAST_S
            self._session.receive(observation)
            self._refresh_views()

    def _views(self) -> Iterable[View]:
        """The view in sight: the topmost one, also when a dialogue lies over it."""
        return [screen for screen in self.screen_stack if isinstance(screen, View) and screen.is_mounted][-1:]

    def _refresh_views(self) -> None:
        for view in self._views():
            view.refresh_view()

    def _tick(self) -> None:
        for view in self._views():
            view.tick()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Keys that make no sense in this run are not bound at all."""
        if action == "probe":
            return self._session.probe_on
        if action == "evidence":
            return not isinstance(self.screen, EvidenceScreen)
        return bool(self._session.switches) if action == "switches" else True

    def say(self, message: str, *, bad: bool = False) -> None:
        """A toast; its text is never markup."""
        self.notify(clean(message), severity="error" if bad else "information", markup=False, timeout=8)

    def action_overview(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def action_evidence(self) -> None:
        self.push_screen(EvidenceScreen(self._session))

    def action_help(self) -> None:
        from triage.tui.help_screen import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            groups = help_groups(self.screen.active_bindings, self.get_key_display)
            self.push_screen(HelpScreen(self._session, groups))

    def action_runbook(self) -> None:
        verdict = self._session.verdict
        if verdict is None:
            self.say("no verdict yet, so no runbook")
            return
        self._open_runbook(verdict.runbook or verdict.kind.value)

    def _open_runbook(self, kind: str) -> None:
        # Markdown costs 35 ms to import: only for who reads a runbook.
        from triage.tui.runbook_screen import RunbookScreen

        try:
            text = self._session.runbook(kind)
        except Exception as error:  # an unreadable runbook must not take the verdict off the screen
            self.say(f"runbook {kind}: {_said(error)}", bad=True)
            return
        if isinstance(self.screen, RunbookScreen):
            self.pop_screen()
        lines = None if text is None else "\n".join(clean(line, limit=4000) for line in text.split("\n"))
        self.push_screen(RunbookScreen(self._session, kind, lines))

    def action_probe(self) -> None:
        from triage.tui.probe_screen import ProbeScreen

        def done(outcome: tuple[str, bool] | None) -> None:
            if outcome is not None:
                self.say(outcome[0], bad=outcome[1])

        try:
            cost = self._feed.probe_cost()
        except TriageError as error:
            self.say(f"no probe: {_said(error)}", bad=True)
            return
        self.push_screen(ProbeScreen(self._feed, cost), done)

    def action_copy(self) -> None:
        verdict = self._session.verdict
        if verdict is None:
            self.say("no verdict yet to copy")
            return
        self.copy_to_clipboard(verdict_text(verdict))
        self.say("verdict copied")

    def action_pause(self) -> None:
        self._session.toggle_pause()
        self._refresh_views()

    def action_refresh(self) -> None:
        self._feed.refresh()
        self.say("reading now")

    def action_slower(self) -> None:
        self._set_interval(next((step for step in _INTERVALS if step > self._feed.interval_s), _INTERVALS[-1]))

    def action_faster(self) -> None:
        lower = [step for step in _INTERVALS if step < self._feed.interval_s]
        self._set_interval(lower[-1] if lower else _INTERVALS[0])

    def _set_interval(self, seconds: float) -> None:
        self._feed.set_interval(seconds)
        self._tick()

    def action_switches(self) -> None:
        from triage.tui.switch_screen import SwitchScreen

        self.push_screen(SwitchScreen(self._session.switches), self._turn_on)

    def _turn_on(self, switch: Switch | None) -> None:
        if switch is None:
            return
        try:
            switch.action()
        except Exception as error:  # the demo's fault must not end the demo
            self.say(f"{switch.name}: {_said(error)}", bad=True)
            return
        self.say(f"{switch.title}: on")

    def action_command(self) -> None:
        def run(command: Command | None) -> None:
            if command is not None:
                self.call_later(command.run)

        shown = self._session.shown
        found = commands(
            self,
            self.screen,
            verdicts=shown.diagnosis.verdicts if shown else (),
            switches=self._session.switches,
            open_runbook=self._open_runbook,
            turn_on=self._turn_on,
        )
        self.push_screen(CommandScreen(list(found), self._typed), run)

    def _typed(self, words: str) -> Command:
        """A command that stands in no list."""
        name, switch_on = incident_of(words), self._session.switch_on
        if name is None or switch_on is None:
            return Command(words, "", partial(self.say, f"no such command: {words}", bad=True))
        switch = Switch(name, name, partial(switch_on, name), lambda: False)
        return Command(words, "", partial(self._turn_on, switch))


def _said(error: Exception) -> str:
    return clean(str(error)) or type(error).__name__
