"""Exceptions and statuses to reasons and sentences."""

import errno
import socket
import ssl

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.domain.target import FailureReason
from triage.domain.text import clean
from triage.gate import failure_of
from triage.gate.body import CutError, EncodingError, TooLargeError
from triage.gate.failures import failure_of_status, first_sentence, is_tls
from triage.gate.tls import TrustError


def caused(error: BaseException, *causes: BaseException) -> BaseException:
    """error, raised from the first cause, which was raised from the second."""
    current = error
    for cause in causes:
        current.__cause__ = cause
        current = cause
    return error


def verification(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError("certificate verify failed")
    error.verify_code, error.verify_message = code, "words of OpenSSL"
    return error


CASES = {
    "refused": (caused(httpx.ConnectError("x"), ConnectionRefusedError(111, "x")), FailureReason.REFUSED, "a:1"),
    "no route": (caused(httpx.ConnectError("x"), OSError(errno.EHOSTUNREACH, "x")), FailureReason.REFUSED, "no route"),
    "dns": (socket.gaierror(-2, "Name or service not known"), FailureReason.DNS, "a:1: Name or service not known"),
    "connect": (
        caused(httpx.ConnectTimeout("x"), ssl.SSLWantReadError()),
        FailureReason.TIMEOUT,
        "no connection to a:1",
    ),
    "files": (caused(httpx.ConnectError("x"), OSError(errno.EMFILE, "x")), FailureReason.NOT_ALLOWED, "ulimit"),
    "reset": (caused(httpx.ReadError("x"), ConnectionResetError(104, "x")), FailureReason.DISCONNECTED, "reset"),
    "read": (httpx.ReadError(""), FailureReason.DISCONNECTED, "broke"),
    "tls read": (caused(httpx.ReadError(""), ssl.SSLError(1, "x")), FailureReason.DISCONNECTED, "broke"),
    "half": (
        httpx.RemoteProtocolError(
            "peer closed connection without sending complete message body (received 5 bytes, expected 10)"
        ),
        FailureReason.DISCONNECTED,
        "received 5 bytes, expected 10",
    ),
    "no http": (httpx.RemoteProtocolError("illegal status line: bytearray(b'SSH')"), FailureReason.BAD_ANSWER, "HTTP"),
    "expired": (caused(httpx.ConnectError("x"), verification(10)), FailureReason.TLS, "expired"),
    "early": (caused(httpx.ConnectError("x"), verification(9)), FailureReason.TLS, "not valid yet"),
    "self": (caused(httpx.ConnectError("x"), verification(18)), FailureReason.TLS, "self-signed"),
    "name": (caused(httpx.ConnectError("x"), verification(62)), FailureReason.TLS, "another host name"),
    "other": (caused(httpx.ConnectError("x"), verification(23)), FailureReason.TLS, "words of OpenSSL"),
    "too large": (TooLargeError("more than 16 MiB"), FailureReason.TOO_LARGE, "16 MiB"),
    "encoding": (EncodingError("not\x1b[2J gzip"), FailureReason.BAD_ANSWER, "not gzip"),
    "cut": (CutError("too early"), FailureReason.DISCONNECTED, "too early"),
    "trust": (TrustError("the CA file x"), FailureReason.TLS, "CA file"),
    "group": (
        caused(httpx.ConnectError("x"), ExceptionGroup("x", [ConnectionRefusedError(111, "x")])),
        FailureReason.REFUSED,
        "a:1",
    ),
    "unknown": (ZeroDivisionError("why\x07"), FailureReason.BAD_ANSWER, "ZeroDivisionError: why"),
}


@pytest.mark.parametrize("kind", CASES)
def test_each_exception_has_a_reason_and_a_sentence(kind: str) -> None:
    error, reason, words = CASES[kind]
    found = failure_of(error, "a:1")
    assert found.reason is reason
    assert words in found.detail


def test_a_cause_that_points_at_itself_ends() -> None:
    first, second = httpx.ConnectError("x"), OSError("y")
    first.__cause__, second.__context__ = second, first
    assert failure_of(first).reason is FailureReason.DISCONNECTED


def test_a_failed_handshake_is_told_from_the_steps_of_a_good_one() -> None:
    assert is_tls(caused(httpx.ConnectError("x"), verification(10)))
    assert not is_tls(caused(httpx.ConnectTimeout("x"), ssl.SSLWantReadError()))
    assert not is_tls(caused(httpx.ConnectError("x"), ConnectionRefusedError()))


SAID = {
    b'{"error":{"message":"no metrics","code":501}}': "no metrics",
    b'{"object":"error","message":"unknown model"}': "unknown model",
    b'{"detail":"Not Found"}': "Not Found",
    b'{"error":"model not loaded"}': "model not loaded",
    b'{"detail":[{"loc":["body"]}]}': '{"detail":[{"loc":["body"]}]}',
    b"{broken": "{broken",
    b"<html><head><TITLE> 502 Bad Gateway </TITLE>": "502 Bad Gateway",
    b"<html><body>x": "an HTML page",
    b"\r\n  upstream connect error\r\nmore": "upstream connect error",
    b"\x1b]0;owned\x07\x1b[2Jdown\xff": "down\ufffd",
    b'{"message":"\\u001b[2J\\u202edown"}': "down",
    b"<title>\x1b[2Jdown</title>": "down",
    b"": "",
    b"   \n": "",
}


@pytest.mark.parametrize("body", SAID)
def test_the_first_sentence_of_an_error_body(body: bytes) -> None:
    assert first_sentence(body) == SAID[body]


@given(st.binary(max_size=400) | st.text(max_size=200).map(str.encode), st.integers(100, 999), st.text(max_size=80))
def test_any_error_answer_gives_one_clean_bounded_line(body: bytes, status: int, location: str) -> None:
    found = failure_of_status(status, location, "", body)
    assert (found is None) == (200 <= status < 300)
    if found is not None:
        assert found.status == status
        assert clean(found.detail, 1000) == found.detail
        assert len(found.detail) < 600


def test_where_a_redirect_goes_is_told_without_its_query() -> None:
    found = failure_of_status(302, "https://login.example/authorize?state=hunter2", "", b"")
    assert found is not None
    assert "https://login.example/authorize" in found.detail
    assert "hunter2" not in found.detail
