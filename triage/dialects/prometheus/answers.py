"""Answers of Prometheus's API that are no series: the envelope, scrape targets, alerts and their rules."""

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from triage.domain.situation import Alert, MonitoredTarget
from triage.domain.text import clean

# "0001-01-01T00:00:00Z" stands for never; everything before this is that.
_EPOCH_YEAR = 1971
_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# Of one server's alerts; a storm of them says no more than its first hundreds.
_MOST_ALERTS = 500


class NotPrometheusError(ValueError):
    """The answer is not one of this API. The text says what it is."""


class Envelope(NamedTuple):
    """data: of a successful answer. warnings: what is wrong with it (a store that failed, say). infos: hints."""

    data: Any
    warnings: tuple[str, ...]
    infos: tuple[str, ...]


class ScrapeTarget(NamedTuple):
    """An active target. labels: those that its series carry. every_s: scrape interval, None where it is not said.

    scraped_at: unix seconds of the last try, None for never.
    """

    seen: MonitoredTarget
    labels: dict[str, str]
    every_s: float | None
    scraped_at: float | None

    @property
    def address(self) -> str:
        """The `instance` label."""
        return self.labels.get("instance", "")

    @property
    def key(self) -> tuple[str, str]:
        """(job, instance), which its series carry as well."""
        return self.labels.get("job", ""), self.address


def opened(body: bytes) -> Envelope:
    """NotPrometheusError for what is no answer of this API."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        kind = "an HTML page" if body.lstrip()[:1] == b"<" else "no JSON"
        raise NotPrometheusError(f"it answers with {kind}") from None
    if not isinstance(data, dict) or data.get("status") != "success" or "data" not in data:
        raise NotPrometheusError("it answers with JSON of another kind")
    return Envelope(data["data"], _texts(data.get("warnings")), _texts(data.get("infos")))


def unwrapped(data: Any) -> Any:
    """The data of an answer, whether the envelope is still around it or not."""
    if isinstance(data, dict) and isinstance(data.get("data"), dict | list) and "status" in data:
        return data["data"]
    return data


def read_targets(data: Any, source: str) -> list[ScrapeTarget]:
    """Active targets of /api/v1/targets, or of a bare list. ValueError for anything else."""
    data = unwrapped(data)
    items = data.get("activeTargets") if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise ValueError("no list 'activeTargets' in it")
    return [_target(item, source) for item in _objects(items)]


def read_dropped(data: Any, source: str) -> list[MonitoredTarget]:
    """Targets that service discovery finds and relabelling drops."""
    data = unwrapped(data)
    items = data.get("droppedTargets") if isinstance(data, dict) else None
    found = []
    for item in items if isinstance(items, list) else ():
        labels = _strings(item.get("discoveredLabels")) if isinstance(item, dict) else {}
        address = labels.get("__address__", "")
        scheme, path = labels.get("__scheme__", "http"), labels.get("__metrics_path__", "/metrics")
        found.append(
            MonitoredTarget(
                source,
                clean(labels.get("job", ""), 200),
                clean(f"{scheme}://{address}{path}", 400),
                "dropped",
                "its relabelling rules drop it",
            )
        )
    return found


def read_alerts(data: Any, source: str) -> list[Alert]:
    """/api/v1/alerts, /api/v1/rules (with the alerts under their rules), or a bare list of alerts."""
    data = unwrapped(data)
    if isinstance(data, dict) and isinstance(data.get("groups"), list):
        rules = [rule for group in _objects(data["groups"]) for rule in _objects(group.get("rules") or [])]
        found = [
            _alert(item, source, _text(rule.get("name")), _text(rule.get("query")))
            for rule in rules
            for item in _objects(rule.get("alerts") or [])
        ]
        return found[:_MOST_ALERTS]
    items = data.get("alerts") if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise ValueError("no list 'alerts' in it")
    return [_alert(item, source) for item in _objects(items)][:_MOST_ALERTS]


def read_broken_rules(data: Any) -> list[tuple[str, str]]:
    """('Name: reason', expression) of the rules that cannot be evaluated: what they should say will never be said."""
    data = unwrapped(data)
    groups = data.get("groups") if isinstance(data, dict) else None
    rules = [rule for group in _objects(groups or []) for rule in _objects(group.get("rules") or [])]
    return [
        (
            clean(f"{_text(rule.get('name'))}: {_text(rule.get('lastError')) or 'no reason given'}", 300),
            _text(rule.get("query")),
        )
        for rule in rules
        if rule.get("health") == "err"
    ]


def moment(value: Any) -> float | None:
    """ISO 8601 with a zone, to nanoseconds, as unix seconds; None for never and for anything else."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed.timestamp() if parsed.tzinfo and parsed.year >= _EPOCH_YEAR else None


def duration(value: Any) -> float | None:
    """'1m30s' in seconds; None for anything else."""
    if not isinstance(value, str) or not value or not value[0].isdigit():
        return None
    total, number = 0.0, ""
    parts = value.replace("ms", "µ")
    for letter in parts:
        if letter.isascii() and (letter.isdigit() or letter == "."):
            number += letter
            continue
        unit = _UNITS.get("ms" if letter == "µ" else letter)
        if unit is None or not number or number.count(".") > 1 or number == ".":
            return None
        total, number = total + float(number) * unit, ""
    return total if not number and 0 < total < math.inf else None


def _target(item: dict[str, Any], source: str) -> ScrapeTarget:
    labels = _strings(item.get("labels"))
    seen = MonitoredTarget(
        source=source,
        job=clean(labels.get("job") or _text(item.get("scrapePool")), 200),
        url=_text(item.get("scrapeUrl")) or clean(labels.get("instance", ""), 400),
        health=_text(item.get("health")) or "unknown",
        error=_text(item.get("lastError")),
    )
    return ScrapeTarget(seen, labels, duration(item.get("scrapeInterval")), moment(item.get("lastScrape")))


def _alert(item: dict[str, Any], source: str, name: str = "", expression: str = "") -> Alert:
    labels, notes = _strings(item.get("labels")), _strings(item.get("annotations"))
    return Alert(
        source=source,
        name=clean(labels.pop("alertname", "") or name or "unnamed", 200),
        state=_text(item.get("state")) or "firing",
        since=moment(item.get("activeAt") or item.get("startsAt")),
        labels=tuple((clean(key, 100), clean(value, 200)) for key, value in list(labels.items())[:30]),
        summary=clean(notes.get("summary") or notes.get("description") or notes.get("message") or "", 300),
        expression=expression or clean(notes.get("expr", ""), 300),
    )


def _objects(items: Any) -> Iterable[dict[str, Any]]:
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError("expected a list of objects")
    return items


def _strings(value: Any) -> dict[str, str]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {key: text for key, text in pairs if isinstance(key, str) and isinstance(text, str)}


def _text(value: Any) -> str:
    return clean(value, 400) if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    items = value[:5] if isinstance(value, list) else ()
    return tuple(clean(text, 300) for text in items if isinstance(text, str))
