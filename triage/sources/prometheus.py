"""Engines as a Prometheus sees them: its samples become the scrapes that made them, its targets and alerts facts.

The Store gets the same pages as from scraping, each at the time it was scraped, so that everything behind it is the
same. Replicas that are scraped directly are left out: fresher is better, and one replica must not count twice.
"""

import asyncio
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec

from triage.dialects.pages import read_page
from triage.dialects.prometheus.samples import Instance, Place, address_of, instances_of, named
from triage.dialects.prometheus.selectors import names_of, selector
from triage.domain.monitoring import MonitoringReading, MonitoringTrouble, Past, Trouble
from triage.domain.reading import Scrape
from triage.domain.target import Failure, Target
from triage.gate import Access, Gate, failure_of
from triage.gate.threads import call_in_daemon
from triage.sources.prometheus_api import MonitoringError, PrometheusApi
from triage.sources.prometheus_past import read_past
from triage.sources.prometheus_survey import Survey, survey
from triage.sources.prometheus_troubles import scrape_failure

# Targets, alerts and which engines there are change slowly, and their answers are large on a large server.
_SURVEY_EVERY_S = 30.0
# A replica whose samples stop has gone, or cannot be scraped any more: only its target says which.
_SURVEY_SOON_S = 5.0
# A replica without a sample for so long, which no target names any more, was scaled away.
_FORGET_S = 300.0
# What was usual a day ago does not change within this.
_PAST_EVERY_S = 600.0
# As many scrapes as a window must hold: of fewer, one that was lost makes a rate meaningless (the usual advice for
# rate() is the same factor).
SCRAPES_A_WINDOW = 4
# How far back the newest samples are looked for where nobody says how often it scrapes; Prometheus's own look-back.
_UNKNOWN_PACE_S = 300.0
# Clocks that differ by less are as good as equal: an answer takes as long.
_CLOCK_S = 2.0

Reading: TypeAlias = Scrape | MonitoringReading


