"""Child process: engines that answer every request with their page. `python -m tests.bench.engines COUNT`.

Writes the list of its ports as JSON, one line, and ends when its standard input does.
"""

import asyncio
import json
import sys
import time
from functools import lru_cache

from tests.bench.pages import page
from triage.sources.descriptors import raise_descriptor_limit

# Engines are not in step with one another: neighbours differ by a second of work.
_OUT_OF_STEP = 8


@lru_cache(maxsize=64)
def _answer(step: int) -> bytes:
    body = page(step)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class _Engine(asyncio.Protocol):
    """As cheap as HTTP can be: what is measured is who asks."""

    def __init__(self, ahead: int, started: float) -> None:
        self._ahead = ahead
        self._started = started

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"\r\n\r\n"):
            self._transport.write(_answer(int(time.monotonic() - self._started) + self._ahead))


async def serve(count: int) -> None:
    crowded = raise_descriptor_limit(2 * count)
    if crowded:
        sys.exit(crowded)
    loop = asyncio.get_running_loop()
    started = loop.time()
    servers = [
        await loop.create_server(lambda ahead=place % _OUT_OF_STEP: _Engine(ahead, started), "127.0.0.1", 0)  # type: ignore[misc]
        for place in range(count)
    ]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    for server in servers:
        server.close()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
