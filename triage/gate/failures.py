"""Every way a read goes wrong, as one typed reason and one cleaned sentence."""

import errno
import re
import socket
import ssl
from collections.abc import Iterator

import msgspec

from triage.domain.target import Failure, FailureReason
from triage.domain.text import clean
from triage.gate.body import CutError, EncodingError, TooLargeError
from triage.gate.tls import TrustError

# X509_verify_cert_error codes of OpenSSL (x509_vfy.h).
_CERTIFICATE = {
    9: "the certificate is not valid yet (is a clock wrong?)",
    10: "the certificate has expired",
    18: "the certificate is self-signed",
    19: "the certificate's chain ends in a self-signed one that is not trusted",
    20: "the certificate's issuer is not trusted",
    21: "the certificate's issuer is not trusted",
    62: "the certificate is for another host name",
    64: "the certificate is for another IP address",
}
_ADD_CA = frozenset({18, 19, 20, 21})
_UNREACHABLE = {
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "no route to its network",
    errno.EADDRNOTAVAIL: "the address cannot be reached from here",
    errno.ENETDOWN: "the network is down",
}
# "Give me more bytes", not errors; they stay in the context of what happens next.
_STEPS = (ssl.SSLWantReadError, ssl.SSLWantWriteError)
_CONNECTION_LOST = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED, errno.ENOTCONN})


def failure_of(error: BaseException, where: str = "") -> Failure:
    """The reason behind an exception of httpx, ssl or the system. where: host and port, for the sentence."""
    import httpx  # here, so that loading the module does not load it

    chain = list(_chain(error))
    if isinstance(error, httpx.TimeoutException | httpx.ReadError | httpx.WriteError):
        # After the handshake, or out of time: whatever TLS says below is not the reason.
        chain = [cause for cause in chain if not isinstance(cause, ssl.SSLError)]
    for cause in chain:
        known = _by_own_type(cause)
        if known is not None:
            return known
    for cause in chain:
        known = _by_system(cause, where)
        if known is not None:
            return known
    return _by_httpx(error, where)


def failure_of_status(status: int, location: str, content_type: str, body: bytes) -> Failure | None:
    """The reason behind an HTTP status, with the first sentence of the body; None for 2xx."""
    if 200 <= status < 300:
        return None
    said = first_sentence(body, content_type)
    if 300 <= status < 400:
        # Login pages are sent to with codes in the query: those are nobody's business here.
        to = f"{status}, to {clean(location.partition('?')[0], 200)}" if location else str(status)
        return Failure(
            FailureReason.REDIRECT, f"{to}; redirects are not followed: give that URL if it is meant", status
        )
    reason = {401: FailureReason.UNAUTHORIZED, 403: FailureReason.FORBIDDEN, 404: FailureReason.NOT_FOUND}.get(status)
    if reason is not None:
        return Failure(reason, said, status)
    told = f"{status}: {said}" if said else str(status)
    if 400 <= status < 500:
        return Failure(FailureReason.CLIENT_ERROR, told, status)
    if 500 <= status < 600:
        return Failure(FailureReason.SERVER_ERROR, told, status)
    return Failure(FailureReason.BAD_ANSWER, f"status {status}", status)


NO_TITLE = "an HTML page"  # what an HTML body says that has neither title nor heading


def first_sentence(body: bytes, content_type: str = "") -> str:
    """What an error body says first: its JSON message, its HTML title, or its first line; cleaned."""
    text = body[:65536].decode("utf-8", "replace").strip()
    if text.startswith(("{", "[")):
        message = _json_message(body)
        if message:
            return clean(message, 300)
    if "html" in content_type or text[:1] == "<":
        title = re.search(r"<(title|h1)[^>]{0,200}>([^<]{1,300})</\1", text, re.IGNORECASE)
        return clean(title[2].strip(), 300) if title else NO_TITLE
    return clean(next((line.strip() for line in text.splitlines() if line.strip()), ""), 300)


