"""A requests session without a network of its own, for a library that brings requests along.

Whatever the library asks goes through one gate client: its allow-list, address, credential, TLS, time-outs, bounds
and transcript hold without a second set of rules. Import it in a worker thread: it loads requests (60 ms).
"""

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter

from triage.domain.target import Failure, FailureReason
from triage.gate.client import BODY_LIMIT, Answer, Client
from triage.gate.credential import READ_TIMEOUT_S

# Reading a credential, twice where the first token was refused, happens beside the time-out of the read.
_BESIDE_S = 2 * READ_TIMEOUT_S


class GateError(requests.RequestException):
    """The read brought nothing; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class GateSession(requests.Session):
    """Blocks the calling thread; the event loop does the I/O, so never call it there.

    decode: makes of a 2xx body what `response.json()` gives. limit: bytes of one body, decompressed.
    """

    def __init__(
        self,
        client: Client,
        loop: asyncio.AbstractEventLoop,
        decode: Callable[[bytes], Any],
        *,
        limit: int = BODY_LIMIT,
    ) -> None:
        super().__init__()
        self.trust_env = False  # no proxies, no netrc
        self.max_redirects = 0
        self._own = _Adapter(client, loop, decode, limit)

    def get_adapter(self, url: str | bytes) -> BaseAdapter:  # noqa: ARG002 - the library's signature
        """Always the gate's, whatever was mounted."""
        return self._own


class _Response(requests.Response):
    def __init__(self, decode: Callable[[bytes], Any]) -> None:
        super().__init__()
        self._decode = decode

    def json(self, **_kwargs: Any) -> Any:
        return self._decode(self.content)


class _Adapter(BaseAdapter):
    def __init__(
        self, client: Client, loop: asyncio.AbstractEventLoop, decode: Callable[[bytes], Any], limit: int
    ) -> None:
        super().__init__()
        self._client = client
        self._loop = loop
        self._decode = decode
        self._limit = limit

    def send(self, request: requests.PreparedRequest, *_args: Any, **_kwargs: Any) -> requests.Response:
        """Only method, path and query of the request are used."""
        parts = urlsplit(str(request.url))
        if request.method != "GET" or request.body:
            raise GateError(Failure(FailureReason.NOT_ALLOWED, f"{request.method} is not on the list for a read"))
        asked = asyncio.run_coroutine_threadsafe(
            self._client.get(parts.path, query=parts.query, limit=self._limit), self._loop
        )
        try:
            answer = asked.result(self._client.access.timeout_s + _BESIDE_S)
        except TimeoutError:
            asked.cancel()
            raise GateError(Failure(FailureReason.TIMEOUT, "no answer in time")) from None
        if not isinstance(answer, Answer):
            raise GateError(answer)
        return self._response(request, answer)

    def close(self) -> None:
        """The client belongs to the gate."""

    def _response(self, request: requests.PreparedRequest, answer: Answer) -> requests.Response:
        response = _Response(self._decode)
        response.status_code = answer.status
        response.headers["Content-Type"] = answer.content_type
        response.url = str(request.url)
        response.request = request
        response._content = answer.body
        return response
