"""The session that a library gets: whatever it mounts or sends, the gate's rules hold."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import requests

from triage.domain.target import FailureReason
from triage.gate import Access, Gate
from triage.gate.allow import Purpose, refusal
from triage.gate.session import GateError, GateSession


async def refused(ask: Callable[[GateSession], Any]) -> FailureReason:
    """Port 1 refuses: what gets that far would have been sent."""
    gate = Gate(transcript=10)
    session = GateSession(gate.client(Access("http://127.0.0.1:1")), asyncio.get_running_loop(), lambda body: body)
    session.mount("http://127.0.0.1:1", requests.adapters.HTTPAdapter())
    with pytest.raises(GateError) as caught:
        await asyncio.to_thread(ask, session)
    session.close()
    assert len(gate.transcript) == (caught.value.failure.reason is FailureReason.REFUSED)
    await gate.close()
    return caught.value.failure.reason


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.post("http://127.0.0.1:1/api/v1/query", data={"query": "up"}),
        lambda session: session.get("http://127.0.0.1:1/api/v1/query", data={"query": "up"}),
        lambda session: session.delete("http://127.0.0.1:1/api/v1/query"),
        lambda session: session.get("http://127.0.0.1:1/api/v1/admin/tsdb/snapshot"),
        lambda session: session.get("http://127.0.0.1:1/-/reload"),
        lambda session: session.get("http://127.0.0.1:1/flush_cache", params={"timeout": "1"}),
        lambda session: session.get("http://127.0.0.1:1/metrics", params={"name": "x"}),
    ],
)
async def test_what_is_not_on_the_list_is_not_sent(ask: Callable[[GateSession], Any]) -> None:
    assert await refused(ask) is FailureReason.NOT_ALLOWED


async def test_a_question_is_sent_to_the_clients_own_address_alone() -> None:
    """Also where the library was talked into another one."""
    for url in ("http://127.0.0.1:1/api/v1/query", "http://elsewhere.test/api/v1/query"):
        assert await refused(lambda session, url=url: session.get(url, params={"query": "up"})) is FailureReason.REFUSED


@pytest.mark.parametrize("path", ["/api/v1/query", "/prometheus/api/v1/targets", "/api/v1/label/__name__/values"])
def test_questions_may_have_parameters_and_engines_routes_none(path: str) -> None:
    assert refusal(Purpose.READ, "GET", path, "query=up%7Ba%3D%22b%22%7D&time=1.5") is None
    assert refusal(Purpose.READ, "GET", path, "query=up x") is not None
    assert refusal(Purpose.READ, "GET", path, "query=up\r\nX-Y: z") is not None
    assert refusal(Purpose.READ, "GET", "/v1/models", "a=b") is not None


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/admin/tsdb/delete_series",
        "/api/v1/write",
        "/api/v1/label/job/values",
        "/api/v1/query/../admin",
        "/-/quit",
        "/api/v1/import",
        "/api/v1/query_exemplars",
    ],
)
def test_routes_that_change_or_are_not_needed_stay_closed(path: str) -> None:
    assert refusal(Purpose.READ, "GET", path) is not None
