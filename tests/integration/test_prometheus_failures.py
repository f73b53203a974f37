"""Every way in which a monitoring server gives nothing: each has its own reason, and says what to do."""

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme

from tests.data import RECORDINGS
from tests.integration.conftest import Serve
from tests.integration.server import Handler, Request, answer, hang
from triage.domain.limits import Limits
from triage.domain.monitoring import MonitoringReading, MonitoringTrouble, Trouble
from triage.domain.reading import Scrape
from triage.domain.target import Target
from triage.domain.verdict import Kind
from triage.gate import Access, Credential, CredentialKind, Gate
from triage.monitor.joined import Joined
from triage.situation.store import Store
from triage.sources.engine_scrape import EngineScrape
from triage.sources.prometheus import PrometheusSource

Reply = Callable[[str, dict[str, list[str]]], object]
AT = 1_800_000_000.0
SERIES = {"engine": "0", "model_name": "m", "job": "engines", "instance": "127.0.0.1:8000"}


def success(data: object, **beside: object) -> bytes:
    return answer(json.dumps({"status": "success", "data": data, **beside}), Content_Type="application/json")


def vector(*names: str, **labels: str) -> dict[str, object]:
    return {
        "resultType": "vector",
        "result": [{"metric": {"__name__": name, "job": "engines", **labels}, "value": [AT, "1"]} for name in names],
    }


def matrix(*pairs: tuple[str, list[list[object]]]) -> dict[str, object]:
    found = [{"metric": {"__name__": name, **SERIES}, "values": values} for name, values in pairs]
    return {"resultType": "matrix", "result": found}


RUNNING = matrix(
    ("vllm:num_requests_running", [[AT - 20, "1"], [AT - 10, "2"]]),
    ("vllm:generation_tokens_total", [[AT - 20, "100"], [AT - 10, "200"]]),
)


def prometheus(**replies: object) -> Handler:
    """A server with one engine; replies: an answer's bytes, or the data of one, by route or kind of query."""

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(request.path)
        route = parts.path.removeprefix("/api/v1/").partition("/")[0]
        question = parse_qs(parts.query).get("query", [""])[0]
        if route == "query":
            route = (
                "survey"
                if question.startswith("count by")
                else "newest"
                if question.startswith("max by")
                else "past"
                if "time" in parse_qs(parts.query)
                else "samples"
            )
        usual = {
            "survey": vector("vllm:num_requests_running", "vllm:generation_tokens_total"),
            "samples": RUNNING,
            "past": matrix(),
            "newest": vector(),
            "targets": {"activeTargets": [], "droppedTargets": []},
            "rules": {"groups": []},
            "alerts": {"alerts": []},
            "label": [],
        }
        reply = replies.get(route, usual.get(route))
        writer.write(
            reply if isinstance(reply, bytes) else success(reply) if reply is not None else answer(b"", "404 No")
        )

    return handle


async def read(gate: Gate, url: str, **access: object) -> tuple[list[Scrape], MonitoringReading]:
    source = PrometheusSource(gate, Access(url, **{"timeout_s": 5.0, **access}))  # type: ignore[arg-type]
    readings = await source.read()
    await source.close()
    (told,) = [one for one in readings if isinstance(one, MonitoringReading)]
    return [one for one in readings if isinstance(one, Scrape)], told


async def blind(gate: Gate, url: str, **access: object) -> MonitoringTrouble:
    """The one trouble that hides engines, as the store passes it on."""
    scrapes, told = await read(gate, url, **access)
    assert not scrapes
    (trouble,) = [one for one in told.troubles if one.blind]
    store = Store((), window_s=30.0, limits=Limits())
    store.add([told])
    (seen,) = [seen for seen in store.situation(AT, 5.0).not_seen if seen.expected]
    assert seen.why == str(trouble)
    assert Kind.QUEUEING.value in seen.costs
    assert trouble.todo, "it says what to do"
    return trouble


