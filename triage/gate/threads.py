"""Blocking calls that may never return, kept off the event loop and out of the way at exit."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def call_in_daemon(function: Callable[[], T]) -> "asyncio.Future[T | Exception]":
    """Runs it in a thread of its own; the future gets its result or its exception as a value.

    A daemon thread, not the loop's executor: that one has few workers (six on two cores, so a few dead
    name servers would stop every look-up), and leaving the program waits for them.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T | Exception] = loop.create_future()

    def settle(value: T | Exception) -> None:
        if not future.done():
            future.set_result(value)

    def work() -> None:
        value: T | Exception
        try:
            value = function()
        except Exception as error:
            value = error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(settle, value)

    threading.Thread(target=work, daemon=True, name="triage-blocking").start()
    return future
