"""One client a target: allowed requests only, inside a deadline and a byte bound, failures as values."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from triage.domain.target import Failure, FailureReason
from triage.gate.access import Access, Credential
from triage.gate.address import address_of
from triage.gate.allow import Purpose, refusal
from triage.gate.credential import CredentialReader
from triage.gate.failures import failure_of, failure_of_status
from triage.gate.names import Names, Resolver, resolve
from triage.gate.transcript import Exchange

if TYPE_CHECKING:
    from triage.gate.wire import Order, Progress, Wire

# Real pages have some hundred KB at most, model lists less.
BODY_LIMIT = 16 * 1024 * 1024


class Answer(msgspec.Struct, frozen=True):
    """A 2xx answer that came to its end. body: decoded; empty where it was streamed. size: bytes on the wire."""

    status: int
    content_type: str
    body: bytes
    size: int


class Client:
    """Reads and probes one target. Every method gives a Failure instead of raising one.

    Two things are waited for beside the time-out of a request: the credential (10 s at most, when it has to be
    read), and, after a 401, one repetition with a token that was read anew.
    """

    def __init__(
        self, access: Access, names: Names, credential: CredentialReader | None, transcript: deque[Exchange]
    ) -> None:
        """ConfigError when the URL cannot be meant."""
        self.access = access
        self.address = address_of(access.url)
        self._names = names
        self._credential = credential
        self._transcript = transcript
        self._wire: Wire | None = None

    async def prepare(self) -> Failure | None:
        """Read the credential and load the HTTP library now, so that neither falls into a measurement."""
        import triage.gate.wire  # noqa: F401

        token = "" if self._credential is None else await self._credential.token()
        return token if isinstance(token, Failure) else None

    async def get(
        self, path: str, *, query: str = "", limit: int = BODY_LIMIT, timeout_s: float | None = None
    ) -> Answer | Failure:
        """GET a path of the allow-list. path: from the root, with the address's prefix. limit: decoded bytes.

        query: already encoded, without '?'.
        """
        body = bytearray()
        answer = await self._exchange(
            Purpose.READ, "GET", path, b"", body.extend, limit, timeout_s or self.access.timeout_s, query
        )
        return msgspec.structs.replace(answer, body=bytes(body)) if isinstance(answer, Answer) else answer

    async def probe(
        self, path: str, content: bytes, take: Callable[[bytes], object], *, limit: int, timeout_s: float
    ) -> Answer | Failure:
        """POST a marked request; `take` gets the bytes of its 2xx answer as they come.

        A failure after the first byte has the status: what was taken until then counts.
        """
        return await self._exchange(Purpose.PROBE, "POST", path, content, take, limit, timeout_s)

    async def close(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            await wire.close()

    async def _exchange(
        self,
        purpose: Purpose,
        method: str,
        path: str,
        content: bytes,
        take: Callable[[bytes], object],
        limit: int,
        timeout_s: float,
        query: str = "",
    ) -> Answer | Failure:
        refused = refusal(purpose, method, path, query)
        if refused is not None:
            return refused
        token = "" if self._credential is None else await self._credential.token()
        if isinstance(token, Failure):
            return token
        from triage.gate.wire import Order

        order = Order(purpose, method, f"{path}?{query}" if query else path, content, take, limit)
        answer = await self._timed(order, token, timeout_s)
        if not isinstance(answer, Failure) or answer.reason is not FailureReason.UNAUTHORIZED:
            return answer
        renewed = "" if self._credential is None else await self._credential.token(refused=token)
        return (
            answer if isinstance(renewed, Failure) or renewed == token else await self._timed(order, renewed, timeout_s)
        )

    async def _timed(self, order: "Order", token: str, timeout_s: float) -> Answer | Failure:
        from triage.gate.wire import Progress, Wire

        progress = Progress()
        started = time.monotonic()
        answer: Answer | Failure
        try:
            if self._wire is None:
                self._wire = Wire(self.access, self.address, self._names)
            async with asyncio.timeout(timeout_s):
                await self._wire.send(order, token, progress, started + timeout_s)
            answer = _judged(progress)
        except TimeoutError:
            late = Failure(FailureReason.TIMEOUT, f"{progress.stage} within {timeout_s:g} s", progress.status)
            answer = _status_failure(progress) or late
        except Exception as error:  # one target's strangeness must not end the reading of all the others
            broken = failure_of(error, self.address.authority)
            answer = _status_failure(progress) or msgspec.structs.replace(broken, status=progress.status)
        self._note(order, progress, answer, started)
        return answer

    def _note(self, order: "Order", progress: "Progress", answer: Answer | Failure, started: float) -> None:
        if self._transcript.maxlen == 0:
            return
        self._transcript.append(
            Exchange(
                at=time.time(),
                method=order.method,
                url=f"{self.address.scheme}://{self.address.authority}{order.path}",
                credential=str(self.access.credential or ""),
                status=progress.status,
                size=progress.size,
                took_ms=1000 * (time.monotonic() - started),
                failure=str(answer) if isinstance(answer, Failure) else "",
            )
        )


def _judged(progress: "Progress") -> Answer | Failure:
    assert progress.status is not None
    return _status_failure(progress) or Answer(progress.status, progress.content_type, b"", progress.size)


def _status_failure(progress: "Progress") -> Failure | None:
    """What an error status says, also where its body was cut; None without a status or with a 2xx one."""
    if progress.status is None:
        return None
    return failure_of_status(progress.status, progress.location, progress.content_type, bytes(progress.error_body))


class Gate:
    """Builds the clients, and what they share: name look-ups, credentials, the transcript.

    transcript: how many exchanges are kept. resolver and clock: parameters so that tests can hold them.
    """

    def __init__(
        self, transcript: int = 0, *, resolver: Resolver = resolve, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.transcript: deque[Exchange] = deque(maxlen=transcript)
        self._names = Names(resolver)
        self._clock = clock
        self._credentials: dict[Credential, CredentialReader] = {}
        self._clients: list[Client] = []

    def client(self, access: Access) -> Client:
        """A client with a transport of its own. ConfigError when the URL cannot be meant."""
        credential = access.credential
        reader = (
            self._credentials.setdefault(credential, CredentialReader(credential, self._clock)) if credential else None
        )
        client = Client(access, self._names, reader, self.transcript)
        self._clients.append(client)
        return client

    async def close(self) -> None:
        """Close every client's connections."""
        for client in self._clients:
            await client.close()