ERROR = '{"status":"error","errorType":"%s","error":"%s"}'
IDS = [
    "403",
    "401",
    "404",
    "login-page",
    "other-json",
    "text",
    "number",
    "redirect",
    "samples",
    "points",
    "query-time-out",
    "503",
    "large",
]
MEMORY = "query processing would load too many samples into memory in query execution"


@pytest.mark.parametrize(
    ("reply", "trouble", "says", "todo"),
    [
        (answer("denied by proxy", "403 Forbidden"), Trouble.UNREADABLE, "403 forbidden: denied by proxy", "role"),
        (answer("", "401 Unauthorized"), Trouble.UNREADABLE, "401 unauthorized", "key_env"),
        (answer("<html><title>Grafana</title>", "404 Not Found"), Trouble.WRONG_SERVER, "Grafana", "/prometheus"),
        (answer("<html><title>Sign in</title>"), Trouble.WRONG_SERVER, "an HTML page", "/api/v1/query"),
        (answer('{"hello": 1}'), Trouble.WRONG_SERVER, "JSON of another kind", "/api/v1/query"),
        (answer("up 1\n"), Trouble.WRONG_SERVER, "no JSON", "/api/v1/query"),
        (success(3), Trouble.WRONG_SERVER, "a field is missing", "/api/v1/query"),
        (answer("", "302 Found", Location="/login"), Trouble.UNREADABLE, "redirect", "token"),
        (
            answer(ERROR % ("execution", MEMORY), "422 Unprocessable"),
            Trouble.TOO_MANY_POINTS,
            "too many samples",
            "matchers",
        ),
        (
            answer((RECORDINGS / "prometheus" / "3_range_too_many_points.json").read_bytes(), "400 Bad Request"),
            Trouble.TOO_MANY_POINTS,
            "exceeded maximum resolution of 11,000 points",
            "matchers",
        ),
        (answer(ERROR % ("timeout", "query timed out"), "503 No"), Trouble.UNREADABLE, "query timed out", "timeout_s"),
        (answer("", "503 Service Unavailable"), Trouble.UNREADABLE, "5xx: 503", "by hand"),
        (answer(b"x" * 34_000_000), Trouble.TOO_MANY_POINTS, "too large", "matchers"),
    ],
    ids=IDS,
)
async def test_a_first_question_that_fails(
    serve: Serve, gate: Gate, reply: bytes, trouble: Trouble, says: str, todo: str
) -> None:
    found = await blind(gate, (await serve(prometheus(survey=reply))).url)
    assert found.trouble is trouble
    assert says in found.says
    assert todo in found.todo


async def test_a_server_that_does_not_answer(serve: Serve, gate: Gate) -> None:
    found = await blind(gate, (await serve(hang)).url, timeout_s=0.3)
    assert (found.trouble, found.says) == (Trouble.UNREADABLE, "time-out: no answer within 0.3 s")
    assert "matchers" in found.todo


async def test_nothing_listens(gate: Gate) -> None:
    found = await blind(gate, "http://127.0.0.1:1")
    assert found.says.startswith("refused: ")
    assert "port" in found.todo


