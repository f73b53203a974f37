"""The small JSON files of an evidence folder: each reader takes decoded JSON and gives facts, or raises ValueError."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from triage.dialects.prometheus.answers import read_dropped, read_targets
from triage.dialects.series import base_name
from triage.dialects.table import known_renames
from triage.domain.situation import (
    AdapterUse,
    ContainerCpu,
    DashboardQuery,
    MonitoredTarget,
    QueriedMetric,
)
from triage.domain.stream import ProbeReading
from triage.domain.text import clean
from triage.situation.bodies import read_error

_CPU_UNITS = {"m": 1e-3, "u": 1e-6, "n": 1e-9}
# A metric name in PromQL: an identifier that is no function, keyword, label or duration. Only names with
# a prefix separated by ':' or '_' come into question; labels are cut away with their braces before.
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
# Of PromQL's functions and keywords only those with an underscore can be mistaken for a metric's name.
_NOT_METRICS = frozenset(
    {
        "absent_over_time", "avg_over_time", "count_over_time", "count_values", "day_of_month", "group_left",
        "group_right", "histogram_quantile", "label_join", "label_replace", "last_over_time", "max_over_time",
        "min_over_time", "predict_linear", "present_over_time", "quantile_over_time", "sort_desc",
        "stddev_over_time", "stdvar_over_time", "sum_over_time", "histogram_avg", "histogram_count",
        "histogram_sum", "histogram_fraction", "mad_over_time", "double_exponential_smoothing", "day_of_week",
        "day_of_year", "days_in_month", "sort_by_label", "sort_by_label_desc", "clamp_max", "clamp_min",
        "holt_winters", "limit_ratio",
    }
)  # fmt: skip


def read_probes(data: Any, source: str) -> list[ProbeReading]:
    """A list of probe results; fields as in cases.md, every one optional but method and path."""
    return [_probe(item, source) for item in _objects(data)]


def _probe(item: dict[str, Any], source: str) -> ProbeReading:
    return ProbeReading(
        source=source,
        target=_text(item.get("target")),
        method=_text(item.get("method") or "GET").upper(),
        path=_text(item.get("path")),
        status=_whole(item.get("status")),
        total_s=_number(item.get("total_s")),
        first_token_s=_number(item.get("ttft_s")),
        output_tokens=_whole(item.get("output_tokens")),
        at=moment(item.get("time")),
        error=_text(item.get("error")),
        body=_said(item.get("body"), source),
        note=_text(item.get("note")),
        auth=_text(item.get("auth")),
    )


def read_containers(data: Any, source: str) -> list[ContainerCpu]:
    """cgroup CPU counters of one container, or a list of them."""
    found = []
    for item in _objects(data):
        if not any(key in item for key in ("cpu_limit", "nr_throttled", "cpu_usage_cores", "nr_periods")):
            raise ValueError("no cpu_limit, nr_throttled or cpu_usage_cores in it")
        found.append(
            ContainerCpu(
                source=source,
                name=_text(item.get("pod") or item.get("name") or item.get("container")),
                limit_cores=_cores(item.get("cpu_limit")),
                usage_cores=_number(item.get("cpu_usage_cores")),
                throttled_periods=_number(item.get("nr_throttled")),
                periods=_number(item.get("nr_periods")),
                throttled_s=_number(item.get("throttled_s")),
                interval_s=_number(item.get("interval_s")),
                node_cores=_number(item.get("node_allocatable_cores")),
                node_busy_cores=_number(item.get("node_busy_cores")),
            )
        )
    return found


def read_adapters(data: Any, source: str) -> list[AdapterUse]:
    """Slots for LoRA adapters, and lists of those that are loaded or asked for. Raises ValueError without both."""
    found = []
    for item in _objects(data):
        slots = next((n for key in ("max_loras_per_batch", "max_loras", "slots") if (n := _whole(item.get(key)))), None)
        lists = [{str(name) for name in value} for value in item.values() if isinstance(value, list)]
        if slots is None or not lists:
            raise ValueError("no number of adapter slots, or no list of adapters, in it")
        found.append(AdapterUse(source, slots, max(len(names) for names in lists)))
    return found


def read_monitored(data: Any, source: str) -> list[MonitoredTarget]:
    """An answer of Prometheus's /api/v1/targets, or a bare list of its target objects."""
    return [item.seen for item in read_targets(data, source)] + read_dropped(data, source)[:20]


