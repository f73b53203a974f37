"""The Kubernetes API of the lab's fleet on loopback: it answers questions, and changes nothing."""

import asyncio
import hmac
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress

import msgspec
from aiohttp import web

from triage.lab.cluster import watching
from triage.lab.cluster.asks import Choice, Place, is_true, read_choice, read_log_ask, read_place, whole_number
from triage.lab.cluster.discovery import REVIEW_PATH, documents, rules_review
from triage.lab.cluster.history import History
from triage.lab.cluster.names import Object
from triage.lab.cluster.objects import cluster_objects
from triage.lab.cluster.pod_log import after, check_container, log_bytes, process_log
from triage.lab.cluster.scene import Scene
from triage.lab.cluster.statuses import (
    Refusal,
    bad_request,
    method_not_allowed,
    no_such_object,
    too_large_version,
    too_many,
    unauthorized,
)
from triage.lab.cluster.store import Store
from triage.lab.serving.listener import Listener
from triage.lab.serving.pace import Pace
from triage.lab.world.replica import Replica, State
from triage.lab.world.world import World

# How often the world is looked at; a watch tells of a change at most so late. A look takes 1.5 ms.
_LOOK_EVERY_S = 0.5
# The API server ends a watch by itself after half an hour to an hour (--min-request-timeout), a log never.
_LONGEST_STREAM_S = 1800.0
_BOOKMARK_EVERY_S = 60.0
_MOST_STREAMS = 64


