"""A program under a pseudo-terminal, and when it shows something."""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])")
_COLUMNS, _LINES = 140, 45
_PATIENCE_S = 60.0


class Terminal:
    """One process that believes to be on a terminal of 140 × 45. The times are those of time.perf_counter()."""

    def __init__(self, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        """directory: the working directory, and where the program looks for the user's configuration."""
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, _COLUMNS, 0, 0))
        environment = {**environment, "TERM": "xterm-256color", "XDG_CONFIG_HOME": str(directory)}
        self._unread = b""
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, cwd=directory, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def wait_for(self, pattern: re.Pattern[str], *, other_than: str = "") -> tuple[float, str]:
        """When text was there that the pattern matches, and its first group; older text is forgotten with it.

        other_than: a first group that does not count. TimeoutError after a minute.
        """
        end = time.perf_counter() + _PATIENCE_S
        while (now := time.perf_counter()) < end:
            text = _ESCAPES.sub(b"", self._unread).decode("utf-8", "replace")
            for found in pattern.finditer(text):
                if found[1] != other_than:
                    self._unread = b""
                    return now, found[1]
            self._take(end - now)
        raise TimeoutError(f"{pattern.pattern} never came; the last text was {text[-2000:]}")

    def rest(self, seconds: float) -> None:
        """Let it run, and forget what it shows meanwhile."""
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self._take(left)
        self._unread = b""

    def press(self, keys: bytes) -> float:
        """When they were sent."""
        at = time.perf_counter()
        os.write(self._master, keys)
        return at

    def _take(self, seconds: float) -> None:
        """What comes within so many seconds, as soon as something does. RuntimeError when the program has ended."""
        if not select.select([self._master], [], [], seconds)[0]:
            return
        try:
            self._unread += os.read(self._master, 65536)
        except OSError as error:  # Linux says so when nobody has the other side open any more
            said = _ESCAPES.sub(b"", self._unread).decode("utf-8", "replace")
            raise RuntimeError(f"the program ended; it said {said[-2000:]}") from error
