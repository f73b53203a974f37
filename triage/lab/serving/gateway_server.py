"""A small proxy in front of one service, for machines without Envoy: the simulated gateway, heard over HTTP."""

import math
from collections.abc import Callable
from itertools import count

from aiohttp import web

from triage.lab.batching.request import Phase
from triage.lab.serving.access_log import NO_KEY, own_body
from triage.lab.serving.answers import AnswerWriter, CompletionRequest, Spoiled, read_request
from triage.lab.serving.engine_server import model_list, question_of
from triage.lab.serving.listener import Listener, as_json, cut
from triage.lab.serving.pace import Pace
from triage.lab.serving.tokens import Tokens, write_stream
from triage.lab.world.call import Call, Outcome
from triage.lab.world.service import Service


class GatewayServer(Listener):
    """Requests from outside go the way of the simulated users' calls, with their faults, and count nowhere."""

    def __init__(self, service: Service, pace: Pace, note: Callable[[Call], None]) -> None:
        """note: hears of each request when it is over."""
        super().__init__()
        self.service = service
        self._pace = pace
        self._note = note
        self._serial = count(1)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._text)
        return app

    async def _models(self, request: web.Request) -> web.Response:
        if self.service.gateway.hop.checks_keys and not _identity(request):
            return web.Response(status=401, text=NO_KEY)
        return as_json(model_list(self.service.model, "gateway", self.service.spec.context))

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=True)

    async def _text(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=False)

    async def _complete(self, http: web.Request, chat: bool) -> web.StreamResponse:
        try:
            asked = read_request(await http.read(), chat)
        except ValueError as error:
            return as_json({"error": {"message": str(error), "type": "BadRequestError", "code": 400}}, 400)
        service, now = self.service, self._pace.catch_up()
        session = http.headers.get("x-session-id") or f"outside-{next(self._serial)}"
        call = Call(service.model, "outside", session, question_of(asked, chat, service), now)
        call.identity = _identity(http)
        call.outside = True
        service.send(call, now)
        try:
            return await self._answer(http, call, asked, chat)
        finally:
            service.gateway.leave(call, self._pace.world.now)
            self._note(call)

    async def _answer(self, http: web.Request, call: Call, asked: CompletionRequest, chat: bool) -> web.StreamResponse:
        while call.open and (math.isnan(call.first_byte) or not asked.stream):
            await self._pace.tick()
        answer = call.answer
        if call.status != 200 or answer is None:
            return web.Response(status=call.status or 503, text=own_body(call))
        replica = next(one for one in self.service.replicas if one.name == call.attempts[-1].replica)
        spoiled = Spoiled(blank=call.blank, unparsed=call.unparsed)
        writer = AnswerWriter(replica.spec.flavour, asked.model or call.model, chat, answer.request, spoiled)
        if not asked.stream:
            if call.outcome is Outcome.COMPLETE:
                return web.Response(body=writer.body(), content_type="application/json")
            cut(http)
            return web.Response()
        tokens = Tokens(self._pace, replica.engine, answer)

        def ends() -> bool | None:
            return None if call.open else call.outcome is Outcome.COMPLETE and answer.phase is Phase.FINISHED

        return await write_stream(http, tokens, writer, self._pace, usage=asked.wants_usage, ends=ends)


def _identity(http: web.Request) -> str:
    """Any key is a good one here; none is none."""
    scheme, _, key = http.headers.get("Authorization", "").partition(" ")
    return "outside" if scheme.lower() == "bearer" and key.strip() else ""
