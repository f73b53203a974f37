"""The tokens of one request from outside, as its engine brings them, written to a connection."""

import asyncio
import contextlib
from collections.abc import Callable

from aiohttp import web

from triage.lab.batching.engine import Engine
from triage.lab.batching.request import Phase, Sequence
from triage.lab.serving.answers import AnswerWriter
from triage.lab.serving.listener import cut
from triage.lab.serving.pace import Pace


class Tokens:
    """Taken in order. The engine is the one that the sequence was submitted to, whatever takes its place later."""

    def __init__(self, pace: Pace, engine: Engine, sequence: Sequence) -> None:
        self._pace = pace
        self._engine = engine
        self._taken = 0
        self.sequence = sequence

    def fresh(self) -> range:
        """Indices of the tokens that came since the last look."""
        emitted = self._engine.emitted(self.sequence)
        found = range(self._taken, emitted)
        self._taken = emitted
        return found

    async def whole(self) -> bool:
        """Wait until the answer ends; False when it was lost."""
        while not self.sequence.ended:
            await self._pace.tick()
        return self.sequence.phase is Phase.FINISHED


async def write_stream(
    http: web.Request,
    tokens: Tokens,
    writer: AnswerWriter,
    pace: Pace,
    *,
    usage: bool,
    ends: Callable[[], bool | None],
) -> web.StreamResponse:
    """Events as tokens come. ends(): None while the answer goes on, whether it is whole, when it is over.

    The status leaves with the first event, as from a server that looks at its first chunk before it answers (the
    simulated gateway counts so too). An answer that does not become whole ends with its connection.
    """
    headers = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    response = web.StreamResponse(headers=headers)
    opened = False
    try:
        while True:
            whole = ends()
            for index in tokens.fresh():
                event = writer.token(index)
                if event and not opened:
                    await response.prepare(http)
                    event = b"".join([*writer.opening(), event])
                    opened = True
                if event:
                    await response.write(event)
            if whole is not None:
                break
            await pace.tick()
        if not whole:
            cut(http)
            return response
        if not opened:
            await response.prepare(http)
            await response.write(b"".join(writer.opening()))
        for event in writer.closing(usage):
            await response.write(event)
        await response.write_eof()
    except ConnectionError:
        with contextlib.suppress(asyncio.InvalidStateError):
            cut(http)
    return response