async def test_a_certificate_that_is_not_trusted(serve: Serve, gate: Gate, authority: trustme.CA, ca_file: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = await serve(prometheus(), context)
    found = await blind(gate, server.url)
    assert found.says.startswith("tls: ")
    assert "under [prometheus]" in found.todo
    scrapes, _ = await read(gate, server.url, ca=ca_file)
    assert len(scrapes) == 2


async def test_series_of_before_and_none_now(serve: Serve, gate: Gate) -> None:
    found = await blind(gate, (await serve(prometheus(survey=vector(), label=["vllm:num_requests_running"]))).url)
    assert found.trouble is Trouble.NO_DATA
    assert "vllm:num_requests_running was stored before" in found.says


async def test_never_any_series(serve: Serve, gate: Gate) -> None:
    down = {"labels": {"job": "x", "instance": "h:1"}, "scrapeUrl": "http://h:1/metrics", "health": "down"}
    replies = {
        "survey": vector(),
        "targets": {"activeTargets": [down | {"lastError": "server returned HTTP status 404"}]},
    }
    found = await blind(gate, (await serve(prometheus(**replies))).url)
    assert found.trouble is Trouble.UNKNOWN_METRIC
    assert "1 targets, 1 down (http://h:1/metrics: server returned HTTP status 404)" in found.says


async def test_series_that_stopped_within_the_hour(serve: Serve, gate: Gate) -> None:
    newest = {"resultType": "vector", "result": [{"metric": {"job": "engines"}, "value": [AT, str(AT - 840)]}]}
    found = await blind(gate, (await serve(prometheus(samples=matrix(), newest=newest))).url)
    assert found.trouble is Trouble.STALE
    assert found.says == "the newest vllm:generation_tokens_total is 14 min old"


async def test_a_target_that_was_never_scraped(serve: Serve, gate: Gate) -> None:
    fresh = {
        "labels": {"job": "engines", "instance": "h:1"},
        "scrapeUrl": "http://h:1/metrics",
        "health": "unknown",
        "lastScrape": "0001-01-01T00:00:00Z",
        "lastError": "",
    }
    scrapes, told = await read(gate, (await serve(prometheus(targets={"activeTargets": [fresh]}))).url)
    assert len(scrapes) == 2
    (trouble,) = [one for one in told.troubles if one.trouble is Trouble.NEVER_SCRAPED]
    assert "1 of 1 engine targets, http://h:1/metrics" in trouble.says
    assert not trouble.blind
    assert [target.health for target in told.targets or ()] == ["unknown"]


async def test_an_engine_of_another_kind_is_looked_for_until_it_is_scraped(
    serve: Serve, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked at while only some targets were scraped: the others may be of a kind that no question asks for yet."""
    monkeypatch.setattr("triage.sources.prometheus._SURVEY_SOON_S", 0.0)
    health = ["unknown", "up", "up"]

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        fresh = {"labels": {"job": "engines"}, "scrapeUrl": "http://h:1/metrics", "health": health[0], "lastError": ""}
        if request.path.startswith("/api/v1/targets") and "active" in request.path:
            health.pop(0)
        await prometheus(targets={"activeTargets": [fresh], "droppedTargets": []})(request, writer)

    source = PrometheusSource(gate, Access((await serve(handle)).url, timeout_s=5.0))
    told = [one for _ in range(3) for one in await source.read() if isinstance(one, MonitoringReading)]
    await source.close()
    assert [one.targets and one.targets[0].health for one in told] == ["unknown", "up", None]


async def test_warnings_are_kept(serve: Serve, gate: Gate) -> None:
    reply = success(RUNNING, warnings=["store eu-2 unreachable\x1b[2J"], infos=["metric might not be a counter"])
    scrapes, told = await read(gate, (await serve(prometheus(samples=reply))).url)
    assert len(scrapes) == 2
    partial = [(one.says, one.blind) for one in told.troubles if one.trouble is Trouble.PARTIAL]
    assert partial == [("store eu-2 unreachable", True), ("metric might not be a counter", False)]


async def test_alerts_and_targets_that_cannot_be_read_cost_only_themselves(serve: Serve, gate: Gate) -> None:
    denied = answer("no", "403 Forbidden")
    handler = prometheus(targets=denied, rules=denied, alerts=denied, past=denied)
    scrapes, told = await read(gate, (await serve(handler)).url)
    assert [scrape.every_s for scrape in scrapes] == [10.0, 10.0], "learnt from the samples"
    assert not [one for one in told.troubles if one.blind]
    assert sorted(one.says.partition(":")[0] for one in told.troubles if "403" in one.says) == [
        "alerts",
        "no baseline",
        "targets",
    ]


async def test_a_store_without_targets_and_rules_is_no_wrong_server(serve: Serve, gate: Gate) -> None:
    missing = answer("404 page not found", "404 Not Found")
    handler = prometheus(targets=missing, rules=missing, alerts=missing)
    scrapes, told = await read(gate, (await serve(handler)).url)
    assert len(scrapes) == 2
    said = [str(one) for one in told.troubles if one.trouble is not Trouble.CLOCK]
    assert said == ["targets are not to be had from this server", "alerts are not to be had from this server"]


async def test_clocks_that_differ_are_told_and_the_times_shifted(serve: Serve, gate: Gate) -> None:
    scrapes, told = await read(gate, (await serve(prometheus())).url)
    (trouble,) = [one for one in told.troubles if one.trouble is Trouble.CLOCK]
    assert "ahead" in trouble.says
    assert scrapes[-1].at == pytest.approx(told.at - 10, abs=2.0)


async def test_an_explicit_time_that_nobody_else_has_is_no_scrape(serve: Serve, gate: Gate) -> None:
    """A page's own timestamps freeze a value for five minutes after its writer died."""
    frozen = matrix(
        ("vllm:num_requests_running", [[AT - 20, "1"], [AT - 10, "2"]]),
        ("vllm:num_requests_waiting", [[AT - 20, "1"], [AT - 10, "2"]]),
        ("vllm:generation_tokens_total", [[AT - 20, "1"], [AT - 10, "2"]]),
        ("vllm:kv_cache_usage_perc", [[AT - 17.25, "0.42"]]),
    )
    scrapes, _ = await read(gate, (await serve(prometheus(samples=frozen))).url)
    assert len(scrapes) == 2


async def test_the_gate_holds_for_the_library(serve: Serve, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its requests carry our token and no other, follow nothing, go through no proxy and are in the transcript."""
    monkeypatch.setenv("TRIAGE_TEST_KEY", "s3cret")
    proxy = await serve(answer("", "502 Proxy"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
    server = await serve(prometheus())
    await read(gate, server.url, credential=Credential(CredentialKind.ENVIRONMENT, ("TRIAGE_TEST_KEY",)))
    assert proxy.connections == 0
    assert len(server.requests) >= 6
    assert {request.method for request in server.requests} == {"GET"}
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer s3cret"}
    assert {request.headers["user-agent"].partition("/")[0] for request in server.requests} == {"triage"}
    assert len(gate.transcript) == len(server.requests)
    assert "s3cret" not in repr(gate.transcript)


async def test_a_path_prefix_is_kept(serve: Serve, gate: Gate) -> None:
    seen = []

    async def mimir(request: Request, writer: asyncio.StreamWriter) -> None:
        seen.append(urlsplit(request.path).path)
        inner = request._replace(path=request.path.removeprefix("/prometheus"))
        await prometheus()(inner, writer)

    scrapes, _ = await read(gate, (await serve(mimir)).url + "/prometheus")
    assert scrapes
    assert all(path.startswith("/prometheus/api/v1/") for path in seen)


async def test_a_slow_server_does_not_hold_up_the_scrapes(serve: Serve, gate: Gate) -> None:
    released = asyncio.Event()

    async def slow(request: Request, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        await prometheus()(request, writer)

    engine = await serve(answer('vllm:num_requests_running{engine="0",model_name="m"} 1\n'))
    server = await serve(slow)
    joined = Joined(
        EngineScrape(gate, [(Target("mine", engine.url), Access(engine.url))]),
        PrometheusSource(gate, Access(server.url, timeout_s=20.0)),
    )
    first = await joined.read()
    assert [one.target.name for one in first if isinstance(one, Scrape)] == ["mine"]
    assert len(first) == 1
    released.set()
    async with asyncio.timeout(20):
        while len(found := await joined.read()) < 3:
            pass
    assert any(isinstance(one, MonitoringReading) for one in found)
    await joined.close()


def test_a_folder_and_the_source_itself_load_neither_the_library_nor_requests() -> None:
    code = (
        "import sys, triage.cli.main, triage.situation.folder, triage.sources.prometheus, triage.monitor.joined; "
        "print(sorted({'prometheus_api_client', 'requests', 'httpx', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
