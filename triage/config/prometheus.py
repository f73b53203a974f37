"""A Prometheus, as the option and the file name it."""

import re

import msgspec

from triage.domain.errors import ConfigError
from triage.domain.text import clean
from triage.gate.access import Access, Credential
from triage.gate.address import address_of

DEFAULT_TIMEOUT_S = 10.0
# What people paste from the browser.
_PASTED = re.compile(r"/(?:(?:graph|query|targets|alerts)(?:\?.*)?|api/v1(?:/[a-z_]+)?)?/?$")
# `namespace="llm", cluster=~"eu-.*"`: label matchers as they stand between braces in PromQL.
_MATCHER = r'[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"'
_MATCHERS = re.compile(rf"\s*{_MATCHER}(?:\s*,\s*{_MATCHER})*\s*,?\s*")


class PrometheusConfig(msgspec.Struct, frozen=True):
    """matchers: label matchers that narrow every question, '' for none."""

    access: Access
    matchers: str = ""


def prometheus_of(
    url: str,
    *,
    matchers: str = "",
    ca: str = "",
    insecure: bool = False,
    credential: Credential | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> PrometheusConfig:
    """ConfigError when the URL or the matchers cannot be meant."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    base = f"{scheme}{separator}{host}" + _PASTED.sub("", slash + path)
    address_of(base)
    if matchers and not _MATCHERS.fullmatch(matchers):
        raise ConfigError(
            "unusable matchers",
            f"{clean(matchers, 120)!r} are no PromQL label matchers",
            'write for example: namespace="llm", cluster=~"eu-.*"',
        )
    return PrometheusConfig(Access(base, ca, insecure, credential, timeout_s), matchers.strip().rstrip(",").strip())
