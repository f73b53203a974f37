"""A small HTTP server that can misbehave in every way: the handler writes the bytes itself."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple


class Request(NamedTuple):
    """One request as it came. connection: counts from 1; place: which request on that connection, from 1."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    place: int
    reader: asyncio.StreamReader


Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes | str = b"", status: str = "200 OK", length: int | None = None, **headers: str) -> bytes:
    """A whole answer. length: what Content-Length says, where that is not the truth."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content) if length is None else length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


class Server:
    """Listens on a free port of 127.0.0.1. `handler` may be a whole answer's bytes."""

    def __init__(self, handler: Handler | bytes, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.asked = asyncio.Event()  # a request came
        self.gone = asyncio.Event()  # a client closed its connection, or was noticed to have
        self.url = ""
        self._handler = handler
        self._context = context
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._context)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._context else 'http'}://127.0.0.1:{port}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._serve(reader, writer, self.connections)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.gone.set()
            writer.transport.abort()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> None:
        place = 0
        while not writer.is_closing():
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, path, _ = first.split(" ")
            place += 1
            request = Request(method, path, headers, body, connection, place, reader)
            self.requests.append(request)
            self.asked.set()
            if isinstance(self._handler, bytes):
                writer.write(self._handler)
            else:
                await self._handler(request, writer)
            await writer.drain()


async def hang(request: Request, writer: asyncio.StreamWriter) -> None:
    """Take the request and never answer; ends when the client closes the connection."""
    await request.reader.read()
