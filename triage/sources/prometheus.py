"""Engines as a Prometheus sees them: its samples become the scrapes that made them, its targets and alerts facts.

The Store gets the same pages as from scraping, each at the time it was scraped, so that everything behind it is the
same. Replicas that are scraped directly are left out: fresher is better, and one replica must not count twice.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from triage.dialects.prometheus.answers import ScrapeTarget
from triage.dialects.prometheus.samples import Instance, instances_of
from triage.dialects.prometheus.selectors import matching, names_of, selector
from triage.domain.monitoring import MonitoringReading, MonitoringTrouble, Past, Trouble
from triage.domain.reading import Scrape
from triage.domain.target import Failure, Target
from triage.gate import Access, Gate, failure_of
from triage.gate.threads import call_in_daemon
from triage.sources.prometheus_api import MonitoringError, PrometheusApi
from triage.sources.prometheus_past import read_past
from triage.sources.prometheus_replicas import SCRAPES_A_WINDOW, UNKNOWN_PACE_S, Replicas
from triage.sources.prometheus_survey import Survey, survey

# Targets, alerts and which engines there are change slowly, and their answers are large on a large server.
_SURVEY_EVERY_S = 30.0
# A replica whose samples stop has gone, or cannot be scraped any more: only its target says which. An engine that is
# not scraped yet may be of a kind that nothing is asked of so far.
_SURVEY_SOON_S = 5.0
# What was usual a day ago does not change within this.
_PAST_EVERY_S = 600.0
# Dead engines whose last page is looked up, each with a question of its own.
_MOST_GONE = 20
# Clocks that differ by less are as good as equal: an answer takes as long.
_CLOCK_S = 2.0

Reading: TypeAlias = Scrape | MonitoringReading


class PrometheusSource:
    """Reads one server. Implements what the monitor polls."""

    def __init__(
        self,
        gate: Gate,
        access: Access,
        *,
        matchers: str = "",
        window_s: float = 30.0,
        direct: Mapping[str, Target] | None = None,
    ) -> None:
        """matchers: PromQL label matchers for every question. direct: targets read directly, by host:port."""
        self._client = gate.client(access)
        self._matchers = matchers
        self._window_s = window_s
        self._replicas = Replicas(direct or {})
        self.name = f"prometheus {self._client.address.authority}{self._client.address.prefix}"
        self._api: PrometheusApi | None = None
        self._survey: Survey | None = None
        self._surveyed = self._past_read = float("-inf")
        self._asked_at = float("-inf")
        self._looked_up: set[tuple[str, str]] = set()
        self._asking: list[MonitoringTrouble] = []  # of the last question for samples

    @property
    def targets(self) -> tuple[Target, ...]:
        """None beforehand: it tells itself what it scrapes."""
        return ()

    async def read(self) -> list[Reading]:
        """The scrapes since the last read, and what the server says of targets and alerts. Never raises."""
        loop = asyncio.get_running_loop()
        found = await call_in_daemon(lambda: self._read(loop))
        if isinstance(found, Exception):
            failure = found.trouble if isinstance(found, MonitoringError) else _broken(failure_of(found))
            return [MonitoringReading(self.name, time.time(), troubles=(failure,))]
        return found

    async def close(self) -> None:
        if self._api is not None:
            self._api.close()
        await self._client.close()

    # ---- in the worker thread

    def _read(self, loop: asyncio.AbstractEventLoop) -> list[Reading]:
        if self._api is None:
            self._api = PrometheusApi(self._client, loop)
        api, now = self._api, time.time()
        nothing = self._survey is not None and not self._survey.names
        soon = self._replicas.overdue(now) or nothing or (self._survey is not None and self._survey.unscraped)
        new = now - self._surveyed >= (_SURVEY_SOON_S if soon else _SURVEY_EVERY_S)
        if self._survey is None or new:
            self._survey, self._surveyed = survey(api, self._matchers, self.name), now
            late_by = self._survey.late_by
            self._replicas.late_by = late_by if abs(late_by) >= _CLOCK_S else 0.0
        known = self._survey
        troubles = list(known.troubles)
        if not known.tables and not known.gpus:
            return [self._told(now, troubles, new)]
        instances = self._instances(api, known, now)
        scrapes = [scrape for instance in instances or () for scrape in self._replicas.scrapes(instance, known)]
        down = self._replicas.down(known)
        scrapes += self._last_words(api, known, down) + [self._replicas.failed(item, now) for item in down]
        past = None
        if instances is not None:
            stopped = not instances and self._replicas.oldest() is None
            self._asking = [known.stale(api, self._matchers, now - self._replicas.late_by)] if stopped else []
            past = self._past(api, known, now) if instances and now - self._past_read >= _PAST_EVERY_S else None
            self._asking += _notes(api)
        told = self._told(now, [*troubles, *self._asking], new)
        return [*scrapes, msgspec.structs.replace(told, past=past)]

    def _past(self, api: PrometheusApi, known: Survey, now: float) -> tuple[Past, ...] | None:
        self._past_read = now
        try:
            found = read_past(
                api,
                known.tables,
                now=now - self._replicas.late_by,
                window_s=self._window_s,
                matchers=self._matchers,
                jobs=known.jobs,
                targets=known.labels,
                names=self._replicas.names,
            )
        except MonitoringError as error:
            # A server that keeps two days, or a slow long-term store: the present goes on without it.
            said = f"no baseline: {error.trouble.says}"
            self._asking.append(MonitoringTrouble(error.trouble.trouble, said, "", blind=False))
            return None
        return tuple(found)

    def _told(self, now: float, troubles: list[MonitoringTrouble], new: bool) -> MonitoringReading:
        known = self._survey
        late_by = self._replicas.late_by
        if late_by:
            said = f"the server's clock is {abs(late_by):.0f} s {'behind' if late_by > 0 else 'ahead'}"
            troubles.append(MonitoringTrouble(Trouble.CLOCK, said, "its times are shifted by that", blind=False))
        return MonitoringReading(
            self.name,
            now,
            targets=known.monitored if known is not None and new else None,
            alerts=known.alerts if known is not None and new else None,
            troubles=tuple(troubles),
        )

    def _instances(self, api: PrometheusApi, known: Survey, now: float) -> list[Instance] | None:
        """Every replica's pages since the last read; the whole window at first. None: too soon for new ones."""
        paces = self._replicas.paces() or list(known.paces.values())
        if now - self._asked_at < min(paces, default=0.0) / 2:
            return None
        self._asked_at = now
        pace = max(paces, default=UNKNOWN_PACE_S)
        back = max(self._window_s, SCRAPES_A_WINDOW * pace) + pace
        oldest = self._replicas.oldest()
        if oldest is not None:
            # Labels are most of an answer: asking again for samples that were read costs little, but not nothing.
            back = min(back, now - self._replicas.late_by - oldest + pace)
        names = "|".join(part for part in (names_of(known.tables), known.gpus) if part)
        matrix = api.query(f"{selector(names, self._matchers, known.jobs)}[{back:.0f}s]")
        instances = instances_of(matrix, known.labels)
        self._replicas.call([instance.place for instance in instances])
        return instances

    def _last_words(self, api: PrometheusApi, known: Survey, down: Sequence[ScrapeTarget]) -> list[Scrape]:
        """The last pages of engines that died before we looked: one that has answered is another case than one that
        never did.
        """
        unknown = {item.key for item in self._replicas.unseen(down)} - self._looked_up
        if not unknown:
            return []
        self._looked_up |= unknown
        found: list[Scrape] = []
        try:
            last = known.last_seen(api, self._matchers)
            for key in sorted(unknown & last.keys())[:_MOST_GONE]:
                names = selector(names_of(known.tables), matching({"job": key[0], "instance": key[1]}))
                pace = known.paces.get(key, UNKNOWN_PACE_S)
                matrix = api.query(f"{names}[{2 * pace:.0f}s]", at=last[key] + 0.1)
                for instance in instances_of(matrix, known.labels):
                    found += self._replicas.scrapes(instance, known)
        except MonitoringError:
            pass  # they stay engines that nobody saw alive
        return found


def _notes(api: PrometheusApi) -> list[MonitoringTrouble]:
    """What the server said beside its answers: a warning is about data that is missing, an info about the question."""
    warnings, infos = api.take_notes()
    todo = "what is missing may be in the part that did not answer"
    found = [MonitoringTrouble(Trouble.PARTIAL, said, todo) for said in warnings]
    return found + [MonitoringTrouble(Trouble.PARTIAL, said, blind=False) for said in infos]


def _broken(failure: Failure) -> MonitoringTrouble:
    return MonitoringTrouble(Trouble.UNREADABLE, str(failure))
