"""Bearer tokens read from where the user said they are; never kept anywhere but in memory, never shown."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from triage.domain.target import Failure, FailureReason
from triage.domain.text import clean
from triage.gate.access import Credential, CredentialKind
from triage.gate.threads import call_in_daemon

# A command may have to ask a vault over the network; a file may be a pipe that nobody writes to.
READ_TIMEOUT_S = 10.0
# A token that was refused, or could not be read, is not asked for again within this: one command run
# serves a whole fleet that answers 401, and a broken one is not started at every scrape.
_REST_S = 10.0
_LONGEST = 16 * 1024
_TOKEN = re.compile(r"[\x21-\x7e]+")


class CredentialReader:
    """Reads lazily, once for all targets that name the same credential."""

    def __init__(self, reference: Credential, clock: Callable[[], float] = time.monotonic) -> None:
        self._reference = reference
        self._clock = clock
        self._lock = asyncio.Lock()
        self._value: str | Failure | None = None
        self._read_at = 0.0

    async def token(self, refused: str | None = None) -> str | Failure:
        """refused: the token that a server has just answered with 401; it is read anew unless it was just read."""
        async with self._lock:
            stale = isinstance(self._value, Failure) or (refused is not None and self._value == refused)
            if self._value is None or (stale and self._clock() - self._read_at >= _REST_S):
                self._value = await _read(self._reference)
                self._read_at = self._clock()
            return self._value


async def _read(reference: Credential) -> str | Failure:
    match reference.kind:
        case CredentialKind.ENVIRONMENT:
            found = os.environb.get(os.fsencode(reference.words[0]), "is not set")
        case CredentialKind.FILE:
            found = await _from_file(Path(reference.words[0]))
        case CredentialKind.COMMAND:
            found = await _from_command(reference.words)
    if isinstance(found, str):
        return _failure(reference, found)
    text = found.decode("utf-8", "replace").strip()
    if not text:
        return _failure(reference, "gives nothing")
    if len(text) > _LONGEST or _TOKEN.fullmatch(text) is None:
        # Also keeps a line end in it from becoming a header of its own.
        return _failure(reference, "gives no token: one line of ASCII characters without spaces is expected")
    return text


def _failure(reference: Credential, why: str) -> Failure:
    return Failure(FailureReason.CREDENTIAL, clean(f"{reference} {why}"))


async def _from_file(path: Path) -> bytes | str:
    """Its bytes, or why not."""

    def read() -> bytes:
        with path.open("rb") as file:
            return file.read(_LONGEST + 1)

    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            found = await call_in_daemon(read)
    except TimeoutError:
        return f"gives nothing within {READ_TIMEOUT_S:g} s"
    if isinstance(found, OSError):
        return f"cannot be read: {found.strerror}"
    if isinstance(found, Exception):
        return "cannot be read"
    return found


async def _from_command(argv: tuple[str, ...]) -> bytes | str:
    """What it prints, or why not. No shell. What it says on stderr is not shown: it may be a secret.

    In a thread: asyncio's own wait() does not return while a pipe of the process is paused or held by a child.
    """
    run = _Run(argv)
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            printed = await asyncio.shield(call_in_daemon(run.printed))
    except TimeoutError:
        return f"did not end within {READ_TIMEOUT_S:g} s"
    finally:
        run.end()
    return "cannot be run" if isinstance(printed, Exception) else printed


class _Run:
    """One run of a command, that another thread may end."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def printed(self) -> bytes | str:
        """Blocks until it has ended, or was ended."""
        try:
            process = self._process = subprocess.Popen(  # noqa: S603 - the command that the user has named
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a group of its own, so that its children end with it
            )
        except OSError as error:
            return f"cannot be started: {error.strerror}"
        if self._ended:
            self.end()
        assert process.stdout is not None
        with process:
            text = process.stdout.read(_LONGEST + 1)
            if len(text) > _LONGEST:
                self.end()
                return "prints too much"
        code = process.returncode
        return text if code == 0 else f"ended with exit code {code}: run it by hand to see why"

    def end(self) -> None:
        """Kill it with its children, unless it has ended by itself."""
        self._ended = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
