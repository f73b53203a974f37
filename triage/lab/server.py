"""HTTP in front of one replica, on loopback: metrics, health, models, completions."""

import asyncio
import gzip
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from triage.lab.answers import CompletionRequest, Writer, prompt_tokens, read_request
from triage.lab.incidents import Flavour
from triage.lab.replica import Replica
from triage.lab.sequence import Sequence

_VERSIONS = {Flavour.VLLM: "0.32.0", Flavour.SGLANG: "0.5.23"}
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Open answers get this long to end when the lab closes; then they are cut.
_SHUTDOWN_S = 0.2


class EngineServer:
    """Serves one replica. started: unix seconds of its virtual zero. catch_up: brings it to now."""

    def __init__(self, replica: Replica, started: float, catch_up: Callable[[], None]) -> None:
        self._replica = replica
        self._started = started
        self._catch_up = catch_up
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1. OSError when there is none."""
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/health", self._health)
        app.router.add_get("/version", self._version)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._text)
        # Without handler_cancellation a client that leaves while it queues would be served all the same.
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=_SHUTDOWN_S)
        self._runner = runner
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _metrics(self, request: web.Request) -> web.Response:
        self._catch_up()
        page = self._replica.metrics.page(self._started).encode()
        headers = {"Content-Type": _METRICS_TYPE}
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
            page = gzip.compress(page, compresslevel=1)
        return web.Response(body=page, headers=headers)

    async def _health(self, request: web.Request) -> web.Response:  # noqa: ARG002 - the handler's signature
        return web.Response()

    async def _version(self, request: web.Request) -> web.Response:  # noqa: ARG002 - the handler's signature
        return _json({"version": _VERSIONS[self._replica.spec.flavour]})

    async def _models(self, request: web.Request) -> web.Response:  # noqa: ARG002 - the handler's signature
        spec = self._replica.spec
        card = {
            "id": spec.model,
            "object": "model",
            "created": int(self._started),
            "owned_by": spec.flavour.value,
            "root": spec.model,
            "parent": None,
            "max_model_len": spec.settings.max_model_len,
        }
        return _json({"object": "list", "data": [card]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=True)

    async def _text(self, request: web.Request) -> web.StreamResponse:
        return await self._complete(request, chat=False)

    async def _complete(self, http: web.Request, chat: bool) -> web.StreamResponse:
        spec = self._replica.spec
        try:
            request = read_request(await http.read(), chat)
            if spec.flavour is Flavour.VLLM and request.model not in (None, spec.model):
                return self._refuse(404, "NotFoundError", f"there is no model {request.model!r} here")
            answer = self._submit(request, chat)
        except ValueError as error:
            return self._refuse(400, "BadRequestError", str(error))
        writer = Writer(spec.flavour, request.model or spec.model, chat, answer.sequence)
        try:
            if request.stream:
                return await self._stream(http, answer, writer, request.wants_usage)
            while not answer.complete:
                await answer.more()
            return web.Response(body=writer.body(), content_type="application/json")
        finally:
            answer.close()

    async def _stream(self, http: web.Request, answer: "Answer", writer: Writer, usage: bool) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
        )
        await response.prepare(http)
        while not answer.complete:
            for index in await answer.more():
                if index == 0:
                    for event in writer.opening():
                        await response.write(event)
                await response.write(writer.token(index))
        for event in writer.closing(usage):
            await response.write(event)
        await response.write_eof()
        return response

    def _submit(self, request: CompletionRequest, chat: bool) -> "Answer":
        self._catch_up()
        composed = self._replica.compose(
            prompt_tokens(request), request.token_limit, thinks=chat and request.thinks, streaming=request.stream
        )
        if composed.max_tokens < 1:
            raise ValueError(f"the prompt has {composed.prompt_tokens} tokens and leaves no room for an answer")
        return Answer(self._replica, lambda answer: self._replica.submit(composed, answer.wake, answer.wake))

    def _refuse(self, status: int, kind: str, message: str) -> web.Response:
        error: dict[str, Any] = {"message": message, "type": kind, "param": None, "code": status}
        if self._replica.spec.flavour is Flavour.SGLANG:
            return _json({"object": "error", **error}, status)
        return _json({"error": error}, status)


class Answer:
    """The tokens of one outside request, as they come. To be closed, whatever happens."""

    def __init__(self, replica: Replica, submit: "Callable[[Answer], Sequence]") -> None:
        self._engine = replica.engine
        self._news = asyncio.Event()
        self._taken = 0
        self.sequence = submit(self)

    def wake(self, sequence: Sequence) -> None:  # noqa: ARG002 - the engine's listener signature
        self._news.set()

    @property
    def complete(self) -> bool:
        """Every token was taken and there will be no more."""
        return self.sequence.ended and self._taken == self.sequence.emitted

    async def more(self) -> range:
        """Indices of the tokens that came since the last call; waits until there is one or the answer ends."""
        while self._taken == self.sequence.emitted and not self.sequence.ended:
            self._news.clear()
            await self._news.wait()
        fresh = range(self._taken, self.sequence.emitted)
        self._taken = self.sequence.emitted
        return fresh

    def close(self) -> None:
        """An answer that is not complete is a client that has gone: the engine drops the request."""
        self._engine.abort(self.sequence)


def _json(payload: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(payload), status=status, content_type="application/json")
