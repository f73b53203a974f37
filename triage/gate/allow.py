"""What may be sent at all: by purpose, method and path."""

import re
from enum import StrEnum

from triage.domain.target import Failure, FailureReason
from triage.domain.text import clean


class Purpose(StrEnum):
    READ = "read"  # looks; the engine does no work for it
    PROBE = "probe"  # asks the model for tokens: budgeted, announced, marked


# GET is not automatically safe: SGLang flushes its cache, releases GPU memory and starts profilers on GET.
# So the list names what is read today, and everything else is refused. Not on it although they sound harmless:
# /health, for which SGLang can be set to generate a token and LiteLLM calls its models.
_TAILS = {
    (Purpose.READ, "GET"): (
        "metrics",
        "prometheus/metrics",
        "v1/metrics",
        "v1/models",
        # Ollama's list of loaded models, in place of a metrics page, and its version. Asking keeps no model loaded.
        "api/ps",
        "api/version",
        # A Prometheus API. Its queries compute and change nothing; its admin, reload and write routes are not here.
        "api/v1/query",
        "api/v1/targets",
        "api/v1/alerts",
        "api/v1/rules",
        "api/v1/label/__name__/values",
    ),
    (Purpose.PROBE, "POST"): ("v1/chat/completions",),
}
# A path prefix of a gateway may stand before it. Neither empty nor dot segments, escapes, ';' or '\': proxies and
# servers read those differently, and what looks like /metrics here could be another route there.
_SEGMENT = r"/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~:!$&'()*+,=-]+"
_ALLOWED = {
    key: re.compile(f"(?:{_SEGMENT})*/(?:{'|'.join(map(re.escape, tails))})/?") for key, tails in _TAILS.items()
}


# Engines' routes take no query: there a query is a switch (SGLang's profiler), or a place for keys.
_QUERIED = re.compile(r".*/api/v1/(?:query|targets|rules|label/__name__/values)")
_QUERY = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*")


def refusal(purpose: Purpose, method: str, path: str, query: str = "") -> Failure | None:
    """Why this request is not sent, or None when it may be. path: without query. query: encoded."""
    pattern = _ALLOWED.get((purpose, method))
    asked = not query or (_QUERIED.fullmatch(path) is not None and _QUERY.fullmatch(query) is not None)
    if pattern is not None and pattern.fullmatch(path) and asked:
        return None
    return Failure(
        FailureReason.NOT_ALLOWED, f"{clean(method, 20)} {clean(path, 120)} is not on the list for a {purpose.value}"
    )
