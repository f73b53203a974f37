"""TLS contexts, one for each way of trusting: building one costs tens of milliseconds."""

import ssl
from functools import lru_cache

from triage.domain.text import clean


class TrustError(Exception):
    """The CA file cannot be used; the text says why."""


@lru_cache(maxsize=64)
def trusting(ca: str, insecure: bool) -> ssl.SSLContext:
    """ca: a PEM file that replaces the system's store, '' for that store. TrustError when it cannot be used."""
    if insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        return ssl.create_default_context(cafile=ca or None)
    except ssl.SSLError as error:
        raise TrustError(f"the CA file {clean(ca, 120)} holds no usable certificate") from error
    except OSError as error:
        raise TrustError(f"the CA file {clean(ca, 120)} cannot be read: {clean(error.strerror or '')}") from error


@lru_cache(maxsize=1)
def unused() -> ssl.SSLContext:
    """For plain http, where a transport wants a context but makes no use of it: empty, trusts nobody, cheap."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