def _json_message(body: bytes) -> str:
    """`error.message` (OpenAI, vLLM, llama.cpp), `detail` (FastAPI), `message` (SGLang, gateways), `error`."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return ""
    error = data.get("error") if isinstance(data, dict) else None
    places = [error, data] if isinstance(error, dict) else [data]
    for place in places:
        if isinstance(place, dict):
            for key in ("message", "detail", "error"):
                if isinstance(place.get(key), str) and place[key].strip():
                    return str(place[key])
    return ""


def is_tls(error: BaseException) -> bool:
    """A handshake that failed: another address of the same name would not help."""
    return any(isinstance(cause, ssl.SSLError) and not isinstance(cause, _STEPS) for cause in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and what caused it; httpx and its layers keep the system's own error down there."""
    seen: set[int] = set()
    queue: list[BaseException | None] = [error]
    while queue:
        cause = queue.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            queue += cause.exceptions
        queue += [cause.__cause__, cause.__context__]


def _by_own_type(error: BaseException) -> Failure | None:
    match error:
        case TooLargeError():
            return Failure(FailureReason.TOO_LARGE, str(error))
        case EncodingError():
            return Failure(FailureReason.BAD_ANSWER, clean(str(error)))
        case CutError():
            return Failure(FailureReason.DISCONNECTED, str(error))
        case TrustError():
            return Failure(FailureReason.TLS, str(error))
    return None


def _by_system(error: BaseException, where: str) -> Failure | None:
    if isinstance(error, ssl.SSLError) and not isinstance(error, _STEPS):
        return Failure(FailureReason.TLS, _tls_sentence(error))
    if isinstance(error, socket.gaierror):
        return Failure(FailureReason.DNS, clean(f"{where}: {error.strerror or error}" if where else str(error)))
    if isinstance(error, ConnectionRefusedError):
        return Failure(FailureReason.REFUSED, f"nothing listens on {where}" if where else "nothing listens there")
    if not isinstance(error, OSError) or isinstance(error, TimeoutError):
        return None
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return Failure(FailureReason.NOT_ALLOWED, "too many open files on this side: raise the limit (ulimit -n)")
    if error.errno in _UNREACHABLE:
        return Failure(FailureReason.REFUSED, _UNREACHABLE[error.errno])
    if error.errno in _CONNECTION_LOST:
        return Failure(FailureReason.DISCONNECTED, "the connection was reset")
    return None


def _tls_sentence(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        code = error.verify_code
        text = _CERTIFICATE.get(code) or clean(error.verify_message)
        return f"{text}; name its CA with `ca` if it is right" if code in _ADD_CA else text
    reason = (error.reason or "").replace("_", " ").lower()
    if reason in ("wrong version number", "record layer failure", "http request"):
        return "the server does not speak TLS on this port: is it http?"
    if isinstance(error, ssl.SSLEOFError) or "eof" in reason:
        return "the server closed the connection during the TLS handshake"
    return clean(reason or str(error))


def _by_httpx(error: BaseException, where: str) -> Failure:
    import httpx

    text = clean(str(error), 200)
    match error:
        case httpx.ConnectTimeout():
            return Failure(FailureReason.TIMEOUT, f"no connection to {where}: a firewall, or a wrong address?")
        case httpx.TimeoutException() | TimeoutError():
            return Failure(FailureReason.TIMEOUT, text)
        case httpx.RemoteProtocolError():
            gone = "disconnected" in text or "closed connection" in text or "incomplete" in text
            return Failure(FailureReason.DISCONNECTED if gone else FailureReason.BAD_ANSWER, _protocol_sentence(text))
        case httpx.NetworkError():
            return Failure(FailureReason.DISCONNECTED, text or "the connection broke")
        case httpx.InvalidURL() | httpx.UnsupportedProtocol() | httpx.LocalProtocolError():
            return Failure(FailureReason.NOT_ALLOWED, f"the request cannot be sent: {text}")
    return Failure(FailureReason.BAD_ANSWER, clean(f"{type(error).__name__}: {error}", 200))


def _protocol_sentence(text: str) -> str:
    """h11's words in an operator's. Its numbers stay."""
    if text.startswith("Server disconnected"):
        return "the server closed the connection without an HTTP answer"
    if "illegal status line" in text or "illegal header" in text:
        return f"it does not answer in HTTP: {text}"
    return text
