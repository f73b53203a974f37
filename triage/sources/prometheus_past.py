"""The same time a day and a week ago, as readings."""

from collections.abc import Iterable, Mapping, Sequence

from triage.dialects.pages import read_page
from triage.dialects.prometheus.samples import Place, instances_of
from triage.dialects.prometheus.selectors import baseline_names_of, selector
from triage.dialects.table import Table
from triage.domain.monitoring import Past
from triage.domain.reading import EngineReading
from triage.domain.target import Target
from triage.sources.prometheus_api import PrometheusApi

_DAY_S = 86_400.0
# Load repeats by the hour and by the weekday; the farther one first is no better known, so both are read.
_BACK = ((1, "the same time a day ago"), (7, "the same time a week ago"))
# Shorter ones are noise: at 15 s a scrape this is twenty of them.
SHORTEST_S = 300.0


def read_past(
    api: PrometheusApi,
    tables: Sequence[Table],
    *,
    now: float,
    window_s: float,
    matchers: str,
    jobs: Iterable[str],
    targets: Mapping[tuple[str, str], Mapping[str, str]],
    names: Mapping[Place, str],
) -> list[Past]:
    """now: of the server's clock. names: of the replicas that are there today; others get their address.

    MonitoringError like every question.
    """
    wanted = f"{selector(baseline_names_of(tables), matchers, jobs)}[{max(window_s, SHORTEST_S):.0f}s]"
    found = []
    for days, name in _BACK:
        for instance in instances_of(api.query(wanted, at=now - days * _DAY_S), targets):
            target = names.get(instance.place, instance.address)
            readings: list[EngineReading] = []
            for at, page in instance.pages:
                readings += read_page(page, Target(target), "prometheus", at).engines
            if readings:
                found.append(Past(target, name, tuple(readings)))
    return found
