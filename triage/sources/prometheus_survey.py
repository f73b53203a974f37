"""What a Prometheus has: which engines, scraped how often and with what success, and which alerts fire."""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from triage.dialects.prometheus.answers import (
    ScrapeTarget,
    read_alerts,
    read_broken_rules,
    read_dropped,
    read_targets,
)
from triage.dialects.prometheus.selectors import GPU_NAMES, any_engine, names_of, present, selector
from triage.dialects.table import Table, engine_tables
from triage.domain.monitoring import MonitoringTrouble, Trouble
from triage.domain.situation import Alert, MonitoredTarget
from triage.domain.text import clean
from triage.sources.prometheus_api import MonitoringError, PrometheusApi
from triage.sources.prometheus_troubles import is_on_the_way

# An engine that died within the hour is still one of ours: its target is the one to look at.
_RECENT = "1h"
_RECENT_S = 3600.0
# Kinds of engines whose newest samples are looked up; each makes the question longer.
_MOST_ENGINES = 8
# Alerts that always fire, to prove that alerting works.
_HEARTBEATS = frozenset({"watchdog", "deadmansswitch", "deadmanssnitch", "alwaysfiring"})
# What every process exports.
_ANY_PROCESS = ("process_", "python_", "http_", "go_")
# Labels by which an alert names a model or device that is watched here.
_MODEL_LABELS = ("model_name", "model", "gpu", "UUID")


class Survey(NamedTuple):
    """tables: dialects with series in the last hour. gpus: a name pattern, '' without GPU exporter series.

    jobs: that have them. active: scrape targets of these jobs; monitored: the same as facts, and dropped ones.
    labels, paces, url_of: of every active target, by (job, instance). late_by: seconds our clock is ahead of the
    server's.
    """

    tables: list[Table]
    gpus: str
    names: tuple[str, ...]
    jobs: frozenset[str]
    active: tuple[ScrapeTarget, ...]
    monitored: tuple[MonitoredTarget, ...]
    alerts: tuple[Alert, ...]
    labels: Mapping[tuple[str, str], Mapping[str, str]]
    paces: Mapping[tuple[str, str], float]
    url_of: Mapping[tuple[str, str], str]
    troubles: tuple[MonitoringTrouble, ...]
    late_by: float

    @property
    def unscraped(self) -> bool:
        """Targets are listed of which nothing was read yet."""
        return any(one.trouble is Trouble.NEVER_SCRAPED for one in self.troubles)

    def last_seen(self, api: PrometheusApi, matchers: str) -> dict[tuple[str, str], float]:
        """When each (job, instance) had its newest sample within the hour, on the server's clock, to five seconds."""
        if not self.names:
            return {}
        # One name of each engine: those of vLLM are on no page of SGLang. timestamp() drops the name, so that two names
        # in one selector would collide.
        one_each = {re.split("[:_]", name)[0]: name for name in reversed(self.names)}
        times = " or ".join(
            f"timestamp({selector(name, matchers, self.jobs)})" for _, name in sorted(one_each.items())[:_MOST_ENGINES]
        )
        found = {}
        for entry in api.query(f"max by (job, instance) (max_over_time(({times})[{_RECENT}:5s]))"):
            try:
                labels, (_, value) = entry["metric"], entry["value"]
                found[str(labels.get("job", "")), str(labels.get("instance", ""))] = float(value)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue
        return found

    def stale(self, api: PrometheusApi, matchers: str, now: float) -> MonitoringTrouble:
        """There were engine series within the hour and there are none now: since when? now: of the server's clock."""
        try:
            newest = max(self.last_seen(api, matchers).values(), default=None)
        except MonitoringError as error:
            return error.trouble
        name = self.names[0] if self.names else "the GPU exporter's series"
        said = f"{name} has stopped" if newest is None else f"the newest {name} is {(now - newest) / 60:.0f} min old"
        return MonitoringTrouble(Trouble.STALE, said, "look at the targets: is the engine gone, or only its scrape?")


def survey(api: PrometheusApi, matchers: str, source: str) -> Survey:
    """MonitoringError when not even the first question is answered; later ones cost only what they ask for."""
    tables = engine_tables()
    sent = time.time()
    recent = api.query(
        f"count by (__name__, job) (last_over_time({selector(any_engine(tables), matchers)}[{_RECENT}]))"
    )
    got = time.time()
    rows = [row for row in map(_row, recent) if row is not None]
    names = sorted({name for name, _, _ in rows})
    found = present(tables, names)
    gpus = GPU_NAMES if any(name.startswith("DCGM_FI_") for name in names) else ""
    jobs = frozenset(job for _, job, _ in rows)
    # The answer was computed between sending and getting it.
    late_by = (sent + got) / 2 - rows[0][2] if rows else 0.0
    troubles: list[MonitoringTrouble] = []
    everything: list[ScrapeTarget] = []
    try:
        everything = read_targets(api.targets("active"), source)
    except (MonitoringError, ValueError) as error:
        troubles.append(_minor("targets", error))
    active = tuple(item for item in everything if item.seen.job in jobs or item.labels.get("job") in jobs)
    alerts, said = _alerts(api, source, active, found)
    troubles += said
    if not names:
        troubles.append(_nothing(api, matchers, everything))
    troubles += _of_targets(active)
    dropped = _dropped(api, source, jobs) if jobs and everything else []
    return Survey(
        tables=found,
        gpus=gpus,
        names=tuple(name for name in names if not name.startswith("DCGM_FI_")),
        jobs=jobs,
        active=active,
        monitored=tuple([item.seen for item in active] + dropped),
        alerts=alerts,
        labels={item.key: item.labels for item in everything},
        paces={item.key: item.every_s for item in active if item.every_s is not None},
        url_of={item.key: item.seen.url for item in active},
        troubles=tuple(troubles),
        late_by=late_by,
    )


