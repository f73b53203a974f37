"""Name look-ups: shared, remembered, cancellable."""

import asyncio
import socket
import threading

import pytest

from triage.gate.names import Names, resolve


async def test_a_name_is_looked_up_once_for_all_that_wait() -> None:
    asked = []
    names = Names(lambda host, port: (asked.append(host) or "10.0.0.1",))  # type: ignore[func-returns-value]
    found = await asyncio.gather(*[names.addresses("engine", 80) for _ in range(10)])
    assert found == [("10.0.0.1",)] * 10
    assert await names.addresses("engine", 80) == ("10.0.0.1",)
    assert asked == ["engine"]


async def test_what_works_is_tried_first_until_it_is_forgotten() -> None:
    names = Names(lambda host, port: ("::1", "127.0.0.1"))
    await names.addresses("localhost", 80)
    names.prefer("localhost", 80, "127.0.0.1")
    assert await names.addresses("localhost", 80) == ("127.0.0.1", "::1")
    names.forget("localhost", 80)
    assert await names.addresses("localhost", 80) == ("::1", "127.0.0.1")


async def test_a_failure_is_not_remembered() -> None:
    answers: list[tuple[str, ...] | OSError] = [socket.gaierror(-2, "unknown"), ("10.0.0.1",)]

    def resolver(host: str, port: int) -> tuple[str, ...]:
        found = answers.pop(0)
        if isinstance(found, OSError):
            raise found
        return found

    names = Names(resolver)
    with pytest.raises(socket.gaierror, match="unknown"):
        await names.addresses("engine", 80)
    assert await names.addresses("engine", 80) == ("10.0.0.1",)


async def test_giving_up_leaves_the_look_up_to_who_still_waits() -> None:
    release = threading.Event()

    def resolver(host: str, port: int) -> tuple[str, ...]:
        release.wait(30)
        return ("10.0.0.1",)

    names = Names(resolver)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await names.addresses("engine", 80)
    second = asyncio.create_task(names.addresses("engine", 80))
    release.set()
    async with asyncio.timeout(10):
        assert await second == ("10.0.0.1",)


def test_the_system_resolves_a_literal_without_asking_anybody() -> None:
    assert resolve("127.0.0.1", 80) == ("127.0.0.1",)
