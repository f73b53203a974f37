"""Servers on loopback, certificates, and a gate that is closed after the test."""

import asyncio
import select
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trustme

from tests.integration.server import Handler, Server
from triage.gate import Gate

# Nothing here may take this long: what does, hangs.
PATIENCE_S = 20.0

Serve = Callable[..., Awaitable[Server]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts servers; they end with the test."""
    started: list[Server] = []

    async def start(handler: Handler | bytes, context: ssl.SSLContext | None = None) -> Server:
        server = Server(handler, context)
        await server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        await server.stop()


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    gate = Gate(transcript=100)
    yield gate
    await gate.close()


@pytest.fixture
def authority() -> trustme.CA:
    """A private CA that no system trusts."""
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture
def patience() -> Callable[[], asyncio.Timeout]:
    """`async with patience():` turns a hang into a failure."""
    return lambda: asyncio.timeout(PATIENCE_S)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real llama.cpp server in a process of its own."""
    for package in ("xllamacpp", "gguf"):
        pytest.importorskip(package, reason=f"{package} is not installed (extra: lab)")
    folder = tmp_path_factory.mktemp("llama")
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.llama", str(folder)],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=Path(__file__).parents[2],
        )
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
        said = process.stdout.readline().decode() if ready else ""
        assert said.startswith("listening "), (folder / "server.log").read_text(errors="replace")[-2000:]
        yield said.split()[1]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
