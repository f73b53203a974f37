"""Metrics pages of many engines, read at once; every target fails alone."""

import asyncio
import time
from collections.abc import Sequence

import msgspec

from triage.dialects.json_page import drains
from triage.dialects.ollama import read_processes, read_version
from triage.dialects.pages import read_page
from triage.domain.reading import PageReading, Scrape
from triage.domain.target import Failure, FailureReason, Target
from triage.domain.text import clean
from triage.gate import Access, Answer, Client, Gate, failure_of
from triage.gate.failures import NO_TITLE, first_sentence
from triage.gate.threads import call_in_daemon

# Tried in this order when the URL names no metrics page and the one before answers 404.
_PATHS = ("/metrics", "/v1/metrics", "/prometheus/metrics")
# Where TensorRT-LLM has its page; its /metrics is a queue of JSON that every reader empties.
_INSTEAD_OF_DRAINING = "/prometheus/metrics"
# What Ollama has in place of a page. Its sentence at "/" proves nothing: SGLang's Ollama routes say it too.
_PROCESSES = "/api/ps"
_VERSION = "/api/version"
# Targets in flight at once. Enough that a hundred dark ones, which take their whole time-out, hold up nobody;
# few enough that the answers of a large fleet do not wait for one another inside their time-outs (0.9 ms each).
_AT_ONCE = 256
# A page of this size takes about 10 ms to read when its shape is new, 0.1 s at eight times the size: above it
# the event loop must not wait for it. Real pages have 2 to 200 KB.
_LARGE = 256 * 1024
# A page of a million series takes 10 s and a gigabyte. The largest known ones (gateways with a label per key)
# stay below this.
_MOST_LINES = 200_000


class EngineScrape:
    """Scrapes a fixed list of targets. Connections are kept between reads."""

    def __init__(self, gate: Gate, targets: Sequence[tuple[Target, Access]], *, at_once: int = _AT_ONCE) -> None:
        """ConfigError when a URL cannot be meant."""
        self._engines = [_Engine(target, gate.client(access)) for target, access in targets]
        self._slots = asyncio.Semaphore(at_once)

    @property
    def targets(self) -> Sequence[Target]:
        return [engine.target for engine in self._engines]

    async def read(self) -> list[Scrape]:
        """One scrape a target, in their order. Ends when the last has answered or run out of time."""
        return list(await asyncio.gather(*[self._one(engine) for engine in self._engines]))

    async def close(self) -> None:
        for engine in self._engines:
            await engine.close()

    async def _one(self, engine: "_Engine") -> Scrape:
        async with self._slots:
            return await engine.scrape()


