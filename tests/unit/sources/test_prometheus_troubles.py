"""A failure, or a scrape target's last error, as a reason and what mends it."""

import pytest

from triage.domain.monitoring import Trouble
from triage.domain.target import Failure, FailureReason
from triage.sources.prometheus_troubles import is_on_the_way, scrape_failure, trouble_of


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ('Get "http://h:1/metrics": dial tcp 10.0.0.1:1: connect: connection refused', FailureReason.REFUSED),
        ('Get "http://h:1/metrics": context deadline exceeded', FailureReason.TIMEOUT),
        ('Get "http://h:1/metrics": dial tcp: lookup h: no such host', FailureReason.DNS),
        ('Get "https://h:1/metrics": x509: certificate signed by unknown authority', FailureReason.TLS),
        ('Get "http://h:1/metrics": read tcp: connection reset by peer', FailureReason.DISCONNECTED),
        ("server returned HTTP status 404 Not Found", FailureReason.NOT_FOUND),
        ("server returned HTTP status 401 Unauthorized", FailureReason.UNAUTHORIZED),
        ("server returned HTTP status 403 Forbidden", FailureReason.FORBIDDEN),
        ("server returned HTTP status 500 Internal Server Error", FailureReason.SERVER_ERROR),
        ("server returned HTTP status 418 I'm a teapot", FailureReason.CLIENT_ERROR),
        ("sample limit exceeded", FailureReason.TOO_LARGE),
        ('expected a valid start token, got "<" ("INVALID") while parsing: "<"', FailureReason.NOT_METRICS),
        ("something that no release said before", FailureReason.BAD_ANSWER),
        ("", FailureReason.BAD_ANSWER),
    ],
)
def test_a_targets_last_error(error: str, reason: FailureReason) -> None:
    found = scrape_failure(error)
    assert found.reason is reason
    assert found.detail.startswith("monitoring says: ")


@pytest.mark.parametrize("reason", FailureReason)
def test_every_failure_has_a_trouble_and_says_its_reason(reason: FailureReason) -> None:
    found = trouble_of(Failure(reason, "what was said"))
    assert reason.value in str(found)
    assert found.blind
    if reason in (FailureReason.TIMEOUT, FailureReason.TLS, FailureReason.REFUSED):
        assert is_on_the_way(found), "no further question is asked"
    if reason in (FailureReason.SERVER_ERROR, FailureReason.TOO_LARGE, FailureReason.FORBIDDEN):
        assert not is_on_the_way(found), "another question may be answered"


@pytest.mark.parametrize(
    "said",
    [
        "exceeded maximum resolution of 11,000 points per timeseries",
        "query processing would load too many samples into memory in query execution",
        "the query exceeded the maximum number of chunks (limit: 2000000 chunks)",
        "cannot process more than -search.maxUniqueTimeseries=300000 time series",
        "too many series found",
    ],
)
def test_too_many_points_in_each_servers_words(said: str) -> None:
    found = trouble_of(Failure(FailureReason.CLIENT_ERROR, f"422: {said}", 422))
    assert found.trouble is Trouble.TOO_MANY_POINTS
    assert "matchers" in found.todo
