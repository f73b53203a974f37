"""One line of the gateway's access log for each way in which a call ends, against what a real Envoy wrote."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.lab.conftest import RECORDINGS
from triage.lab.batching.request import Request
from triage.lab.fleets import workload_named
from triage.lab.serving.access_log import ENVOY_FORMAT, AccessLog, line_of
from triage.lab.world.call import Call
from triage.lab.world.hop import Hop
from triage.lab.world.service import Service
from triage.lab.world.world import World

ZERO = 1_764_800_000.0
HOSTS = {"chat-a": "127.0.0.1:18000"}
# What the recorded Envoy 1.40.0 was told to write.
RECORDED_FIELDS = frozenset(
    {
        "authority",
        "bytes_received",
        "bytes_sent",
        "connection_termination_details",
        "downstream_close_type",
        "downstream_remote_address",
        "duration",
        "grpc_status",
        "method",
        "path",
        "protocol",
        "request_duration",
        "request_id",
        "request_tx_duration",
        "response_code",
        "response_code_details",
        "response_duration",
        "response_flags",
        "response_flags_long",
        "response_tx_duration",
        "route_name",
        "start_time",
        "upstream_cluster",
        "upstream_host",
        "upstream_request_attempt_count",
        "upstream_reset_reason",
        "upstream_transport_failure_reason",
        "user_agent",
        "x_forwarded_for",
        "x_team",
    }
)


class Way:
    """One call on its way to one engine, with nobody else about."""

    def __init__(self, **hop: Any) -> None:
        spec = workload_named("chat").services[0]
        spec = msgspec.structs.replace(spec, users=0, replicas=spec.replicas[:1], hop=Hop(**hop))
        self.world = World([spec], "log", ZERO)
        self.service: Service = self.world.services[0]
        self.call = Call(spec.model, "user-0", "session", Request(800, 200, 1000), 0.0)
        self.call.identity = "user-0"

    def line(self, until: float = 30.0) -> dict[str, Any]:
        self.call.sent = self.world.now
        self.service.send(self.call, self.world.now)
        self.world.advance(until)
        assert not self.call.open
        return line_of(self.call, ZERO, HOSTS)

    def halted(self, moment: float) -> "Way":
        self.world.timeline.at(moment, self.world.replicas[0].engine.halt)
        return self

    def killed(self, moment: float) -> "Way":
        self.world.timeline.at(moment, lambda now: self.world.replicas[0].exit(now, 137, "Error"))
        return self

    def leaving(self, moment: float) -> "Way":
        self.call.walks_off_at = moment
        return self


def keyless() -> Way:
    way = Way()
    way.call.identity = ""
    return way


def down(**hop: Any) -> Way:
    way = Way(**hop)
    way.world.replicas[0].exit(0.0, 137, "Error")
    return way


def broken(**hop: Any) -> Way:
    way = Way(**hop)
    way.world.replicas[0].lose_core(0.0, ())
    return way


def recorded(name: str) -> dict[str, Any]:
    lines = (RECORDINGS / "envoy" / "access.log").read_text().splitlines()
    found: dict[str, Any] = next(line for line in map(json.loads, lines) if line["request_id"] == name)
    return found


def as_recorded(name: str, way: Callable[[], Way]) -> Any:
    return pytest.param(name, way, id=name)


def test_the_fields_are_those_of_the_recorded_envoy_but_for_the_clients_name() -> None:
    line = Way().line()
    assert line.keys() - RECORDED_FIELDS == {"x_client"}
    assert line.keys() == ENVOY_FORMAT.keys()


@pytest.mark.parametrize(
    ("name", "way"),
    [
        as_recorded("ok-stream", Way),
        as_recorded("a1-route-timeout-after-200", lambda: Way(timeout_s=2.0)),
        as_recorded("a2-route-timeout-before-headers", lambda: Way(timeout_s=0.02)),
        as_recorded("b1-route-idle-timeout-mid-stream", lambda: Way(idle_s=1.0).halted(1.0)),
        as_recorded("b2-route-idle-4imeout-before-headers", lambda: Way(idle_s=1.0).halted(0.0)),
        as_recorded("c5-engine-sigkill-mid-stream", lambda: Way().killed(1.0)),
        as_recorded("c6-engine-sigkill-before-headers", lambda: Way(retries=0).killed(0.02)),
        as_recorded("d1-connection-refused", lambda: down(retries=0)),
        as_recorded("d2-connection-refused-with-retries", lambda: down(retries=2)),
        as_recorded("d3-no-endpoints", lambda: Way(unlisted=frozenset({"chat-a"}))),
        as_recorded("e1-client-disconnect-mid-stream", lambda: Way().leaving(1.0)),
        as_recorded("e2-client-disconnect-before-headers", lambda: Way().leaving(0.02)),
        as_recorded("f1-api-key-missing", keyless),
        as_recorded("h1-retry-then-success", lambda: Way(ghosts=1)),
        as_recorded("h3-per-try-timeout-exhausted", lambda: Way(per_try_s=0.02, retries=2)),
        as_recorded("j3-upstream-500", lambda: broken(retries=0)),
    ],
)
def test_a_call_that_ends_in_this_way_is_logged_as_the_real_envoy_logged_it(name: str, way: Callable[[], Way]) -> None:
    line, real = way().line(), recorded(name)
    for field in ("response_code", "response_flags", "upstream_request_attempt_count"):
        assert line[field] == real[field], field
    assert line["response_code_details"].partition("{")[0] == real["response_code_details"].partition("{")[0]
    for field in ("response_duration", "response_tx_duration", "upstream_host"):
        assert (line[field] is None) is (real[field] is None), field


@pytest.mark.parametrize(
    ("name", "way"), [("f1-api-key-missing", keyless), ("a2-route-timeout-before-headers", lambda: Way(timeout_s=0.02))]
)
def test_bodies_of_denied_calls_and_errors_count_as_in_the_real_log(name: str, way: Callable[[], Way]) -> None:
    line, real = way().line(), recorded(name)
    for field in ("bytes_received", "bytes_sent"):
        assert (line[field] > 0) is (real[field] > 0), field


def test_times_are_milliseconds_of_the_call() -> None:
    way = Way()
    way.world.advance(2.5)
    line, call = way.line(), way.call
    assert line["start_time"] == "2025-12-03T22:13:22.500Z"
    assert line["duration"] == pytest.approx(1000 * (call.ended - 2.5), abs=1)
    assert line["response_duration"] + line["response_tx_duration"] == pytest.approx(line["duration"], abs=2)
    assert 50 < line["response_duration"] < 1000 < line["response_tx_duration"]


def test_a_line_tells_who_asked_whom_for_how_much() -> None:
    line, longer = Way().line(), Way()
    longer.call.request = msgspec.structs.replace(longer.call.request, visible_tokens=400, prompt_tokens=1600)
    assert (line["x_client"], line["route_name"], line["upstream_host"]) == (
        "user-0",
        "llama-3.1-8b",
        "127.0.0.1:18000",
    )
    assert keyless().line()["x_client"] is None
    twice = longer.line()
    assert [twice[field] / line[field] for field in ("bytes_received", "bytes_sent")] == [2.0, 2.0]


def test_what_the_gateway_held_back_comes_all_at_once() -> None:
    line = Way(holds=True).line()
    assert (line["response_code"], line["response_duration"], line["response_tx_duration"]) == (
        200,
        line["duration"],
        0,
    )


def test_each_call_is_a_line_of_json_in_the_file(tmp_path: Path) -> None:
    way = Way()
    log = AccessLog(tmp_path / "access.log", ZERO)
    log.hosts = HOSTS
    way.service.heard.append(log.write)
    line = way.line()
    log.write(way.call)
    log.close()
    assert [json.loads(text) for text in log.path.read_text().splitlines()] == [line, line]


@pytest.mark.parametrize("moment", [100.0, 126.41701974314164])
def test_a_silent_call_ends_at_its_limit_whenever_it_began(moment: float) -> None:
    way = Way(idle_s=60.0, timeout_s=None).halted(0.0)
    way.world.advance(moment)
    way.service.send(way.call, moment)
    for _ in range(1000):
        if way.call.open:
            way.world.timeline.proceed()
    assert (way.call.open, way.call.flags) == (False, "SI")
    assert way.call.ended == pytest.approx(moment + 60.0)
