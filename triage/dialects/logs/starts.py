"""Follows the starts of an engine through its log: phases, progress, and how each ended."""

import re
from collections import deque

from triage.dialects.logs.table import Launch, Marker
from triage.dialects.logs.times import Clock
from triage.domain.logs import LogMark, PhaseRecord, Start, StartEnd, StartPhase

# The newest starts are kept: a container that crashes every minute has hundreds in its log.
_KEPT = 20
# Which process wrote the line: "(EngineCore_DP0 pid=98) ". Each of several writes its own first line.
_LABEL = re.compile(r"\((\w{1,40}?) pid=\d{1,10}\) ")
_KEY_PART = re.compile(r"\b([a-z]{1,12})=([0-9a-f]{6,64})\b")


class StartFollower:
    """Fed with the marked lines of one log, in their order."""

    def __init__(self) -> None:
        self.count = 0
        self._done: deque[Start] = deque(maxlen=_KEPT)
        self._open: _Open | None = None

    def take(self, row: Marker | Launch, found: re.Match[str], line: str, number: int, clock: Clock | None) -> None:
        """One line that tells of a start or of its end."""
        if isinstance(row, Launch):
            self._note(row, found, line, number, clock, StartPhase.LAUNCH)
            return
        if row.mark is LogMark.STARTED or row.mark is LogMark.FATAL:
            if self._open is not None and self._open.end is StartEnd.OPEN:
                self._open.close(StartEnd.READY if row.mark is LogMark.STARTED else StartEnd.FAILED, number, clock)
            return
        if row.phase is not None:
            self._note(row, found, line, number, clock, row.phase)

    def _note(
        self,
        row: Marker | Launch,
        found: re.Match[str],
        line: str,
        number: int,
        clock: Clock | None,
        phase: StartPhase,
    ) -> None:
        process = _LABEL.search(line)
        key = (process[1] if process else "", row.needle)
        begins = isinstance(row, Launch) or row.begins
        if self._open is None or (begins and self._open.is_over_for(key)):
            self._finish()
            self.count += 1
            self._open = _Open(number)
        if self._open.end is StartEnd.OPEN:
            self._open.note(phase, found.groupdict(), number, clock, key if begins else None)

    def stopped(self, number: int) -> None:
        """It was told to stop before it was ready."""
        if self._open is not None and self._open.end is StartEnd.OPEN:
            self._open.close(StartEnd.FAILED, number, None)

    def served(self, number: int) -> None:
        """Tokens were made or requests answered in this line: the start is over."""
        if self._open is not None and self._open.end is StartEnd.OPEN:
            self._open.close(StartEnd.READY, number, None)

    def newest_line(self) -> int:
        """Last line of a start that is still open; 0 without one."""
        return self._open.last_line if self._open is not None and self._open.end is StartEnd.OPEN else 0

    def starts(self) -> tuple[Start, ...]:
        """All that are kept, oldest first. Ends the following."""
        self._finish()
        return tuple(self._done)

    def _finish(self) -> None:
        if self._open is not None:
            self._done.append(self._open.start())
            self._open = None


class _Open:
    """The start that is being read."""

    def __init__(self, number: int) -> None:
        self.line = number
        self.last_line = number
        self.end = StartEnd.OPEN
        self._phases: dict[StartPhase, _Phase] = {}
        self._begun: set[tuple[str, str]] = set()
        self._calendar: bool | None = None
        self._first: float | None = None
        self._last: float | None = None
        self._path = ""
        self._key: dict[str, str] = {}
        self._hit: bool | None = None

    def is_over_for(self, key: tuple[str, str]) -> bool:
        """A process that writes its first line again is another process, unless nothing has happened since."""
        if self.end is not StartEnd.OPEN:
            return True
        return key in self._begun and any(phase is not StartPhase.LAUNCH for phase in self._phases)

    def note(
        self,
        phase: StartPhase,
        groups: dict[str, str | None],
        number: int,
        clock: Clock | None,
        begun: tuple[str, str] | None,
    ) -> None:
        if begun is not None:
            self._begun.add(begun)
        self.last_line = number
        seconds = self._clock(clock)
        self._phases.setdefault(phase, _Phase(phase)).note(groups, number, seconds)
        if path := groups.get("path"):
            self._path = path
        if key := groups.get("key"):
            self._key = dict(_KEY_PART.findall(key))
        if groups.get("hit"):
            self._hit = True
        elif groups.get("miss") and self._hit is None:
            self._hit = False

    def close(self, end: StartEnd, number: int, clock: Clock | None) -> None:
        self.end = end
        self.last_line = number
        self._clock(clock)

    def start(self) -> Start:
        return Start(
            line=self.line,
            last_line=self.last_line,
            end=self.end,
            phases=tuple(phase.record() for phase in self._phases.values()),
            first=self._first,
            last=self._last,
            calendar=self._calendar is not False,
            cache_path=self._path,
            cache_key=self._key,
            cache_hit=self._hit,
        )

    def _clock(self, clock: Clock | None) -> float | None:
        """The clock's seconds when it counts from the same origin as the first one of this start."""
        if clock is None:
            return None
        if self._calendar is None:
            self._calendar = clock.calendar
        if clock.calendar is not self._calendar:
            return None
        if self._first is None:
            self._first = clock.seconds
        self._last = clock.seconds
        return clock.seconds


class _Phase:
    """One phase of it."""

    def __init__(self, phase: StartPhase) -> None:
        self._phase = phase
        self._line = self._lines = self._changes = 0
        self._first: float | None = None
        self._last: float | None = None
        self._took: float | None = None
        self._step: float | None = None
        self._progress: tuple[float, float] | None = None

    def note(self, groups: dict[str, str | None], number: int, seconds: float | None) -> None:
        self._line = number
        self._lines += 1
        if seconds is not None:
            self._first = seconds if self._first is None else self._first
            self._last = seconds
        if took := groups.get("seconds"):
            self._took = max(self._took or 0.0, float(took))
        progress = _progress(groups)
        if progress is not None:
            self._changes += self._progress is not None and progress != self._progress
            self._progress = progress
        pace = groups.get("pace")
        if pace and float(pace) > 0:
            self._step = float(pace) if groups.get("unit") == "s/it" else 1 / float(pace)

    def record(self) -> PhaseRecord:
        done, total = self._progress or (None, None)
        return PhaseRecord(
            phase=self._phase,
            line=self._line,
            lines=self._lines,
            first=self._first,
            last=self._last,
            took_s=self._took,
            done=done,
            total=total,
            changes=self._changes,
            step_s=self._step,
        )


def _progress(groups: dict[str, str | None]) -> tuple[float, float] | None:
    done, total, percent = groups.get("done"), groups.get("total"), groups.get("percent")
    if done is not None and total is not None:
        return float(done), float(total)
    return None if percent is None else (float(percent), 100.0)
