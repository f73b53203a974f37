"""What a failed question to a monitoring server means, and what mends it."""

import re

from triage.domain.monitoring import MonitoringTrouble, Trouble
from triage.domain.target import Failure, FailureReason

# Prometheus: "exceeded maximum resolution of 11,000 points", "query processing would load too many samples into
# memory"; Mimir: "the query exceeded the maximum number of chunks / series"; VictoriaMetrics: "... -search.max...".
_TOO_MUCH = re.compile(
    r"maximum resolution|too many|maximum number|max(?:imum)?[ .-]?(?:samples|series|points)|-search\.max", re.I
)
_QUERY_TIME = re.compile(r"query timed out|context deadline exceeded|timeout", re.I)
_NARROW = "narrow it with matchers under [prometheus] (a namespace, a cluster)"
_ADDRESS = "give the URL under which /api/v1/query answers, with its path (often /prometheus, or /select/0/prometheus)"
# A failure on the way, not of the question: the next question would wait for it again.
_ON_THE_WAY = frozenset(
    {
        FailureReason.REFUSED,
        FailureReason.TIMEOUT,
        FailureReason.DNS,
        FailureReason.TLS,
        FailureReason.UNAUTHORIZED,
        FailureReason.CREDENTIAL,
        FailureReason.DISCONNECTED,
        FailureReason.NOT_ALLOWED,
        FailureReason.REDIRECT,
    }
)
_TODO = {
    FailureReason.REFUSED: "check host and port, or open the port-forward",
    FailureReason.TIMEOUT: f"{_NARROW}, or raise timeout_s there",
    FailureReason.DNS: "check the host name",
    FailureReason.TLS: "name its CA as ca under [prometheus]",
    FailureReason.UNAUTHORIZED: "name a token under [prometheus]: key_env, key_file or key_command",
    FailureReason.FORBIDDEN: "the token is known and may not read this: ask for a role that may query",
    FailureReason.CREDENTIAL: "mend the reference under [prometheus]",
    FailureReason.REDIRECT: "give the address it redirects to, or log in with a token: a login page cannot be read",
    FailureReason.SERVER_ERROR: "ask it by hand: it may be overloaded or still reading its log",
}


def trouble_of(failure: Failure) -> MonitoringTrouble:
    said = str(failure)
    if failure.reason is FailureReason.TOO_LARGE or (failure.status and _TOO_MUCH.search(failure.detail)):
        return MonitoringTrouble(Trouble.TOO_MANY_POINTS, said, _NARROW)
    if failure.reason in (FailureReason.NOT_FOUND, FailureReason.NOT_METRICS):
        return MonitoringTrouble(Trouble.WRONG_SERVER, said, _ADDRESS)
    if failure.status and _QUERY_TIME.search(failure.detail):
        return MonitoringTrouble(Trouble.UNREADABLE, said, _TODO[FailureReason.TIMEOUT])
    return MonitoringTrouble(Trouble.UNREADABLE, said, _TODO.get(failure.reason, ""))


def is_on_the_way(trouble: MonitoringTrouble) -> bool:
    """Nothing else needs to be asked now."""
    return trouble.trouble is Trouble.UNREADABLE and trouble.says.startswith(tuple(r.value for r in _ON_THE_WAY))


def scrape_failure(error: str) -> Failure:
    """The reason behind a scrape target's `lastError`, as if the page had been read from here."""
    lowered = error.lower()
    status = re.search(r"http status (\d{3})", lowered)
    if status is not None:
        code = int(status[1])
        reason = {
            401: FailureReason.UNAUTHORIZED,
            403: FailureReason.FORBIDDEN,
            404: FailureReason.NOT_FOUND,
        }.get(code, FailureReason.SERVER_ERROR if code >= 500 else FailureReason.CLIENT_ERROR)
        return Failure(reason, f"monitoring says: {error}", code)
    for words, reason in (
        (("connection refused",), FailureReason.REFUSED),
        (("deadline exceeded", "timeout", "timed out"), FailureReason.TIMEOUT),
        (("no such host", "server misbehaving"), FailureReason.DNS),
        (("x509", "tls", "certificate"), FailureReason.TLS),
        (("connection reset", "eof", "broken pipe"), FailureReason.DISCONNECTED),
        (("sample limit", "body size limit"), FailureReason.TOO_LARGE),
        (("start token", "content-type", "invalid", "parse", "expected"), FailureReason.NOT_METRICS),
    ):
        if any(word in lowered for word in words):
            return Failure(reason, f"monitoring says: {error}")
    return Failure(FailureReason.BAD_ANSWER, f"monitoring says: {error or 'down, and not why'}")