class _Seen(NamedTuple):
    """What is remembered of one replica between reads. at: server time of the newest sample that was passed on."""

    target: Target
    at: float
    every_s: float


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
        self._direct = dict(direct or {})
        self.name = f"prometheus {self._client.address.authority}{self._client.address.prefix}"
        self._api: PrometheusApi | None = None
        self._survey: Survey | None = None
        self._surveyed = self._past_read = float("-inf")
        self._names: dict[Place, str] = {}
        self._seen: dict[Place, _Seen] = {}
        self._late_by = 0.0
        self._asked_at = float("-inf")
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
        new = now - self._surveyed >= (_SURVEY_SOON_S if self._overdue(now) else _SURVEY_EVERY_S)
        if self._survey is None or new:
            self._survey, self._surveyed = survey(api, self._matchers, self.name), now
            self._late_by = self._survey.late_by if abs(self._survey.late_by) >= _CLOCK_S else 0.0
        known = self._survey
        troubles = list(known.troubles)
        if not known.tables and not known.gpus:
            return [self._told(now, troubles, new)]
        instances = self._instances(api, known, now)
        scrapes = [scrape for instance in instances or () for scrape in self._scrapes(instance, known)]
        scrapes += self._down(known, now)
        past = None
        if instances is not None:
            nothing = not instances and not self._seen
            self._asking = [known.stale(api, self._matchers)] if nothing else []
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
                now=now - self._late_by,
                window_s=self._window_s,
                matchers=self._matchers,
                jobs=known.jobs,
                targets=known.labels,
                names=self._names,
            )
        except MonitoringError as error:
            # A server that keeps two days, or a slow long-term store: the present goes on without it.
            said = f"no baseline: {error.trouble.says}"
            self._asking.append(MonitoringTrouble(error.trouble.trouble, said, "", blind=False))
            return None
        return tuple(found)

    def _overdue(self, now: float) -> bool:
        """Samples of some replica did not come when they should have, or none of any engine came yet."""
        if self._survey is not None and not self._survey.names:
            return True
        here = now - self._late_by
        self._seen = {place: seen for place, seen in self._seen.items() if here - seen.at < _FORGET_S + seen.every_s}
        return any(here - seen.at > 2 * seen.every_s for seen in self._seen.values())

    def _told(self, now: float, troubles: list[MonitoringTrouble], new: bool) -> MonitoringReading:
        known = self._survey
        if self._late_by:
            said = f"the server's clock is {abs(self._late_by):.0f} s {'behind' if self._late_by > 0 else 'ahead'}"
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
        paces = [seen.every_s for seen in self._seen.values()] or list(known.paces.values())
        if now - self._asked_at < min(paces, default=0.0) / 2:
            return None
        self._asked_at = now
        pace = max(paces, default=_UNKNOWN_PACE_S / SCRAPES_A_WINDOW)
        back = max(self._window_s, SCRAPES_A_WINDOW * pace) + pace
        if self._seen:
            # Labels are most of an answer: asking again for samples that were read costs little, but not nothing.
            newest = min(seen.at for seen in self._seen.values())
            back = min(back, now - self._late_by - newest + pace)
        names = "|".join(part for part in (names_of(known.tables), known.gpus) if part)
        matrix = api.query(f"{selector(names, self._matchers, known.jobs)}[{back:.0f}s]")
        instances = instances_of(matrix, known.labels)
        fresh = [instance.place for instance in instances if instance.place not in self._names]
        if fresh:
            # A name that was given stays: the store and the person know the replica by it.
            taken = set(self._names.values())
            for place, name in named([*self._names, *fresh]).items():
                self._names.setdefault(place, name if name not in taken else f"{name} {' '.join(filter(None, place))}")
        return instances

    def _scrapes(self, instance: Instance, known: Survey) -> list[Scrape]:
        place, job_and_address = instance.place, (instance.job, instance.address)
        url = known.url_of.get(job_and_address, "")
        direct = self._direct.get(_authority(url)) or self._direct.get(instance.address)
        if direct is not None:
            self._names[place] = direct.name
            return []
        before = self._seen.get(place)
        pages = [(at, page) for at, page in instance.pages if before is None or at > before.at]
        every_s = known.paces.get(job_and_address) or _pace(instance.pages)
        if before is None:
            before = _Seen(Target(self._names[place], url), 0.0, every_s)
        found = []
        for at, body in pages:
            here = at + self._late_by
            page = read_page(body, before.target, "prometheus", here)
            if page.engines or page.gpus:
                found.append(Scrape(before.target, here, 0.0, page, None, len(body), every_s))
        if found:
            self._seen[place] = _Seen(before.target, pages[-1][0], every_s)
        return found

    def _down(self, known: Survey, now: float) -> list[Scrape]:
        """Failed scrapes of engines, as if we had made them."""
        by_address = {address_of(place): seen for place, seen in self._seen.items()}
        found = []
        for item in known.active:
            address = item.labels.get("instance", "")
            if item.seen.health != "down" or self._direct.get(_authority(item.seen.url)) or address in self._direct:
                continue
            seen = by_address.get(address)
            if seen is not None and item.scraped_at is not None and seen.at >= item.scraped_at:
                continue  # it answered since
            target = seen.target if seen else Target(item.labels.get("pod") or address or item.seen.url, item.seen.url)
            failure = scrape_failure(item.seen.error)
            found.append(Scrape(target, now, 0.0, None, failure, 0, item.every_s))
        return found


def _notes(api: PrometheusApi) -> list[MonitoringTrouble]:
    """What the server said beside its answers: a warning is about data that is missing, an info about the question."""
    warnings, infos = api.take_notes()
    todo = "what is missing may be in the part that did not answer"
    found = [MonitoringTrouble(Trouble.PARTIAL, said, todo) for said in warnings]
    return found + [MonitoringTrouble(Trouble.PARTIAL, said, blind=False) for said in infos]


def _pace(pages: tuple[tuple[float, bytes], ...]) -> float:
    """The usual distance of the samples."""
    gaps = sorted(later[0] - earlier[0] for earlier, later in pairwise(pages))
    return gaps[len(gaps) // 2] if gaps else _UNKNOWN_PACE_S / SCRAPES_A_WINDOW


def _authority(url: str) -> str:
    return urlsplit(url).netloc if "://" in url else url


def _broken(failure: Failure) -> MonitoringTrouble:
    return MonitoringTrouble(Trouble.UNREADABLE, str(failure))
