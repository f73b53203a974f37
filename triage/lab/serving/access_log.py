"""The gateway's access log: one JSON line for each request, with the fields of an Envoy that logs what it can."""

import math
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from triage.lab.world.call import Call, Outcome

# Field by field, what Envoy is told to write; the small proxy writes the same.
ENVOY_FORMAT: dict[str, str] = {
    "start_time": "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
    "method": "%REQ(:METHOD)%",
    "path": "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
    "protocol": "%PROTOCOL%",
    "authority": "%REQ(:AUTHORITY)%",
    "response_code": "%RESPONSE_CODE%",
    "response_code_details": "%RESPONSE_CODE_DETAILS%",
    "response_flags": "%RESPONSE_FLAGS%",
    "bytes_received": "%BYTES_RECEIVED%",
    "bytes_sent": "%BYTES_SENT%",
    "duration": "%DURATION%",
    "request_duration": "%REQUEST_DURATION%",
    "response_duration": "%RESPONSE_DURATION%",
    "response_tx_duration": "%RESPONSE_TX_DURATION%",
    "upstream_host": "%UPSTREAM_HOST%",
    "upstream_cluster": "%UPSTREAM_CLUSTER%",
    "upstream_request_attempt_count": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
    "route_name": "%ROUTE_NAME%",
    "request_id": "%REQ(X-REQUEST-ID)%",
    "user_agent": "%REQ(USER-AGENT)%",
    "x_client": "%REQ(X-CLIENT)%",
    "x_forwarded_for": "%REQ(X-FORWARDED-FOR)%",
}
# About what one streamed token takes on the wire, and one token of a prompt.
_TOKEN_BYTES = 190
_PROMPT_BYTES = 4
_ERROR_BYTES = 150
_PATH = "/v1/chat/completions"
NO_KEY = "Client authentication failed."
# What Envoy answers itself, by the beginning of its details (recorded with 1.40).
_BODIES = {
    "missing_api_key": NO_KEY,
    "no_healthy_upstream": "no healthy upstream",
    "response_timeout": "upstream request timeout",
    "upstream_per_try_timeout": "upstream request timeout",
    "stream_idle_timeout": "stream timeout",
}
_RESET = "upstream connect error or disconnect/reset before headers"
_VIA_UPSTREAM = "via_upstream"
# The file starts anew beyond this: the lab may run for days.
_LONGEST = 64 * 1024 * 1024


class AccessLog:
    """Appends to a file that Envoy may write to as well. hosts: address by replica. zero: unix seconds."""

    def __init__(self, path: Path, zero: float) -> None:
        self.path = path
        self.hosts: Mapping[str, str] = {}
        self._zero = zero
        self._file: BinaryIO = path.open("ab", buffering=0)
        self._written = 0

    def write(self, call: Call) -> None:
        """Nothing of a call that a real gateway has logged."""
        if call.carried:
            return
        line = msgspec.json.encode(line_of(call, self._zero, self.hosts)) + b"\n"
        self._written += len(line)
        if self._written > _LONGEST:
            self._file.truncate(0)
            self._written = len(line)
        self._file.write(line)

    def close(self) -> None:
        self._file.close()


def line_of(call: Call, zero: float, hosts: Mapping[str, str]) -> dict[str, Any]:
    """What Envoy would have written of a call that is over; durations in milliseconds, null where nothing came."""
    answered = call.status >= 400 and call.details == _VIA_UPSTREAM  # with an error of the engine
    first = call.ended if answered else call.first_byte
    begun = not math.isnan(first)
    whole = call.outcome is Outcome.COMPLETE or (call.status >= 400 and call.outcome is not Outcome.LEFT)
    tokens = call.answer.counted if call.answer is not None and begun else 0
    last = call.attempts[-1] if call.attempts else None
    return {
        "start_time": datetime.fromtimestamp(zero + call.sent, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
        "method": "POST",
        "path": _PATH,
        "protocol": "HTTP/1.1",
        "authority": f"{call.model}.lab.test",
        "response_code": call.status,
        "response_code_details": call.details,
        "response_flags": call.flags or "-",
        "bytes_received": call.request.prompt_tokens * _PROMPT_BYTES if call.attempts else 0,
        "bytes_sent": _ERROR_BYTES if answered else tokens * _TOKEN_BYTES if begun else len(own_body(call)),
        "duration": _ms(call.ended - call.sent),
        "request_duration": 0,
        "response_duration": _ms(first - call.sent) if begun else None,
        "response_tx_duration": _ms(call.ended - first) if begun and whole else None,
        "upstream_host": hosts.get(last.replica) if last is not None else None,
        "upstream_cluster": call.model,
        "upstream_request_attempt_count": len(call.attempts) + (call.details == "no_healthy_upstream"),
        "route_name": call.model,
        "request_id": f"{zlib.crc32(f'{call.session}/{call.sent}'.encode()):08x}",
        "user_agent": "lab-client/1",
        "x_client": call.identity or None,
        "x_forwarded_for": "127.0.0.1",
    }


def own_body(call: Call) -> str:
    """What the gateway says in place of an answer."""
    return "" if call.status < 400 else _BODIES.get(call.details, _RESET)


def _ms(seconds: float) -> int | None:
    return None if math.isnan(seconds) else round(1000 * seconds)
