"""Host names to addresses, with a memory, and without a way to hang."""

import asyncio
import socket
import time
from collections.abc import Callable

from triage.gate.threads import call_in_daemon

# Headless services change their addresses when a replica moves; half a minute is what cluster DNS gives as TTL.
_KEEP_S = 30.0

Resolver = Callable[[str, int], tuple[str, ...]]


def resolve(host: str, port: int) -> tuple[str, ...]:
    """Every address of a name, in the system's order of preference. Blocks; socket.gaierror when there is none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class Names:
    """Shared by all clients of a gate: one look-up a name, however many wait for it."""

    def __init__(self, resolver: Resolver = resolve) -> None:
        self._resolver = resolver
        self._known: dict[tuple[str, int], tuple[float, tuple[str, ...]]] = {}
        self._asked: dict[tuple[str, int], asyncio.Future[tuple[str, ...] | Exception]] = {}

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """OSError (socket.gaierror) when the name has none. Cancelling stops the wait, not the look-up."""
        key = (host, port)
        at, addresses = self._known.get(key, (0.0, ()))
        if addresses and time.monotonic() - at < _KEEP_S:
            return addresses
        future = self._asked.get(key)
        if future is None or future.get_loop() is not asyncio.get_running_loop():
            future = self._asked[key] = call_in_daemon(lambda: self._resolver(host, port))
            future.add_done_callback(lambda _: self._asked.pop(key, None))
        answer = await asyncio.shield(future)
        if isinstance(answer, Exception):
            # A new exception for each who waits: one that is shared would collect their tracebacks.
            raise socket.gaierror(*answer.args) from answer
        self._known[key] = (time.monotonic(), answer)
        return answer

    def prefer(self, host: str, port: int, address: str) -> None:
        """This one works: it is tried first from now on ('localhost' is ::1 first, and engines listen on 127.0.0.1)."""
        at, addresses = self._known.get((host, port), (0.0, ()))
        if addresses and addresses[0] != address:
            others = tuple(other for other in addresses if other != address)
            self._known[host, port] = (at, (address, *others))

    def forget(self, host: str, port: int) -> None:
        """None of them answers: ask anew next time."""
        self._known.pop((host, port), None)
