"""A few of the simulated users ask over HTTP, through the real gateway: what it does to them, it really does."""

import asyncio
import math
import re
from itertools import count

import aiohttp
import msgspec

from triage.lab.serving.pace import Pace
from triage.lab.world.call import Call, Outcome
from triage.lab.world.service import Service

# Of each service. A stream of 40 tokens a second costs about half a per cent of a core on its way.
MOST = 8
# Names an open call to the engine that gets it, so that it answers what the simulated user asked.
CALL = "x-lab-call"
_PATH = "/v1/chat/completions"
_VISIBLE = re.compile(rb'"content":"[^"]|"tool_calls":\[')
# A prompt's text is as long as its tokens, up to what a server takes.
_CHARACTERS_PER_TOKEN = 4
_LONGEST_PROMPT = 400_000


def key_of(key: str, user: str) -> str:
    """Each has one of their own, by which the gateway knows them."""
    return f"{key}-{user}"


class RealUsers:
    """Of one service. open: their calls, by the name that goes with the request."""

    def __init__(self, service: Service, url: str, key: str, pace: Pace) -> None:
        self.open: dict[str, Call] = {}
        self._service = service
        self._url = url
        self._key = key
        self._pace = pace
        self._serial = count(1)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_connect=5.0))

    @staticmethod
    def names(service: Service) -> list[str]:
        return [f"{service.spec.shape.name}-{number}" for number in range(MOST)]

    def take(self, call: Call, at: float) -> bool:  # noqa: ARG002 - the carrier's signature
        if call.outside or int(call.user.rpartition("-")[2]) >= MOST:
            return False
        call.carried = True
        task = self._tasks[id(call)] = asyncio.create_task(self._ask(call))
        # A task that is cancelled before its first step runs nothing of its own: the end is told from here.
        task.add_done_callback(lambda _: self._over(call))
        return True

    def leave(self, call: Call) -> bool:
        """The user has gone. False for a call that goes another way."""
        task = self._tasks.get(id(call))
        if task is not None:
            task.cancel()
        return task is not None

    async def close(self) -> None:
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()

    # ---- one call

    async def _ask(self, call: Call) -> None:
        name = f"{call.user}-{next(self._serial)}"
        self.open[name] = call
        try:
            call.outcome = await self._answer(call, name)
        except aiohttp.ClientPayloadError:
            call.outcome = Outcome.CUT
        except aiohttp.ClientError:
            call.outcome, call.status = Outcome.FAILED, 503
        finally:
            del self.open[name]

    def _over(self, call: Call) -> None:
        if self._tasks.pop(id(call), None) is None:
            return  # the fleet is closed
        if call.open:
            call.outcome = Outcome.LEFT
        call.ended = self._pace.world.now
        self._service.ended(call, call.ended)

    async def _answer(self, call: Call, name: str) -> Outcome:
        request = call.request
        headers = {CALL: name, "x-session-id": call.session, "content-type": "application/json"}
        if call.identity:
            headers["authorization"] = f"Bearer {key_of(self._key, call.user)}"
        text = "x" * min(request.prompt_tokens * _CHARACTERS_PER_TOKEN, _LONGEST_PROMPT)
        body = {
            "model": call.model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": request.max_tokens,
            "stream": request.streaming,
        }
        async with self._session.post(self._url + _PATH, data=msgspec.json.encode(body), headers=headers) as answer:
            call.status = answer.status
            if answer.status != 200:
                await answer.read()
                return Outcome.FAILED if answer.status >= 500 else Outcome.REFUSED
            last = b""
            async for piece in answer.content.iter_any():
                self._mark(call, piece)
                last = (last + piece)[-64:]
        whole = not request.streaming or last.endswith(b"data: [DONE]\n\n")
        return Outcome.COMPLETE if whole else Outcome.CUT

    def _mark(self, call: Call, piece: bytes) -> None:
        now = self._pace.world.now
        if math.isnan(call.first_byte):
            call.first_byte = now
        if math.isnan(call.first_visible) and _VISIBLE.search(piece):
            call.first_visible = now
