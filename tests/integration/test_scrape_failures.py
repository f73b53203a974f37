"""What a metrics URL can answer instead of metrics: each ends in its own reason, in time, and alone."""

import asyncio
import gzip
import itertools
import socket
import threading
import zlib
from collections.abc import Callable

import pytest

from tests.integration.conftest import Serve
from tests.integration.server import Request, answer, hang
from triage.dialects.pages import read_page
from triage.domain.reading import PageReading, Scrape
from triage.domain.target import Failure, FailureReason, Target
from triage.gate import Access, Credential, CredentialKind, Gate
from triage.sources import engine_scrape
from triage.sources.engine_scrape import EngineScrape

PAGE = (
    "# TYPE vllm:num_requests_running gauge\n"
    'vllm:num_requests_running{engine="0",model_name="m"} 3.0\n'
    'vllm:num_requests_waiting{engine="0",model_name="m"} 1.0\n'
)
Patience = Callable[[], asyncio.Timeout]


async def scrape(gate: Gate, url: str, timeout_s: float = 5.0, **access: object) -> Scrape:
    source = EngineScrape(gate, [(Target("engine", url), Access(url, timeout_s=timeout_s, **access))])  # type: ignore[arg-type]
    (found,) = await source.read()
    assert (found.page is None) != (found.failure is None)
    return found


async def failure(gate: Gate, url: str, timeout_s: float = 5.0, **access: object) -> Failure:
    found = await scrape(gate, url, timeout_s, **access)
    assert found.failure is not None
    assert found.failure.detail.isprintable()
    return found.failure


async def test_a_good_page_is_read(serve: Serve, gate: Gate) -> None:
    server = await serve(answer(PAGE))
    found = await scrape(gate, server.url)
    assert found.page is not None
    assert found.page.engines[0].model == "m"
    assert found.size == len(PAGE)
    request = server.requests[0]
    assert (request.method, request.path) == ("GET", "/metrics")
    assert request.headers["user-agent"].startswith("triage/")
    assert "x-triage-probe" not in request.headers


BODIES = {
    "nothing": (b"", FailureReason.EMPTY, "no body"),
    "blank lines": (b" \r\n\n \n", FailureReason.EMPTY, "no body"),
    "garbage": (bytes(range(256)) * 40, FailureReason.NOT_METRICS, ""),
    "prose": (b"Please log in first.\n", FailureReason.NOT_METRICS, "Please log in first."),
    "html": (b"<!doctype html><title>Sign in</title><p>hello 1\n", FailureReason.NOT_METRICS, "HTML page: Sign in"),
    "html with a sample": (b"<html>\nup 1\n</html>", FailureReason.NOT_METRICS, "HTML"),
    "json": (b'{"iteration": 1}', FailureReason.NOT_METRICS, "JSON"),
    "json list": (b'[{"gpu": 1}]', FailureReason.NOT_METRICS, "JSON"),
    "only comments": (b"# HELP a b\n# TYPE a gauge\n", FailureReason.NOT_METRICS, "without a single series"),
}


@pytest.mark.parametrize("kind", BODIES)
async def test_a_body_that_is_no_metrics_page(serve: Serve, gate: Gate, kind: str) -> None:
    body, reason, words = BODIES[kind]
    found = await failure(gate, (await serve(answer(body))).url)
    assert found.reason is reason
    assert words in found.detail
    assert found.status == 200


STATUSES = {
    "401 Unauthorized": (FailureReason.UNAUTHORIZED, '{"error":"Unauthorized"}', "Unauthorized"),
    "403 Forbidden": (FailureReason.FORBIDDEN, "RBAC: access denied", "RBAC: access denied"),
    "404 Not Found": (FailureReason.NOT_FOUND, '{"detail":"Not Found"}', "Not Found"),
    "429 Too Many Requests": (FailureReason.CLIENT_ERROR, "slow down", "429: slow down"),
    "500 Internal Server Error": (FailureReason.SERVER_ERROR, "\n\nboom\nTraceback", "500: boom"),
    "501 Not Implemented": (
        FailureReason.SERVER_ERROR,
        '{"error":{"code":501,"message":"This server does not support metrics endpoint. Start it with `--metrics`",'
        '"type":"not_supported_error"}}',
        "501: This server does not support metrics endpoint. Start it with `--metrics`",
    ),
    "502 Bad Gateway": (
        FailureReason.SERVER_ERROR,
        "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n",
        "502: 502 Bad Gateway",
    ),
    "503 Service Unavailable": (FailureReason.SERVER_ERROR, "", "503"),
}


