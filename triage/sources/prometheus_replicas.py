"""The replicas behind one server: their names, their newest samples, and the scrapes that these stand for."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import urlsplit

from triage.dialects.pages import read_page
from triage.dialects.prometheus.answers import ScrapeTarget
from triage.dialects.prometheus.samples import Instance, Place, address_of, named
from triage.domain.reading import Scrape
from triage.domain.target import Target
from triage.sources.prometheus_survey import Survey
from triage.sources.prometheus_troubles import scrape_failure

# A replica without a sample for so long, which no target names any more, was scaled away.
_FORGET_S = 300.0
# As many scrapes as a window must hold: of fewer, one that was lost makes a rate meaningless (the usual advice for
# rate() is the same factor).
SCRAPES_A_WINDOW = 4
# How far back the newest samples are looked for where nobody says how often it scrapes; Prometheus's own look-back.
UNKNOWN_PACE_S = 300.0 / SCRAPES_A_WINDOW


class _Seen(NamedTuple):
    """What is remembered of one replica between reads. at: server time of the newest sample that was passed on."""

    target: Target
    at: float
    every_s: float


class Replicas:
    """direct: targets that are scraped directly, by host:port; the server's samples of them are left out.

    names: of every replica that was ever seen. late_by: seconds that our clock is ahead of the server's.
    """

    def __init__(self, direct: Mapping[str, Target]) -> None:
        self._direct = direct
        self._seen: dict[Place, _Seen] = {}
        self.names: dict[Place, str] = {}
        self.late_by = 0.0

    def paces(self) -> list[float]:
        """Usual seconds between two samples, of each replica."""
        return [seen.every_s for seen in self._seen.values()]

    def oldest(self) -> float | None:
        """The newest sample of the replica that is farthest behind, on the server's clock."""
        return min((seen.at for seen in self._seen.values()), default=None)

    def overdue(self, now: float) -> bool:
        """Samples of some replica did not come when they should have; those that are long gone are forgotten."""
        here = now - self.late_by
        self._seen = {place: seen for place, seen in self._seen.items() if here - seen.at < _FORGET_S + seen.every_s}
        return any(here - seen.at > 2 * seen.every_s for seen in self._seen.values())

    def call(self, places: Sequence[Place]) -> None:
        """Give names. One that was given stays: the store and the person know the replica by it."""
        fresh = [place for place in places if place not in self.names]
        taken = set(self.names.values())
        for place, name in named([*self.names, *fresh]).items() if fresh else ():
            self.names.setdefault(place, f"{name} {' '.join(filter(None, place))}" if name in taken else name)

    def scrapes(self, instance: Instance, known: Survey) -> list[Scrape]:
        """The scrapes behind an instance's new samples, oldest first."""
        place, key = instance.place, (instance.job, instance.address)
        self.call([place])
        url = known.url_of.get(key, "")
        direct = self._direct.get(_authority(url)) or self._direct.get(instance.address)
        if direct is not None:
            self.names[place] = direct.name
            return []
        every_s = known.paces.get(key) or _pace(instance.pages)
        before = self._seen.get(place) or _Seen(Target(self.names[place], url), 0.0, every_s)
        found = []
        for at, body in instance.pages:
            if at > before.at:
                page = read_page(body, before.target, "prometheus", at + self.late_by)
                if page.engines or page.gpus:
                    found.append(Scrape(before.target, at + self.late_by, 0.0, page, None, len(body), every_s))
        if found:
            self._seen[place] = _Seen(before.target, instance.pages[-1][0], every_s)
        return found

    def down(self, known: Survey) -> list[ScrapeTarget]:
        """Engines whose newest scrape failed and that have not answered since."""
        newest = {address_of(place): seen.at for place, seen in self._seen.items()}
        return [
            item
            for item in known.active
            if item.seen.health == "down"
            and not self._is_direct(item)
            and not newest.get(item.address, 0.0) >= (item.scraped_at or float("inf"))
        ]

    def unseen(self, items: Sequence[ScrapeTarget]) -> list[ScrapeTarget]:
        """Those of which no sample was read yet."""
        seen = {address_of(place) for place in self._seen}
        return [item for item in items if item.address not in seen]

    def failed(self, item: ScrapeTarget, now: float) -> Scrape:
        """A failed scrape as if we had made it."""
        called = {address_of(place): name for place, name in self.names.items()}
        name = called.get(item.address) or item.labels.get("pod") or item.address or item.seen.url
        target = next((seen.target for seen in self._seen.values() if seen.target.name == name), None)
        failure = scrape_failure(item.seen.error)
        return Scrape(target or Target(name, item.seen.url), now, 0.0, None, failure, 0, item.every_s)

    def _is_direct(self, item: ScrapeTarget) -> bool:
        return _authority(item.seen.url) in self._direct or item.address in self._direct


def _pace(pages: tuple[tuple[float, bytes], ...]) -> float:
    """The usual distance of the samples."""
    gaps = sorted(later[0] - earlier[0] for earlier, later in pairwise(pages))
    return gaps[len(gaps) // 2] if gaps else UNKNOWN_PACE_S


def _authority(url: str) -> str:
    return urlsplit(url).netloc if "://" in url else url