def read_queries(data: Any, source: str, families: frozenset[str]) -> list[DashboardQuery]:
    """A person's PromQL expressions, bare or as {expr, answer}; families: names on the engine pages read."""
    items: list[Any] = data if isinstance(data, list) else [data]
    if isinstance(data, dict) and all(isinstance(value, str) for value in data.values()):
        items = list(data.values())
    found = []
    for item in items:
        expression, empty = item, None
        if isinstance(item, dict):
            expression = next((item[k] for k in ("expr", "query", "expression") if isinstance(item.get(k), str)), None)
            empty = _empty_answer(item)
        if not isinstance(expression, str):
            raise ValueError("an entry is neither an expression nor an object with one in 'expr' or 'query'")
        names = [_queried(name, families) for name in metrics_in(expression)]
        found.append(DashboardQuery(source, clean(expression, 300), tuple(names), empty))
    return found


def metrics_in(expression: str) -> list[str]:
    """Series names in a PromQL expression, in order, without labels, functions and durations."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", " ", expression)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    names = (name for name in _METRIC.findall(bare) if ":" in name or "_" in name)
    return list(dict.fromkeys(name for name in names if name.lower() not in _NOT_METRICS))


def _queried(name: str, families: frozenset[str]) -> QueriedMetric:
    if not families:
        return QueriedMetric(clean(name, 120), None)
    if name in families or base_name(name) in families:
        return QueriedMetric(clean(name, 120), True)
    renames = known_renames()
    rename = renames.get(name) or renames.get(base_name(name))
    if rename is None:
        other = sorted(family for family in families if _plain(family) == _plain(name))
        note = "the same name, spelled with another separator" if other else ""
        return QueriedMetric(clean(name, 120), False, tuple(other[:1]), note=note)
    successors = tuple(new for new in rename.to if new in families)
    return QueriedMetric(clean(name, 120), False, successors, not rename.to, rename.note)


def _plain(name: str) -> str:
    """A name without its separators: releases and collectors turn ':' into '_' and back."""
    return re.sub(r"[^a-z0-9]", "_", name.lower())


def _empty_answer(item: dict[str, Any]) -> bool | None:
    answer = item.get("answer", item.get("result", item.get("response")))
    if isinstance(answer, dict):
        answer = (answer.get("data") or {}).get("result", answer.get("result"))
    return len(answer) == 0 if isinstance(answer, list) else None


def moment(value: Any) -> float | None:
    """ISO 8601 text or a unix number to unix seconds; None when it is neither."""
    if not isinstance(value, str):
        return _number(value)
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed.timestamp() if parsed.tzinfo else None


def _objects(data: Any) -> Iterable[dict[str, Any]]:
    items = data if isinstance(data, list) else [data]
    if not all(isinstance(item, dict) for item in items):
        raise ValueError("expected an object or a list of objects")
    return items


def _said(body: Any, source: str) -> str:
    """A probe's body as text; of an error body that was kept decoded, its message."""
    error = None if isinstance(body, str) else read_error(body, source)
    return error.message if error is not None else _text(body)


def _text(value: Any) -> str:
    return clean(value, 400) if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _cores(value: Any) -> float | None:
    """A Kubernetes CPU quantity: '250m', '0.28', 4."""
    if not isinstance(value, str):
        return _number(value)
    text = value.strip()
    scale = _CPU_UNITS.get(text[-1:], 1.0)
    try:
        return float(text.rstrip("".join(_CPU_UNITS))) * scale
    except ValueError:
        return None