class _Engine:
    """One target and what is remembered of it between reads."""

    def __init__(self, target: Target, client: Client) -> None:
        self.target = target
        self._client = client
        address = client.address
        self._paths = (address.metrics,) if address.metrics else tuple([address.prefix + path for path in _PATHS])
        self._path = self._paths[0]
        self._draining: str | None = None
        self._searched = False
        self._without_page = _Pageless(target, client)
        self._unread: asyncio.Future[PageReading | Exception] | None = None

    async def scrape(self) -> Scrape:
        started = time.monotonic()
        deadline = started + self._client.access.timeout_s
        answer: Answer | PageReading | Failure | None = None
        if self._without_page.version:
            answer = await self._without_page.read(deadline)
        if answer is None:
            answer = await self._fetch(deadline)
        at, took_s = time.time(), time.monotonic() - started
        if isinstance(answer, PageReading):
            return Scrape(self.target, at, took_s, msgspec.structs.replace(answer, at=at), None)
        if isinstance(answer, Failure):
            return Scrape(self.target, at, took_s, None, answer)
        try:
            page = await self._page(answer, at)
        except Exception as error:  # a page that trips its reader is this target's failure alone
            page = failure_of(error)
        if isinstance(page, Failure):
            return Scrape(self.target, at, took_s, None, page, answer.size)
        return Scrape(self.target, at, took_s, page, None, answer.size)

    async def close(self) -> None:
        await self._client.close()

    async def _fetch(self, deadline: float) -> Answer | PageReading | Failure:
        """The page's bytes. On 404 the other usual paths are asked, once until something else than 404 comes.

        A route that readers empty is read once, by accident, and never again. Where there is no page at all, an
        engine that has none may tell which models it holds.
        """
        answer = await self._client.get(self._path)
        if isinstance(answer, Answer) and drains(answer.body):
            self._draining, self._path = self._path, self._client.address.prefix + _INSTEAD_OF_DRAINING
            left_s = max(deadline - time.monotonic(), 0.1)
            answer = await self._client.get(self._path, timeout_s=left_s)
        if not _is_not_found(answer):
            self._searched = False
            return answer
        for path in () if self._searched else self._paths:
            left_s = deadline - time.monotonic()
            if path not in (self._path, self._draining) and left_s > 0:
                other = await self._client.get(path, timeout_s=left_s)
                if isinstance(other, Answer):
                    self._path = path
                    return other
        if not self._searched and (told := await self._without_page.find(deadline)) is not None:
            return told
        self._searched = True
        assert isinstance(answer, Failure)
        if self._draining:
            return Failure(
                answer.reason,
                f"nothing at {self._path}; {self._draining} is JSON that every reader takes away",
                answer.status,
            )
        said = f" ({answer.detail})" if answer.detail else ""
        return Failure(answer.reason, f"nothing at {' or '.join(self._paths)}{said}", answer.status)

    async def _page(self, answer: Answer, at: float) -> PageReading | Failure:
        body = answer.body
        head = body[:1024].lstrip()
        if not head and not body.strip():
            return Failure(FailureReason.EMPTY, "the answer has no body", answer.status)
        if head.startswith(b"<"):
            title = first_sentence(body, "text/html")
            return _not_metrics(title if title == NO_TITLE else f"an HTML page: {title}", answer)
        if body.count(b"\n") > _MOST_LINES:
            return Failure(FailureReason.TOO_LARGE, f"more than {_MOST_LINES:,} lines", answer.status)
        page = read_page(body, self.target, self._path, at) if len(body) < _LARGE else await self._aside(body, at)
        if isinstance(page, Failure) or page.families:
            return page
        if head.startswith((b"{", b"[")):
            return _not_metrics(page.problems[0], answer)
        if head.startswith(b"#"):
            return _not_metrics("a page without a single series", answer)
        return _not_metrics(f"no series in it; it begins with {first_sentence(body)[:60]!r}", answer)

    async def _aside(self, body: bytes, at: float) -> PageReading | Failure:
        """Read a large page in a thread, so that the others go on; one at a time, and not for ever."""
        if self._unread is None:
            self._unread = call_in_daemon(lambda: read_page(body, self.target, self._path, at))
            try:
                async with asyncio.timeout(self._client.access.timeout_s):
                    page = await asyncio.shield(self._unread)
            except TimeoutError:
                self._unread.add_done_callback(self._read_at_last)
            else:
                self._unread = None
                if isinstance(page, Exception):
                    raise page
                return page
        return Failure(FailureReason.TOO_LARGE, f"{len(body):,} bytes take longer to read than the time-out")

    def _read_at_last(self, _: object) -> None:
        self._unread = None


class _Pageless:
    """What an engine without a metrics page answers instead. version: its own, '' while it was not recognised."""

    def __init__(self, target: Target, client: Client) -> None:
        self.version = ""
        self._target = target
        self._client = client

    async def find(self, deadline: float) -> PageReading | None:
        """Both routes must answer in their shape: an empty list of models alone could be anybody's."""
        listed = await self._get(_PROCESSES, deadline)
        if not isinstance(listed, Answer) or self._page(listed) is None:
            return None
        answer = await self._get(_VERSION, deadline)
        self.version = read_version(answer.body) if isinstance(answer, Answer) else ""
        return self._page(listed) if self.version else None

    async def read(self, deadline: float) -> PageReading | Failure | None:
        """The list of a server that was recognised before; None when it is another one now."""
        answer = await self._get(_PROCESSES, deadline)
        if isinstance(answer, Failure) and not _is_not_found(answer):
            # It may come back as another release, or as another engine.
            self.version = ""
            return answer
        page = self._page(answer) if isinstance(answer, Answer) else None
        if page is None:
            self.version = ""
        return page

    async def _get(self, path: str, deadline: float) -> Answer | Failure:
        left_s = max(deadline - time.monotonic(), 0.1)
        return await self._client.get(self._client.address.prefix + path, timeout_s=left_s)

    def _page(self, answer: Answer) -> PageReading | None:
        source = self._client.address.prefix + _PROCESSES
        return read_processes(answer.body, self._target, source, None, self.version)


def _is_not_found(answer: Answer | Failure) -> bool:
    return isinstance(answer, Failure) and answer.reason is FailureReason.NOT_FOUND


def _not_metrics(what: str, answer: Answer) -> Failure:
    return Failure(FailureReason.NOT_METRICS, clean(what, 200), answer.status)
