"""Certificates that are right, and each way of being wrong, in words that say what to do."""

import asyncio
import datetime
import socket
import ssl
from pathlib import Path

import pytest
import trustme

from tests.integration.conftest import Serve
from tests.integration.server import answer
from triage.domain.target import Failure, FailureReason
from triage.gate import Access, Answer, Gate

PAGE = "up 1\n"


def context_of(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


async def read(gate: Gate, url: str, **access: object) -> Answer | Failure:
    return await gate.client(Access(url, **access)).get("/metrics")  # type: ignore[arg-type]


async def test_a_private_ca_is_trusted_when_it_is_named(
    serve: Serve, gate: Gate, authority: trustme.CA, ca_file: str
) -> None:
    server = await serve(answer(PAGE), context_of(authority.issue_cert("127.0.0.1")))
    found = await read(gate, server.url, ca=ca_file)
    assert isinstance(found, Answer)
    assert found.body == PAGE.encode()


async def test_the_certificate_is_checked_against_the_name_and_not_the_address(
    serve: Serve, authority: trustme.CA, ca_file: str
) -> None:
    server = await serve(answer(PAGE), context_of(authority.issue_cert("engine.test")))
    port = server.url.rpartition(":")[2]
    gate = Gate(resolver=lambda host, port: ("127.0.0.1",))
    assert isinstance(await read(gate, f"https://engine.test:{port}", ca=ca_file), Answer)
    for url in (f"https://other.test:{port}", server.url):
        found = await read(gate, url, ca=ca_file)
        assert isinstance(found, Failure)
        assert found.reason is FailureReason.TLS
        assert "for another" in found.detail
    await gate.close()


async def test_an_unknown_issuer_is_refused_with_what_to_do(serve: Serve, gate: Gate, authority: trustme.CA) -> None:
    server = await serve(answer(PAGE), context_of(authority.issue_cert("127.0.0.1")))
    found = await read(gate, server.url)
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.TLS
    assert "issuer is not trusted" in found.detail
    assert "`ca`" in found.detail


async def test_a_self_signed_certificate(serve: Serve, gate: Gate, authority: trustme.CA, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pem = tmp_path / "self.pem"
    pem.write_bytes(authority.private_key_pem.bytes() + authority.cert_pem.bytes())
    context.load_cert_chain(str(pem))
    found = await read(gate, (await serve(answer(PAGE), context)).url)
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.TLS
    assert "self-signed" in found.detail


async def test_an_expired_certificate(serve: Serve, gate: Gate, authority: trustme.CA, ca_file: str) -> None:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    leaf = authority.issue_cert("127.0.0.1", not_before=past - datetime.timedelta(days=30), not_after=past)
    found = await read(gate, (await serve(answer(PAGE), context_of(leaf))).url, ca=ca_file)
    assert isinstance(found, Failure)
    assert (found.reason, found.detail) == (FailureReason.TLS, "the certificate has expired")


async def test_nothing_is_checked_only_when_that_was_asked_for(serve: Serve, gate: Gate, authority: trustme.CA) -> None:
    server = await serve(answer(PAGE), context_of(authority.issue_cert("elsewhere.test")))
    assert isinstance(await read(gate, server.url, insecure=True), Answer)
    assert isinstance(await read(gate, server.url), Failure)


async def test_https_to_a_port_that_speaks_http(gate: Gate) -> None:
    async def any_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer(b"", "400 Bad Request", Connection="close"))
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(any_bytes, "127.0.0.1", 0)
    async with server:
        found = await read(gate, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.TLS
    assert "is it http?" in found.detail


async def test_http_to_a_port_that_speaks_tls(serve: Serve, gate: Gate, authority: trustme.CA) -> None:
    server = await serve(answer(PAGE), context_of(authority.issue_cert("127.0.0.1")))
    found = await read(gate, server.url.replace("https:", "http:"))
    assert isinstance(found, Failure)
    assert found.reason in (FailureReason.DISCONNECTED, FailureReason.BAD_ANSWER)


async def test_a_handshake_that_hangs_ends(gate: Gate) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        found = await read(gate, f"https://127.0.0.1:{listening.getsockname()[1]}", timeout_s=0.4)
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.TIMEOUT


@pytest.mark.parametrize(("content", "words"), [(None, "cannot be read"), (b"no certificate", "no usable certificate")])
async def test_a_ca_file_that_cannot_be_used(
    serve: Serve, gate: Gate, tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "own-ca.pem"
    if content is not None:
        path.write_bytes(content)
    found = await read(gate, "https://127.0.0.1:9", ca=str(path))
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.TLS
    assert "own-ca.pem" in found.detail
    assert words in found.detail
