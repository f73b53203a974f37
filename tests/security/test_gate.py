"""What the gate promises: nothing unlisted leaves, nothing secret shows, nothing is followed."""

import ast
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import triage
from tests.integration.conftest import Serve
from tests.integration.server import answer
from triage.domain.target import Failure, FailureReason, Target
from triage.domain.text import clean
from triage.gate import Access, Answer, Credential, CredentialKind, Gate
from triage.probing.budget import shipped_budget
from triage.probing.measure import measure
from triage.sources.engine_scrape import EngineScrape

SECRET = "sk-hunter2"
PACKAGE = Path(triage.__file__).parent


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> Credential:
    monkeypatch.setenv("TRIAGE_TEST_KEY", SECRET)
    return Credential(CredentialKind.ENVIRONMENT, ("TRIAGE_TEST_KEY",))


@pytest.mark.parametrize(
    "path", ["/flush_cache", "/metrics/../flush_cache", "/v1/chat/completions", "http://x/metrics"]
)
async def test_a_refused_request_opens_no_socket(serve: Serve, gate: Gate, path: str) -> None:
    server = await serve(answer(b"up 1\n"))
    client = gate.client(Access(server.url))
    found = await client.get(path)
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.NOT_ALLOWED
    probed = await client.probe("/generate", b"{}", lambda _: None, limit=1000, timeout_s=5)
    assert isinstance(probed, Failure)
    assert probed.reason is FailureReason.NOT_ALLOWED
    assert server.connections == 0
    assert not gate.transcript


async def test_a_prefix_cannot_lead_elsewhere(serve: Serve, gate: Gate) -> None:
    server = await serve(answer(b"up 1\n"))
    for prefix in ("/x/..", "/a;b", "/a%2f..", "//x"):
        url = server.url + prefix
        (found,) = await EngineScrape(gate, [(Target("engine", url), Access(url))]).read()
        assert found.failure is not None
        assert found.failure.reason is FailureReason.NOT_ALLOWED
    assert server.connections == 0


async def test_the_token_goes_to_its_target_and_nowhere_else(
    serve: Serve, gate: Gate, key: Credential, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    elsewhere = await serve(answer(b"up 1\n"))
    server = await serve(answer(SECRET, "302 Found", Location=f"{elsewhere.url}/metrics?token=1"))
    access = Access(server.url, credential=key)
    client = gate.client(access)
    found = await client.get("/metrics")
    measured = await measure(client, Target("engine", server.url), "m", shipped_budget())
    assert [request.headers["authorization"] for request in server.requests] == [f"Bearer {SECRET}"] * 2
    assert elsewhere.connections == 0
    for shown in (repr(found), repr(measured), repr(access), repr(list(gate.transcript)), caplog.text):
        assert SECRET not in shown
    assert [exchange.credential for exchange in gate.transcript] == ["environment variable TRIAGE_TEST_KEY"] * 2


async def test_a_target_without_a_credential_gets_none(
    serve: Serve, gate: Gate, key: Credential, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also not from the environment or from ~/.netrc, where HTTP libraries like to look."""
    monkeypatch.setenv("TRIAGE_API_KEY", SECRET)
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login x password {SECRET}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    server = await serve(answer(b"up 1\n"))
    guarded = await serve(answer(b"up 1\n"))
    assert isinstance(await gate.client(Access(guarded.url, credential=key)).get("/metrics"), Answer)
    assert isinstance(await gate.client(Access(server.url)).get("/metrics"), Answer)
    assert "authorization" not in server.requests[0].headers


async def test_no_proxy_of_the_environment_is_used(serve: Serve, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = await serve(answer(b"", "502 Proxy"))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    server = await serve(answer(b"up 1\n"))
    assert isinstance(await gate.client(Access(server.url)).get("/metrics"), Answer)
    assert proxy.connections == 0


async def test_hostile_bytes_of_a_server_do_not_reach_a_terminal(serve: Serve, gate: Gate) -> None:
    hostile = b"\x1b]0;owned\x07\x1b[2J\xe2\x80\xaegnp.exe\x9b31m[link=x]"
    for status in ("200 OK", "302 Found", "401 No", "404 No", "500 No"):
        head = b"HTTP/1.1 " + status.encode() + b"\r\nConnection: close\r\nContent-Length: %d\r\n" % len(hostile)
        server = await serve(head + b"Content-Type: text/\xe2\x80\xae\r\nLocation: http://x/\x9b31m\r\n\r\n" + hostile)
        (found,) = await EngineScrape(gate, [(Target("engine", server.url), Access(server.url))]).read()
        measured = await measure(gate.client(Access(server.url)), Target("engine", server.url), "m", shipped_budget())
        assert found.failure is not None
        texts = [found.failure.detail, measured.probe.error, measured.probe.body]
        texts += [exchange.failure for exchange in gate.transcript]
        for text in texts:
            assert clean(text, 2000) == text


# Who may speak to a network, and with what. The lab serves, and its simulated users ask it, on loopback; everything
# else that asks goes through the gate.
SPEAKERS = {
    "httpx": ("gate",),
    "socket": ("gate",),
    "ssl": ("gate",),
    "aiohttp": ("lab",),
    "requests": ("gate",),
    "urllib3": (),
    "urllib.request": (),
    "http.client": (),
    "websocket": (),
    "smtplib": (),
    "ftplib": (),
}


def test_only_the_gate_can_build_a_transport() -> None:
    seen = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *[f"{node.module}.{alias.name}" for alias in node.names]]
            for speaker, allowed in SPEAKERS.items():
                if any(name == speaker or name.startswith(speaker + ".") for name in names):
                    assert part in allowed, f"{path} imports {speaker}"
                    seen += 1
    assert seen >= 3, "the gate and the lab import what they need"


def test_configuration_and_sources_load_no_http_library() -> None:
    code = (
        "import sys, triage.config, triage.gate, triage.sources.engine_scrape, triage.probing.prober; "
        "print(sorted({'httpx', 'httpcore', 'anyio', 'aiohttp', 'kubernetes', 'textual'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
