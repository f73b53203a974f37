"""Runs what must be closed: a fleet's processes and files do not outlive the terminal or a kill."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine

# What a shell sends when its connection is lost, and what a person or a supervisor sends.
_ENDS = ("SIGHUP", "SIGTERM")


def run_closed(main: Coroutine[None, None, int]) -> int:
    """Its exit code; on a signal it is cancelled, closes what it holds, and 128 + the signal is the code."""
    caught: list[int] = []

    async def guarded() -> int:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()

        def end(number: int) -> None:
            caught.append(number)
            if task is not None:
                task.cancel()

        for name in _ENDS:
            number = getattr(signal, name, None)
            if number is not None:
                with contextlib.suppress(NotImplementedError):  # Windows
                    loop.add_signal_handler(number, end, number)
        return await main

    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        return 128 + caught[0] if caught else 130
