"""Bearer tokens read from where the user said they are; never kept anywhere but in memory, never shown."""

import asyncio
import os
import re
import signal
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
            found: bytes | str = os.environ.get(reference.words[0]) or "is not set or empty"
            raw = None if reference.words[0] not in os.environ else os.environ[reference.words[0]].encode()
        case CredentialKind.FILE:
            found = await _from_file(reference.words[0])
            raw = found if isinstance(found, bytes) else None
        case CredentialKind.COMMAND:
            found = await _from_command(reference.words)
            raw = found if isinstance(found, bytes) else None
    if raw is None:
        return _failure(reference, str(found))
    text = raw.decode("utf-8", "replace").strip()
    if not text:
        return _failure(reference, "gave nothing")
    if len(text) > _LONGEST or _TOKEN.fullmatch(text) is None:
        # Also keeps a line end in it from adding a header of its own.
        return _failure(
            reference, "gave something that is no token: more than one line, or other than ASCII characters"
        )
    return text