class ClusterServer(Listener):
    """`await start()`, then ask `url` with `token`. ports: of the replicas' HTTP servers, by the replicas' names.

    history: begun when the world was, or from now on.
    """

    def __init__(
        self, world: World, pace: Pace, ports: Mapping[str, int], token: str, history: History | None = None
    ) -> None:
        super().__init__()
        self.token = token
        self._world = world
        self._pace = pace
        self._ports = ports
        self._history = history or History(world)
        self._store = Store()
        self._streams = 0
        self._looked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await super().start()
        self._task = asyncio.create_task(self._look_on())

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await super().close()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    def look(self) -> None:
        """Bring the objects to now."""
        now = self._pace.catch_up()
        self._history.look(now)
        self._store.take(cluster_objects(Scene(self._world, self._history, self._ports, now)))
        looked, self._looked = self._looked, asyncio.Event()
        looked.set()

    async def _look_on(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(_LOOK_EVERY_S)

    # ---- one request

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._respond(request)
        except Refusal as refusal:
            return _json(refusal.body, refusal.code)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), self.token.encode()):
            raise unauthorized()
        path = request.path.rstrip("/")
        if path == REVIEW_PATH and request.method == "POST":
            return await self._review(request)
        document = documents(f"127.0.0.1:{self.port}").get(path)
        place = None if document else read_place(path)
        if document is None and place is None:
            return web.Response(status=404, text="404 page not found\n", headers=_headers())
        if request.method != "GET":
            raise method_not_allowed()
        if document is not None:
            return _json(document)
        assert place is not None
        self.look()
        if place.part:
            return await self._log(request, place)
        if place.name:
            return _json(watching.typed(place.resource, self._object(place)))
        choice = read_choice(place, request.query)
        if is_true(request.query, "watch"):
            return await self._watch(request, choice)
        return self._list(request, choice)

    async def _review(self, request: web.Request) -> web.Response:
        """The question names a namespace; the answer is the same for all."""
        try:
            msgspec.json.decode(await request.read(), type=dict)
        except msgspec.DecodeError as error:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error
        return _json(rules_review(), 201)

    def _object(self, place: Place) -> Object:
        resource = place.resource
        found = self._store.get((resource.plural, place.namespace, place.name))
        if found is None:
            raise no_such_object(resource.plural, place.name, resource.group)
        return found

    def _list(self, request: web.Request, choice: Choice) -> web.Response:
        query, resource = request.query, choice.resource
        self._asked_version(request)
        limit = max(whole_number(query, "limit"), 0)
        page = self._store.page(resource, choice.namespace, choice.selects, limit, query.get("continue", ""))
        metadata: Object = {"resourceVersion": str(page.version)}
        if page.token:
            metadata["continue"] = page.token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        kind = f"{resource.kind}List"
        return _json({"kind": kind, "apiVersion": resource.group_version, "metadata": metadata, "items": page.items})

    def _asked_version(self, request: web.Request) -> int:
        """0 when any will do."""
        version = whole_number(request.query, "resourceVersion")
        if version < 0:
            raise bad_request(f'resourceVersion: Invalid value: "{version}": invalid syntax')
        if version > self._store.version:
            raise too_large_version(version, self._store.version)
        return version

    # ---- answers that go on

    async def _watch(self, request: web.Request, choice: Choice) -> web.StreamResponse:
        query, store = request.query, self._store
        version = self._asked_version(request)
        marks, initial = is_true(query, "allowWatchBookmarks"), is_true(query, "sendInitialEvents")
        seconds = whole_number(query, "timeoutSeconds")
        until = time.monotonic() + (min(seconds, _LONGEST_STREAM_S) if seconds > 0 else _LONGEST_STREAM_S)
        response = await self._open(request, "application/json")
        try:
            if version == 0 or initial:
                version = store.version
                await _write(response, watching.present(store, choice))
            if initial and marks:
                await _write(response, [watching.bookmark(choice.resource, version, initial_end=True)])
            marked = time.monotonic()
            while True:
                lines, version = watching.since(store, choice, version), store.version
                ends = time.monotonic() >= until
                if marks and (ends or time.monotonic() - marked >= _BOOKMARK_EVERY_S):
                    lines.append(watching.bookmark(choice.resource, version))
                    marked = time.monotonic()
                await _write(response, lines)
                if ends:
                    return response
                await self._next_look(until)
        except Refusal as refusal:
            await _write(response, [watching.error(refusal)])
            return response
        finally:
            self._streams -= 1

    async def _log(self, request: web.Request, place: Place) -> web.StreamResponse:
        pod = self._object(place)
        check_container(pod, request.query.get("container", ""))
        zero = self._world.zero
        ask = read_log_ask(request.query, zero + self._world.now)
        if "nodeName" not in pod["spec"]:
            return web.Response(status=204, headers=_headers())
        replica = next((one for one in self._world.replicas if one.name == place.name), None)
        if replica is None:
            return web.Response(text="", headers=_headers())
        entries = list(process_log(pod, replica, previous=ask.previous))
        text = log_bytes(entries, ask, zero)
        if not ask.follow or ask.previous or replica.state is State.DOWN:
            return web.Response(body=text, content_type="text/plain", headers=_headers())
        response = await self._open(request, "text/plain")
        try:
            serial, last = replica.starts, entries[-1] if entries else None
            until = time.monotonic() + _LONGEST_STREAM_S
            left = None if ask.limit is None else ask.limit - len(text)
            await _write(response, [text])
            while (left is None or left > 0) and time.monotonic() < until:
                ended = _ended(replica, serial)
                # The process after it has a log of its own; what this one said last is kept beside it.
                source = replica.log if serial == replica.starts else replica.previous_log
                more = after(source, last)
                text = log_bytes(more, ask._replace(tail=None, limit=left), zero)
                last = more[-1] if more else last
                left = None if left is None else left - len(text)
                await _write(response, [text])
                if ended:
                    break
                await self._next_look(until)
            return response
        finally:
            self._streams -= 1

    async def _open(self, request: web.Request, content_type: str) -> web.StreamResponse:
        """Begin an answer that goes on; whoever does takes one from `_streams` when it is over."""
        if self._streams >= _MOST_STREAMS:
            raise too_many()
        self._streams += 1
        response = web.StreamResponse(headers=_headers())
        response.content_type = content_type
        try:
            await response.prepare(request)
        except BaseException:
            self._streams -= 1
            raise
        return response

    async def _next_look(self, until: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(until - time.monotonic(), 0.0)):
                await self._looked.wait()


def _ended(replica: Replica, serial: int) -> bool:
    return replica.starts != serial or replica.state is State.DOWN


async def _write(response: web.StreamResponse, lines: list[bytes]) -> None:
    content = b"".join(lines)
    if content:
        await response.write(content)


def _headers() -> dict[str, str]:
    return {"Audit-Id": str(uuid.uuid4()), "Cache-Control": "no-cache, private"}


def _json(body: Object, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(body), status=status, content_type="application/json", headers=_headers()
    )
