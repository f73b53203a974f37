"""HTTP in front of one replica: metrics, health, models, completions."""

import gzip
import random
from typing import Any

from aiohttp import web

from triage.lab.batching.refusal import Reason, Refused
from triage.lab.batching.request import Phase, Request
from triage.lab.load.question import question
from triage.lab.pages.forms import Flavour
from triage.lab.serving.answers import AnswerWriter, CompletionRequest, Spoiled, prompt_tokens, read_request
from triage.lab.serving.listener import Listener, as_json, cut
from triage.lab.serving.pace import Pace
from triage.lab.serving.real_users import CALL, RealUsers
from triage.lab.serving.tokens import Tokens, write_stream
from triage.lab.world.call import Attempt
from triage.lab.world.replica import Replica
from triage.lab.world.service import Service
from triage.lab.world.watch import Watch

# The releases whose pages and logs `triage.lab.pages` writes.
_VERSIONS = {Flavour.VLLM: "0.32.0", Flavour.SGLANG: "0.5.23"}
# What vLLM's front end says once its core is gone (recorded with 0.32.0).
_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# The gateway marks what comes through it, so that what it does to connections can be done to these.
THROUGH = "x-lab-gateway"
# A stream that something cuts has gone on for so many seconds (the simulated gateway's figures).
_CUT_AFTER_S = (0.5, 6.0)


class EngineServer(Listener):
    """Open while the replica listens: `follow` keeps it so."""

    def __init__(self, service: Service, replica: Replica, watch: Watch, pace: Pace) -> None:
        super().__init__()
        self.replica = replica
        self._service = service
        self._watch = watch
        self._pace = pace
        self._rng = random.Random()  # noqa: S311 - which of the outside requests meet a fault
        self._starts = replica.starts
        self.users: RealUsers | None = None

    async def follow(self) -> None:
        """Close the port of a process that is gone, and open it for one that serves."""
        replica = self.replica
        if self.open and (not replica.listening or self._starts != replica.starts):
            await self.close()
        if not self.open and replica.listening:
            self._starts = replica.starts
            await self.start()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/health", self._health)
        app.router.add_get("/version", self._version)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._text)
        return app

    async def _metrics(self, request: web.Request) -> web.Response:
        status, text = self._watch.page(self.replica, self._pace.catch_up())
        page = text.encode()
        headers = {"Content-Type": _METRICS_TYPE}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            page = gzip.compress(page, compresslevel=1)
        return web.Response(body=page, status=status or 503, headers=headers)

    async def _health(self, request: web.Request) -> web.Response:  # noqa: ARG002 - the handler's signature
        return web.Response(status=200 if self.replica.healthy else 503)

    async def _version(self, request: web.Request) -> web.Response:  # noqa: ARG002 - the handler's signature
        return as_json({"version": _VERSIONS[self.replica.spec.flavour]})

    async def _models(self, request: web.Request) -> web.Response:  # noqa: ARG002 - the handler's signature
        spec = self.replica.spec
        return as_json(model_list(spec.model, spec.flavour.value, self.replica.settings.max_model_len))

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=True)

    async def _text(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=False)

    async def _complete(self, http: web.Request, chat: bool) -> web.StreamResponse:
        replica = self.replica
        flavour, model = replica.spec.flavour, replica.spec.model
        try:
            asked = read_request(await http.read(), chat)
        except ValueError as error:
            return self._refuse(400, "BadRequestError", str(error))
        if flavour is Flavour.VLLM and asked.model not in (None, model):
            return self._refuse(404, "NotFoundError", f"there is no model {asked.model!r} here")
        now = self._pace.catch_up()
        hop = self._service.gateway.hop if THROUGH in http.headers else None
        if hop is not None and self._rng.random() < hop.keepalive_race:
            cut(http)  # the connection closes under the request
            return web.Response()
        call = self.users.open.get(http.headers.get(CALL, "")) if self.users is not None else None
        attempt = Attempt(replica.name, now)
        try:
            request = question_of(asked, chat, self._service) if call is None else call.request
            attempt.sequence = sequence = replica.submit(request, now, _Nobody())
        except Refused as refused:
            status = refused.reason.value
            kind = "BadRequestError" if status < 500 else "InternalServerError"
            return self._refuse(status, kind, _DEAD if refused.reason is Reason.DEAD else str(refused))
        engine = replica.engine
        tokens = Tokens(self._pace, engine, sequence)
        condition = replica.condition
        spoiled = Spoiled(
            blank=self._rng.random() < condition.blank,
            unparsed=sequence.request.calls_tool and self._rng.random() < condition.unparsed,
        )
        if call is not None:
            call.attempts.append(attempt)
            call.blank, call.unparsed = spoiled.blank, spoiled.unparsed
        writer = AnswerWriter(flavour, asked.model or model, chat, sequence.request, spoiled)
        cut_at = float("inf")
        if hop is not None and self._rng.random() < hop.cuts:
            cut_at = now + self._rng.uniform(*_CUT_AFTER_S)

        def ends() -> bool | None:
            if sequence.ended:
                return sequence.phase is Phase.FINISHED
            begun = engine.emitted(sequence) > 0
            return False if begun and self._pace.world.now >= cut_at else None

        try:
            if asked.stream:
                return await write_stream(http, tokens, writer, self._pace, usage=asked.wants_usage, ends=ends)
            if not await tokens.whole():
                return self._refuse(500, "InternalServerError", _DEAD)
            return web.Response(body=writer.body(), content_type="application/json")
        finally:
            # An answer that is not complete is a client that has gone: the engine drops the request.
            engine.abort(sequence, self._pace.world.now)
            attempt.ended, attempt.at_end = self._pace.world.now, engine.clocks.look()

    def _refuse(self, status: int, kind: str, message: str) -> web.Response:
        error: dict[str, Any] = {"message": message, "type": kind, "param": None, "code": status}
        if self.replica.spec.flavour is Flavour.SGLANG:
            return as_json({"object": "error", **error}, status)
        return as_json({"error": error}, status)


class _Nobody:
    """Tokens are looked at as they come: nothing has to be told."""

    def first_token(self, sequence: object, at: float) -> None: ...
    def first_visible(self, sequence: object, at: float) -> None: ...
    def ended(self, sequence: object, at: float) -> None: ...


def question_of(asked: CompletionRequest, chat: bool, service: Service) -> Request:
    """What the model makes of a request from outside."""
    shape = service.spec.shape
    return question(
        shape,
        service.users.crowd.habits,
        prompt_tokens=prompt_tokens(asked),
        max_tokens=asked.token_limit or shape.max_tokens,
        thinks=chat and asked.thinks,
        streaming=asked.stream,
    )


def model_list(model: str, owner: str, context: int) -> dict[str, Any]:
    """As the engines answer /v1/models."""
    card = {"id": model, "object": "model", "created": 0, "owned_by": owner, "root": model, "parent": None}
    return {"object": "list", "data": [{**card, "max_model_len": context}]}
