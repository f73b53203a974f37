"""A URL as a person writes it, taken apart and checked."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

from triage.domain.errors import ConfigError
from triage.domain.text import clean

_PORTS = {"http": 80, "https": 443}
# What people paste instead of the base URL.
_KNOWN_ENDS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/models",
    "/prometheus/metrics",
    "/v1/metrics",
    "/metrics",
    "/api/ps",
    "/api/chat",
    "/api/generate",
)
_HOST_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?")


class Address(msgspec.Struct, frozen=True):
    """host: without brackets, ASCII. prefix: the path before the engine's own routes, '' or '/team/llama'.

    metrics: the path of the metrics page where the URL named one, else None.
    """

    scheme: str
    host: str
    port: int
    prefix: str
    metrics: str | None

    @property
    def authority(self) -> str:
        """Host and port as in a Host header; the scheme's own port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def is_literal(self) -> bool:
        """The host is an IP address: there is no name to resolve."""
        return _is_ip(self.host)


def address_of(url: str) -> Address:
    """ConfigError, saying what is wrong and what to write instead, when the URL cannot be meant.

    Where a part of it may be a password or a key, the message does not repeat it.
    """
    if clean(url, len(url) + 1) != url or " " in url:
        raise ConfigError("unusable URL", "it holds spaces or control characters")
    scheme, separator, rest = url.partition("://")
    if "@" in url:
        raise ConfigError(
            "unusable URL",
            "it holds a user name or password, which every process list would show",
            "name the credential instead: key_env, key_file or key_command in triage.toml",
        )
    told = clean(re.split(r"[?#]", url, maxsplit=1)[0], 120)
    if not separator:
        raise ConfigError("unusable URL", f"{told!r} has no scheme", f"write http://{told}")
    scheme = scheme.lower()
    if scheme not in _PORTS:
        raise ConfigError("unusable URL", f"{told!r}: {scheme!r} is neither http nor https")
    if "?" in rest or "#" in rest:
        # A query is a place for keys, and the gate's allow-list is about paths.
        raise ConfigError("unusable URL", f"{told!r}: a query (?…) or fragment (#…) is not sent", f"write {told}")
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna" if not url.isascii() else "ascii").decode("ascii")
    except ValueError as error:
        raise ConfigError("unusable URL", f"{told!r}: {clean(str(error))}") from None
    if not (_is_ip(host) if "[" in parts.netloc else _HOST_NAME.fullmatch(host)):
        raise ConfigError("unusable URL", f"{told!r} names no host")
    if not parts.path.isascii():
        raise ConfigError("unusable URL", f"{told!r}: the path has other than ASCII characters")
    path = parts.path.rstrip("/")
    end = next((end for end in _KNOWN_ENDS if path.endswith(end)), "")
    return Address(
        scheme=scheme,
        host=host,
        port=_port(told, parts.netloc, _PORTS[scheme]),
        prefix=path[: len(path) - len(end)].removesuffix("/v1"),
        metrics=parts.path if path.rpartition("/")[2] == "metrics" else None,
    )


def _port(told: str, netloc: str, usual: int) -> int:
    _, colon, digits = netloc.rpartition("]")[2].partition(":")
    if not colon:
        return usual
    if not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits[:6]) <= 65535:
        raise ConfigError("unusable URL", f"{told!r}: {digits!r} is not a port (1 to 65535)")
    return int(digits)


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
