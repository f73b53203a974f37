"""What wakes somebody up: alerts, and what users say. Symptoms, never causes."""

import math
from collections.abc import Sequence

from triage.domain.situation import Alert
from triage.lab.account.ledger import Ledger
from triage.lab.account.truth import Objectives

# Part of all answers from which users begin to write to the help desk.
_FELT = 0.05


def page_text(model: str, alerts: Sequence[Alert], now: Ledger, objectives: Objectives) -> str:
    """Lines of text. now: the last minute of the service."""
    fired = [f"ALERT {alert.name}: {alert.summary}" for alert in alerts if ("model", model) in alert.labels]
    said = [f"Users of {model} say: {words}." for words in _complaints(now, objectives)]
    quiet = [] if fired or said else [f"No alert. You are asked whether all is well with {model}."]
    return "\n".join([*fired, *said, *quiet])


def _complaints(now: Ledger, objectives: Objectives) -> list[str]:
    found = []
    if now.share(now.blank) > _FELT:
        found.append("answers come back empty")
    if now.tool_calls and now.unparsed / now.tool_calls > _FELT:
        found.append("the assistant prints its tool calls as text and does nothing")
    if now.share(now.cut) > _FELT:
        found.append("answers stop in the middle of a sentence")
    if now.share(now.refused) > _FELT:
        found.append("requests that worked yesterday are refused")
    if now.share(now.failed) > _FELT:
        found.append("there are error messages in place of answers")
    if not math.isnan(now.first_p95) and now.first_p95 > objectives.first_visible_p95_s:
        found.append("for a long time nothing appears")
    if not math.isnan(now.per_token) and now.per_token > objectives.time_per_token_mean_s:
        found.append("the text crawls")
    return found
