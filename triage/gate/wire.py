"""Bytes over one transport: addresses in turn, decoded and bounded bodies, one second try on a stale connection.

The only module that imports httpx; it is loaded with the first request.
"""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple, cast

import httpx

from triage import __version__
from triage.domain.text import clean
from triage.gate.access import Access
from triage.gate.address import Address
from triage.gate.allow import Purpose
from triage.gate.body import Body, TooLargeError
from triage.gate.failures import is_tls
from triage.gate.names import Names
from triage.gate.tls import trusting, unused

# A dropped SYN is told from a slow answer. TCP sends it again after 1 s and after 3 s.
CONNECT_TIMEOUT_S = 3.0
# Connecting must fail before the deadline of the whole does, so that the message can tell which it was.
_CONNECT_SHARE = 0.9
# Longer than the pause between two scrapes. Servers close earlier (uvicorn after 5 s): see _lost_while_idle.
_KEEP_ALIVE_S = 75.0
_ERROR_BODY_LIMIT = 64 * 1024
_USER_AGENT = f"triage/{__version__}"
_HEADERS = {
    Purpose.READ: {
        "User-Agent": _USER_AGENT,
        # The plain format by name: where OpenMetrics is allowed, servers change names and order.
        "Accept": "text/plain;version=0.0.4, application/json;q=0.9, */*;q=0.1",
        "Accept-Encoding": "gzip",
    },
    Purpose.PROBE: {
        "User-Agent": _USER_AGENT,
        "X-Triage-Probe": "1",
        "Accept": "text/event-stream",
        # A compressed stream is held back until a block is full, and its times would say nothing.
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
    },
}


class Order(NamedTuple):
    """One request that was allowed. take: gets the decoded bytes of a 2xx answer. limit: of these."""

    purpose: Purpose
    method: str
    path: str
    content: bytes
    take: Callable[[bytes], object]
    limit: int


class Progress:
    """How far one request came: for the sentence of a time-out, and for the transcript."""

    def __init__(self) -> None:
        self.stage = "no address for its name"
        self.status: int | None = None
        self.content_type = ""
        self.location = ""
        self.size = 0  # bytes on the wire
        self.error_body = bytearray()


class Wire:
    """One transport for one target: httpx's pool looks at every connection for every request, so that one pool
    for many origins costs eight times as much (1.6 s against 0.2 s CPU for 200 scrapes)."""

    def __init__(self, access: Access, address: Address, names: Names) -> None:
        """TrustError when the CA file cannot be used."""
        self._address = address
        self._names = names
        self._context = trusting(access.ca, access.insecure) if address.scheme == "https" else unused()
        self._kept = self._transport()
        self._answered = False

    async def send(self, order: Order, token: str, progress: Progress, deadline: float) -> None:
        """Fills progress and gives the body to order.take. Raises what httpx, ssl and the body's bounds raise.

        deadline: time.monotonic() after which the caller cancels.
        """
        if order.purpose is Purpose.PROBE:
            # A connection of its own: what a new user pays for it belongs to the measurement, and a request that
            # asks for work is never sent twice, so it must not meet a connection that was closed while idle.
            async with self._transport() as fresh:
                await self._by_address(fresh, order, token, progress, deadline)
            return
        try:
            await self._by_address(self._kept, order, token, progress, deadline)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            if not self._lost_while_idle(progress):
                raise
            await self._by_address(self._kept, order, token, progress, deadline)
        self._answered = True

    async def close(self) -> None:
        await self._kept.aclose()

    def _lost_while_idle(self, progress: Progress) -> bool:
        """A kept connection that the server closed just as we wrote: no answer began, and GET may be repeated.

        uvicorn closes after 5 s, which is also the default interval: without this every other scrape would fail.
        """
        lost = self._answered and progress.status is None
        self._answered = False
        return lost

    async def _by_address(
        self, transport: httpx.AsyncHTTPTransport, order: Order, token: str, progress: Progress, deadline: float
    ) -> None:
        target = self._address
        if target.is_literal:
            await self._attempt(transport, target.host, order, token, progress, deadline)
            return
        addresses = await self._names.addresses(target.host, target.port)
        for place, address in enumerate(addresses):
            try:
                await self._attempt(transport, address, order, token, progress, deadline)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if is_tls(error):
                    raise
                if place == len(addresses) - 1:
                    self._names.forget(target.host, target.port)
                    raise
            else:
                self._names.prefer(target.host, target.port, address)
                return

    async def _attempt(
        self,
        transport: httpx.AsyncHTTPTransport,
        host: str,
        order: Order,
        token: str,
        progress: Progress,
        deadline: float,
    ) -> None:
        progress.stage = "no answer"
        connect_s = min(CONNECT_TIMEOUT_S, _CONNECT_SHARE * (deadline - time.monotonic()))
        response = await transport.handle_async_request(self._request(host, order, token, max(connect_s, 0.001)))
        try:
            progress.status = response.status_code
            progress.content_type = clean(response.headers.get("content-type", ""), 100)
            progress.location = response.headers.get("location", "")
            progress.stage = "the answer did not end"
            encoding = response.headers.get("content-encoding", "")
            if 200 <= response.status_code < 300:
                await _read(response, Body(encoding, order.limit), order.take, progress)
            else:
                try:
                    await _read(response, Body(encoding, _ERROR_BODY_LIMIT), progress.error_body.extend, progress)
                except TooLargeError:
                    pass  # its beginning is enough to say why
        finally:
            await response.aclose()

    def _request(self, host: str, order: Order, token: str, connect_s: float) -> httpx.Request:
        target = self._address
        netloc = f"[{host}]:{target.port}" if ":" in host else f"{host}:{target.port}"
        headers = {"Host": target.authority, **_HEADERS[order.purpose]}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        extensions: dict[str, object] = {"timeout": {"connect": connect_s}}
        if not target.is_literal:
            extensions["sni_hostname"] = target.host
        return httpx.Request(
            order.method,
            f"{target.scheme}://{netloc}{order.path}",
            headers=headers,
            content=order.content or None,
            extensions=extensions,
        )

    def _transport(self) -> httpx.AsyncHTTPTransport:
        # One idle connection: a second try then meets a fresh one for certain.
        limits = httpx.Limits(max_connections=8, max_keepalive_connections=1, keepalive_expiry=_KEEP_ALIVE_S)
        return httpx.AsyncHTTPTransport(verify=self._context, trust_env=False, limits=limits)


async def _read(response: httpx.Response, body: Body, take: Callable[[bytes], object], progress: Progress) -> None:
    stream = cast("AsyncGenerator[bytes, None]", aiter(cast(httpx.AsyncByteStream, response.stream)))
    async with aclosing(stream):
        async for chunk in stream:
            progress.size += len(chunk)
            part = body.feed(chunk)
            if part:
                take(part)
    body.finish()
