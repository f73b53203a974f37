"""What pages somebody: rules over the gateway's own counters, which know statuses and times and no causes."""

import math
from collections.abc import Iterable

from triage.domain.situation import Alert
from triage.lab.account.truth import Objectives
from triage.lab.world.call import Call, Outcome
from triage.lab.world.service import Service

SOURCE = "gateway rules"
# The rules look back so far, as `rate(…[1m])`.
_SPAN_S = 60.0
# Parts of all requests above which a rule fires, and requests that it takes at least.
_ERRORS = 0.02
_REFUSALS = 0.05
_RESETS = 0.05
_FEW = 3


def firing(service: Service, objectives: Objectives, now: float, zero: float) -> tuple[Alert, ...]:
    """Alerts of one service. now: virtual seconds; zero: the unix seconds at which they begin."""
    over = [call for call in service.calls if call.ended >= now - _SPAN_S]
    begun = [_until_byte(call, now) for call in (*over, *service.open_calls.values())]
    p95 = sorted(begun)[math.ceil(0.95 * len(begun)) - 1] if begun else 0.0
    reset = [call.outcome in (Outcome.CUT, Outcome.LEFT) for call in over]
    found = [
        _share("GatewayErrors", "answered with 5xx", [call.status >= 500 for call in over], _ERRORS),
        _share("GatewayRefusals", "refused with 4xx", [400 <= call.status < 500 for call in over], _REFUSALS),
        _share("GatewayResets", "ended by a reset or by the client", reset, _RESETS),
        f"AnswersBeginLate: p95 of the time to the first byte is {p95:.1f} s"
        if p95 > objectives.first_visible_p95_s and len(begun) >= _FEW
        else "",
    ]
    return tuple([_alert(said, service.model, zero + now) for said in found if said])


def _share(name: str, words: str, hits: Iterable[bool], limit: float) -> str:
    counted = list(hits)
    number = sum(counted)
    if number < _FEW or number <= limit * len(counted):
        return ""
    return f"{name}: {100 * number / len(counted):.0f} % of requests {words}"


def _until_byte(call: Call, now: float) -> float:
    if not math.isnan(call.first_byte):
        return call.first_byte - call.sent
    return (now if call.open else call.ended) - call.sent


def _alert(said: str, model: str, at: float) -> Alert:
    name, _, words = said.partition(": ")
    return Alert(SOURCE, name, "firing", since=at, labels=(("model", model),), summary=words)
