"""What others say: alerts and scrape targets of a monitoring server. Not our judgement, but worth its line."""

from collections import Counter

from triage.domain.situation import Alert, Situation
from triage.report.times import iso

# Of one report; a storm has more, and the first ones tell what it is about.
_MOST_LINES = 8


def others_say(situation: Situation) -> list[str]:
    """One line for each alert's name and state, and one for each server's targets."""
    lines = [_alert(name, state, alerts) for (name, state), alerts in _grouped(situation).items()]
    more = len(lines) - _MOST_LINES
    shown = [*lines[:_MOST_LINES], f"{more} more kinds of alert"] if more > 0 else lines
    return shown + _targets(situation)


def _grouped(situation: Situation) -> dict[tuple[str, str], list[Alert]]:
    """Firing ones first, then by name."""
    groups: dict[tuple[str, str], list[Alert]] = {}
    for alert in sorted(situation.alerts, key=lambda one: (one.state != "firing", one.name)):
        groups.setdefault((alert.name, alert.state), []).append(alert)
    return groups


def _alert(name: str, state: str, alerts: list[Alert]) -> str:
    first = alerts[0]
    times = [alert.since for alert in alerts if alert.since is not None]
    since = f" since {iso(min(times))}" if times else ""
    shared = [pair for pair in first.labels if all(pair in alert.labels for alert in alerts)]
    where = ", ".join(f"{label}={value}" for label, value in shared[:4])
    count = f" × {len(alerts)}" if len(alerts) > 1 else ""
    said = first.summary or first.expression
    return f"alert {name} is {state}{count}{since}" + (f" ({where})" if where else "") + (f": {said}" if said else "")


def _targets(situation: Situation) -> list[str]:
    lines = []
    for source in dict.fromkeys(target.source for target in situation.monitored):
        own = [target for target in situation.monitored if target.source == source]
        health = Counter(target.health for target in own)
        counts = ", ".join(f"{number} {word}" for word, number in sorted(health.items(), key=lambda pair: -pair[1]))
        bad = next((target for target in own if target.health == "down"), None)
        why = f"; {bad.url or bad.job}: {bad.error or 'no reason given'}" if bad is not None else ""
        lines.append(f"{source}: {len(own)} scrape targets, {counts}{why}")
    return lines
