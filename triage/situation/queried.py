"""Answers of a Prometheus that a person saved: series back to the pages they were scraped from."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from triage.dialects.pages import read_page
from triage.dialects.prometheus.answers import unwrapped
from triage.dialects.prometheus.samples import instances_of, named
from triage.domain.reading import PageReading
from triage.domain.situation import Alert
from triage.domain.target import Target

# Queries typed one after the other show one moment; an instant answer has no finer time than that anyway.
_ONE_MOMENT_S = 60.0


class QueriedPage(NamedTuple):
    """at: unix seconds."""

    target: str
    at: float
    page: PageReading


def series_in(data: Any) -> list[dict[str, Any]]:
    """Named series of an answer of /api/v1/query or /api/v1/query_range; instant values as one sample each.

    ValueError for other JSON, and for an expression's answer: a rate or a sum has lost the name of what it is.
    """
    data = unwrapped(data)
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(result, list):
        raise ValueError("no list 'result' in it")
    found = []
    for entry in result:
        metric = entry.get("metric") if isinstance(entry, dict) else None
        if isinstance(metric, dict) and "__name__" in metric:
            value = entry.get("value")
            found.append({"metric": metric, "values": entry.get("values", [value] if value else [])})
    if result and not found:
        raise ValueError("the answer of an expression: its values have no series name")
    return found


def pages_of(answers: Iterable[Sequence[dict[str, Any]]], source: str) -> list[QueriedPage]:
    """Engine and GPU pages behind all answers together. source: what evidence calls it."""
    series = [entry for answer in answers for entry in answer]
    instances = instances_of(_at_one_moment(series), {})
    names = named([instance.place for instance in instances])
    found = []
    for instance in instances:
        target = Target(names[instance.place])
        for at, body in instance.pages:
            page = read_page(body, target, source, at)
            if page.engines or page.gpus:
                found.append(QueriedPage(target.name, at, page))
    return found


def merged(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """An alert that stands in the list and under its rule is one; the one with its rule stays."""
    by_identity: dict[object, Alert] = {}
    for alert in alerts:
        key = (alert.name, tuple(sorted(alert.labels)))
        if key not in by_identity or (alert.expression and not by_identity[key].expression):
            by_identity[key] = alert
    return tuple(by_identity.values())


def _at_one_moment(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Single samples moved to the newest of their times, where they are close together."""
    single = [entry for entry in series if _time(entry) is not None]
    times = [at for entry in single if (at := _time(entry)) is not None]
    if not times or max(times) - min(times) > _ONE_MOMENT_S:
        return series
    newest = max(times)
    return [
        {**entry, "values": [[newest, entry["values"][0][1]]]} if _time(entry) is not None else entry
        for entry in series
    ]


def _time(entry: dict[str, Any]) -> float | None:
    """When its only sample was taken; None with none or several."""
    values = entry["values"]
    if not isinstance(values, list) or len(values) != 1:
        return None
    pair = values[0]
    well = isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], int | float)
    return float(pair[0]) if well else None