@pytest.mark.parametrize("status", STATUSES)
async def test_an_error_status_keeps_what_the_server_says(serve: Serve, gate: Gate, status: str) -> None:
    reason, body, words = STATUSES[status]
    found = await failure(gate, (await serve(answer(body, status))).url)
    assert found.reason is reason
    assert words in found.detail
    assert found.status == int(status[:3])


async def test_an_error_body_of_megabytes_or_without_end_still_gives_the_status(serve: Serve, gate: Gate) -> None:
    async def endless(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 500 Broken\r\n\r\nit broke\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async def silent(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 503 Busy\r\n\r\nno slot free\n")
        await hang(request, writer)

    found = await failure(gate, (await serve(endless)).url)
    assert (found.reason, found.detail) == (FailureReason.SERVER_ERROR, "500: it broke")
    found = await failure(gate, (await serve(silent)).url, timeout_s=0.3)
    assert (found.reason, found.detail) == (FailureReason.SERVER_ERROR, "503: no slot free")


async def test_a_redirect_is_named_and_not_followed(serve: Serve, gate: Gate) -> None:
    other = await serve(answer(PAGE))
    server = await serve(answer(b"", "307 Temporary Redirect", Location=f"{other.url}/metrics"))
    found = await failure(gate, server.url)
    assert found.reason is FailureReason.REDIRECT
    assert f"{other.url}/metrics" in found.detail
    assert other.connections == 0


async def test_half_a_page(serve: Serve, gate: Gate) -> None:
    async def cut(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(PAGE, length=len(PAGE) + 1000))
        await writer.drain()
        writer.close()

    found = await failure(gate, (await serve(cut)).url)
    assert found.reason is FailureReason.DISCONNECTED
    assert str(len(PAGE) + 1000) in found.detail
    assert found.status == 200


async def test_a_connection_that_is_reset_in_the_middle(serve: Serve, gate: Gate) -> None:
    async def reset(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nvllm:\r\n")
        await writer.drain()
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        writer.transport.abort()

    assert (await failure(gate, (await serve(reset)).url)).reason is FailureReason.DISCONNECTED


async def test_a_server_that_closes_without_an_answer(serve: Serve, gate: Gate) -> None:
    async def close(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await serve(close)
    found = await failure(gate, server.url)
    assert found.reason is FailureReason.DISCONNECTED
    assert len(server.requests) == 1, "nothing was answered on this connection before: no second try"


@pytest.mark.parametrize(
    ("said", "reason"),
    [(b"SSH-2.0-OpenSSH_9.2\r\n", FailureReason.DISCONNECTED), (b"-ERR unknown\r\n\r\n", FailureReason.BAD_ANSWER)],
)
async def test_something_else_than_http(serve: Serve, gate: Gate, said: bytes, reason: FailureReason) -> None:
    async def other(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    found = await failure(gate, (await serve(other)).url)
    assert found.reason is reason
    assert "HTTP" in found.detail


async def test_a_page_of_a_hundred_megabytes_is_not_read_to_its_end(serve: Serve, gate: Gate) -> None:
    sent = 0

    async def large(request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")
        for _ in range(1600):
            writer.write(b"a 1\n" * 16384)
            await writer.drain()
            sent += 65536

    found = await failure(gate, (await serve(large)).url, timeout_s=15.0)
    assert found.reason is FailureReason.TOO_LARGE
    assert "16 MiB" in found.detail
    assert sent < 40 * 1024 * 1024


async def test_too_many_lines_within_the_size(serve: Serve, gate: Gate) -> None:
    found = await failure(gate, (await serve(answer(b"a 1\n" * 250_000))).url)
    assert found.reason is FailureReason.TOO_LARGE
    assert "lines" in found.detail


async def test_a_large_page_is_read_all_the_same(serve: Serve, gate: Gate) -> None:
    body = PAGE + "".join(f'other{{id="{number}"}} 1\n' for number in range(20_000))
    found = await scrape(gate, (await serve(answer(body))).url, timeout_s=15.0)
    assert found.page is not None
    assert "other" in found.page.families
    assert found.page.engines


async def test_a_large_page_that_is_read_slowly_holds_up_nobody_and_is_not_read_twice(
    serve: Serve, gate: Gate, patience: Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, done = threading.Event(), threading.Event()
    started = []

    def slowly(body: bytes, target: Target, source: str, at: float | None) -> PageReading:
        if len(body) > 1000:
            started.append(at)
            release.wait(30)
            done.set()
        return read_page(body, target, source, at)

    monkeypatch.setattr(engine_scrape, "read_page", slowly)
    large, small = await serve(answer(PAGE + "# more\n" * 50_000)), await serve(answer(PAGE))
    targets = [(Target(name, url), Access(url, timeout_s=0.3)) for name, url in (("a", large.url), ("b", small.url))]
    source = EngineScrape(gate, targets)
    async with patience():
        for _ in range(2):
            first, second = await source.read()
            assert first.failure is not None
            assert first.failure.reason is FailureReason.TOO_LARGE
            assert second.page is not None
        assert len(started) == 1
        release.set()
        await asyncio.to_thread(done.wait, 10)
        while (first := (await source.read())[0]).page is None:
            pass
    assert first.page.engines


@pytest.mark.parametrize("pace", ["drip", "flood"])
async def test_a_page_that_never_ends(serve: Serve, gate: Gate, patience: Patience, pace: str) -> None:
    async def endless(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for number in itertools.count():
            writer.write(b"%d" % (number % 10) if pace == "drip" else b"a 1\n" * 8192)
            await writer.drain()
            if pace == "drip":
                await asyncio.sleep(0.02)

    async with patience():
        found = await failure(gate, (await serve(endless)).url, timeout_s=0.5 if pace == "drip" else 15.0)
    assert found.reason is (FailureReason.TIMEOUT if pace == "drip" else FailureReason.TOO_LARGE)
    assert found.status == 200


async def test_headers_that_never_end(serve: Serve, gate: Gate, patience: Patience) -> None:
    async def headers(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: " + b"y" * 4096 + b"\r\n")
            await writer.drain()

    async with patience():
        found = await failure(gate, (await serve(headers)).url)
    assert found.reason is FailureReason.BAD_ANSWER


async def test_a_server_that_accepts_and_hangs(serve: Serve, gate: Gate, patience: Patience) -> None:
    server = await serve(hang)
    async with patience():
        found = await failure(gate, server.url, timeout_s=0.3)
        await server.gone.wait()
    assert found.reason is FailureReason.TIMEOUT
    assert found.detail == "no answer within 0.3 s"


async def test_a_wrong_port(gate: Gate) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        found = await failure(gate, f"http://{where}")
    assert found.reason is FailureReason.REFUSED
    assert where in found.detail


async def test_gzip(serve: Serve, gate: Gate) -> None:
    packed = gzip.compress(PAGE.encode())
    server = await serve(answer(packed, Content_Encoding="gzip"))
    found = await scrape(gate, server.url)
    assert found.page is not None
    assert found.page.engines
    assert found.size == len(packed)
    assert server.requests[0].headers["accept-encoding"] == "gzip"


def _bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([packer.compress(bytes(1024 * 1024)) for _ in range(200)]) + packer.flush()


PACKED = {
    "bomb": (_bomb, FailureReason.TOO_LARGE, "decompressed"),
    "many members": (lambda: gzip.compress(b"") * 1000, FailureReason.BAD_ANSWER, "parts"),
    "cut": (lambda: gzip.compress(PAGE.encode())[:-12], FailureReason.DISCONNECTED, "too early"),
    "not gzip": (lambda: PAGE.encode(), FailureReason.BAD_ANSWER, "not"),
}


@pytest.mark.parametrize("kind", PACKED)
async def test_gzip_that_is_hostile_or_broken(serve: Serve, gate: Gate, kind: str) -> None:
    body, reason, words = PACKED[kind]
    found = await failure(gate, (await serve(answer(body(), Content_Encoding="gzip"))).url)
    assert found.reason is reason
    assert words in found.detail


async def test_an_encoding_that_was_not_asked_for(serve: Serve, gate: Gate) -> None:
    found = await failure(gate, (await serve(answer(b"???", Content_Encoding="br"))).url)
    assert found.reason is FailureReason.BAD_ANSWER
    assert "'br'" in found.detail


async def test_a_name_that_does_not_exist() -> None:
    def nowhere(host: str, port: int) -> tuple[str, ...]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    gate = Gate(resolver=nowhere)
    found = await failure(gate, "http://engine.invalid:8000")
    assert found.reason is FailureReason.DNS
    assert "engine.invalid:8000" in found.detail
    await gate.close()


async def test_a_name_server_that_hangs_holds_up_nobody(serve: Serve, patience: Patience) -> None:
    server = await serve(answer(PAGE))
    release = threading.Event()

    def resolver(host: str, port: int) -> tuple[str, ...]:
        if host.endswith(".invalid"):
            release.wait(60)
        return ("127.0.0.1",)

    gate = Gate(resolver=resolver)
    port = server.url.rpartition(":")[2]
    urls = [f"http://dead{number}.invalid:{port}" for number in range(40)] + [f"http://good.test:{port}"]
    source = EngineScrape(gate, [(Target(url, url), Access(url, timeout_s=0.5)) for url in urls])
    async with patience():
        *dead, good = await source.read()
    assert good.page is not None
    assert {scrape.failure.reason for scrape in dead if scrape.failure} == {FailureReason.TIMEOUT}
    assert all(scrape.failure is not None and "name" in scrape.failure.detail for scrape in dead)
    release.set()
    await gate.close()


async def test_the_address_that_answers_is_found_and_remembered(serve: Serve) -> None:
    server = await serve(answer(PAGE))
    # On Linux all of 127/8 is loopback: nothing listens on the first of them.
    gate = Gate(resolver=lambda host, port: ("127.0.0.2", "127.0.0.1"))
    url = f"http://engine.test:{server.url.rpartition(':')[2]}"
    source = EngineScrape(gate, [(Target("engine", url), Access(url))])
    for _ in range(2):
        (found,) = await source.read()
        assert found.page is not None
    assert server.connections == 1
    assert server.requests[0].headers["host"] == url.removeprefix("http://")
    await gate.close()


async def test_the_others_go_on_while_one_hangs(serve: Serve, gate: Gate, patience: Patience) -> None:
    good, hanging, broken = await serve(answer(PAGE)), await serve(hang), await serve(answer(b"", "500 Oops"))
    urls = [hanging.url, good.url, broken.url, good.url + "/metrics"]
    source = EngineScrape(gate, [(Target(str(n), url), Access(url, timeout_s=0.4)) for n, url in enumerate(urls)])
    async with patience():
        found = await source.read()
    assert [scrape.target.name for scrape in found] == ["0", "1", "2", "3"]
    assert [scrape.page is not None for scrape in found] == [False, True, False, True]
    assert found[0].failure is not None
    assert found[0].failure.reason is FailureReason.TIMEOUT


async def test_connections_are_kept_between_reads(serve: Serve, gate: Gate) -> None:
    server = await serve(answer(PAGE))
    source = EngineScrape(gate, [(Target("engine", server.url), Access(server.url))])
    for _ in range(3):
        await source.read()
    assert len(server.requests) == 3
    assert server.connections == 1


async def test_a_connection_that_was_closed_while_idle_is_replaced(serve: Serve, gate: Gate) -> None:
    """uvicorn closes after 5 s, the usual interval: the close and the next request then cross."""

    async def once_a_connection(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.place == 1:
            writer.write(answer(PAGE))
        else:
            writer.close()

    server = await serve(once_a_connection)
    source = EngineScrape(gate, [(Target("engine", server.url), Access(server.url))])
    for _ in range(3):
        (found,) = await source.read()
        assert found.page is not None
    assert server.connections == 3


PATHS: dict[str, tuple[str, list[str], list[str]]] = {
    # URL's path: served there, asked for in the first read, asked for in the second
    "": ("/metrics", ["/metrics"], ["/metrics"]),
    "/": ("/prometheus/metrics", ["/metrics", "/v1/metrics", "/prometheus/metrics"], ["/prometheus/metrics"]),
    "/v1": ("/v1/metrics", ["/metrics", "/v1/metrics"], ["/v1/metrics"]),
    "/v1/chat/completions": ("/metrics", ["/metrics"], ["/metrics"]),
    "/team/llama": ("/team/llama/metrics", ["/team/llama/metrics"], ["/team/llama/metrics"]),
    "/exporter/metrics": ("/exporter/metrics", ["/exporter/metrics"], ["/exporter/metrics"]),
    "/metrics/": ("/metrics/", ["/metrics/"], ["/metrics/"]),
}


@pytest.mark.parametrize("path", PATHS)
async def test_where_the_page_is_looked_for(serve: Serve, gate: Gate, path: str) -> None:
    place, first, second = PATHS[path]

    async def one_path(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(PAGE) if request.path == place else answer(b"", "404 Not Found"))

    server = await serve(one_path)
    source = EngineScrape(gate, [(Target("engine", server.url + path), Access(server.url + path))])
    for expected in (first, second):
        server.requests.clear()
        (found,) = await source.read()
        assert found.page is not None
        assert [request.path for request in server.requests] == expected


async def test_a_page_that_is_nowhere_is_looked_for_once(serve: Serve, gate: Gate) -> None:
    server = await serve(answer(b"", "404 Not Found"))
    source = EngineScrape(gate, [(Target("engine", server.url), Access(server.url))])
    (found,) = await source.read()
    assert found.failure is not None
    assert found.failure.reason is FailureReason.NOT_FOUND
    assert "/prometheus/metrics" in found.failure.detail
    await source.read()
    paths = [request.path for request in server.requests]
    assert paths == ["/metrics", "/v1/metrics", "/prometheus/metrics", "/api/ps", "/metrics"]


async def test_a_token_is_read_anew_when_it_is_refused(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async def guarded(request: Request, writer: asyncio.StreamWriter) -> None:
        right = request.headers.get("authorization") == "Bearer second"
        writer.write(answer(PAGE) if right else answer(b"", "401 Unauthorized"))

    now = 0.0
    gate = Gate(clock=lambda: now)
    server = await serve(guarded)
    monkeypatch.setenv("TRIAGE_TEST_KEY", "first")
    key = Credential(CredentialKind.ENVIRONMENT, ("TRIAGE_TEST_KEY",))
    source = EngineScrape(gate, [(Target("engine", server.url), Access(server.url, credential=key))])
    (found,) = await source.read()
    assert found.failure is not None
    assert found.failure.reason is FailureReason.UNAUTHORIZED
    monkeypatch.setenv("TRIAGE_TEST_KEY", "second")
    now = 60.0
    (found,) = await source.read()
    assert found.page is not None
    await gate.close()


async def test_a_credential_that_cannot_be_read_sends_nothing(serve: Serve, gate: Gate) -> None:
    server = await serve(answer(PAGE))
    key = Credential(CredentialKind.ENVIRONMENT, ("TRIAGE_TEST_NO_SUCH_KEY",))
    found = await failure(gate, server.url, credential=key)
    assert found.reason is FailureReason.CREDENTIAL
    assert "TRIAGE_TEST_NO_SUCH_KEY" in found.detail
    assert server.connections == 0


async def test_cancelling_a_read_closes_its_connections(serve: Serve, gate: Gate, patience: Patience) -> None:
    server = await serve(hang)
    source = EngineScrape(gate, [(Target("engine", server.url), Access(server.url, timeout_s=60))])
    reading = asyncio.create_task(source.read())
    async with patience():
        await server.asked.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await server.gone.wait()