def _row(entry: Any) -> tuple[str, str, float] | None:
    """(series name, job, the server's time) of one entry of an instant vector."""
    try:
        labels, (at, _) = entry["metric"], entry["value"]
        return str(labels["__name__"]), str(labels.get("job", "")), float(at)
    except (KeyError, TypeError, ValueError):
        return None


def _nothing(api: PrometheusApi, matchers: str, everything: Sequence[ScrapeTarget]) -> MonitoringTrouble:
    """No engine series within the hour: were there ever any?"""
    try:
        ever = api.names(selector(any_engine(engine_tables()), matchers))
    except MonitoringError as error:
        return error.trouble
    down = [item.seen for item in everything if item.seen.health == "down"]
    seen = f"{len(everything)} targets, {len(down)} down" if everything else ""
    seen += f" ({down[0].url}: {down[0].error})" if down else ""
    if ever:
        said = f"{clean(ever[0], 80)} was stored before, and nothing like it in the last hour"
        return MonitoringTrouble(
            Trouble.NO_DATA, f"{said}; {seen}" if seen else said, "look at the engines' scrape targets"
        )
    said = "it has no series of any engine that is known here"
    todo = "scrape the engines' metrics route" + (", or mend the matchers under [prometheus]" if matchers else "")
    return MonitoringTrouble(Trouble.UNKNOWN_METRIC, f"{said}; {seen}" if seen else said, todo)


def _of_targets(active: Sequence[ScrapeTarget]) -> list[MonitoringTrouble]:
    down = [item.seen for item in active if item.seen.health == "down"]
    new = [item.seen for item in active if item.seen.health == "unknown" and item.scraped_at is None]
    found = []
    if down:
        said = f"{len(down)} of {len(active)} engine targets, {down[0].url}: {down[0].error or 'no reason given'}"
        todo = "GET that URL from where Prometheus runs"
        found.append(MonitoringTrouble(Trouble.TARGET_DOWN, said, todo, blind=False))
    if new:
        said = f"{len(new)} of {len(active)} engine targets, {new[0].url}"
        todo = "wait one scrape interval; after that the server is overloaded"
        found.append(MonitoringTrouble(Trouble.NEVER_SCRAPED, said, todo, blind=False))
    return found


def _dropped(api: PrometheusApi, source: str, jobs: Iterable[str]) -> list[MonitoredTarget]:
    """Dropped targets of the engines' jobs; service discovery lists every pod of a cluster under each job."""
    try:
        found = read_dropped(api.targets("dropped"), source)
    except MonitoringError:
        return []
    return [target for target in found if target.job in set(jobs)][:20]


def _alerts(
    api: PrometheusApi, source: str, active: Sequence[ScrapeTarget], tables: Sequence[Table]
) -> tuple[tuple[Alert, ...], list[MonitoringTrouble]]:
    """Alerts about what is watched here, from the rules where they can be read."""
    troubles: list[MonitoringTrouble] = []
    found: list[Alert] = []
    try:
        rules = api.alerting_rules()
        found = read_alerts(rules, source)
        broken = [said for said, asks in read_broken_rules(rules) if _asks_for_ours(asks, tables)]
        troubles += [
            MonitoringTrouble(Trouble.PARTIAL, f"an alert rule cannot be evaluated: {said}", "mend it", blind=False)
            for said in broken[:3]
        ]
    except (MonitoringError, ValueError) as error:
        if isinstance(error, MonitoringError) and is_on_the_way(error.trouble):
            return (), [_minor("alert rules", error)]
        try:
            found = read_alerts(api.alerts(), source)
        except (MonitoringError, ValueError) as second:
            troubles.append(_minor("alerts", second))
    ours = [alert for alert in found if alert.name.lower() not in _HEARTBEATS and _ours(alert, active, tables)]
    return tuple(ours), troubles


def _ours(alert: Alert, active: Sequence[ScrapeTarget], tables: Sequence[Table]) -> bool:
    """It speaks of a target, a model or a series that is watched here."""
    labels = dict(alert.labels)
    if any(label in labels for label in _MODEL_LABELS) or _asks_for_ours(alert.expression, tables):
        return True
    places = {(key, item.labels[key]) for item in active for key in ("instance", "pod", "job") if item.labels.get(key)}
    return any((key, value) in places for key, value in alert.labels)


def _asks_for_ours(expression: str, tables: Sequence[Table]) -> bool:
    """An engine's own series, or a GPU exporter's; what every process exports says nothing of whose it is."""
    pattern = "|".join([*([names_of(tables)] if tables else []), GPU_NAMES])
    return any(not found[0].startswith(_ANY_PROCESS) for found in re.finditer(pattern, expression))


def _minor(what: str, error: Exception) -> MonitoringTrouble:
    """A part that did not come, without which the samples still say what they say."""
    if isinstance(error, MonitoringError):
        told = error.trouble
        if told.trouble is Trouble.WRONG_SERVER:
            # Mimir has no scrape targets, VictoriaMetrics no rules: others of its programs do.
            return MonitoringTrouble(Trouble.UNREADABLE, f"{what} are not to be had from this server", blind=False)
        return MonitoringTrouble(told.trouble, f"{what}: {told.says}", told.todo, blind=False)
    return MonitoringTrouble(Trouble.WRONG_SERVER, f"{what}: {clean(str(error), 160)}", "", blind=False)
