"""What a live run would see of a simulated fleet: pages, logs and a probe, read as real ones are."""

import datetime

import msgspec

from triage.diagnosis.diagnose import diagnose
from triage.dialects.logs.read import read_log
from triage.dialects.pages import read_page
from triage.domain.limits import Limits
from triage.domain.logs import LogReading
from triage.domain.reading import Scrape
from triage.domain.situation import NotSeen, Situation
from triage.domain.target import Failure, FailureReason, Target
from triage.domain.verdict import Diagnosis
from triage.drill.virtual_probe import VirtualProbe
from triage.lab.world.replica import Replica
from triage.lab.world.service import Service
from triage.lab.world.watch import Watch
from triage.situation.costs import costs_of_source
from triage.situation.store import Store

INTERVAL_S = 5.0
WINDOW_S = 30.0
# As the demo asks: short enough for an incident, long enough to time its tokens.
_PROBE_TOKENS = 280
_PROBE_S = 60.0

# There is a gateway, and nobody has read its log.
_UNREAD = (NotSeen("gateway log", "its reader is still to come", costs_of_source("gateway log"), expected=True),)


class Observer:
    """Looks at one service from some moment on. zero: unix seconds of the virtual zero."""

    def __init__(self, service: Service, watch: Watch, zero: float, limits: Limits) -> None:
        self._service = service
        self._watch = watch
        self._zero = zero
        self._targets = {replica.name: Target(replica.name) for replica in service.replicas}
        self._store = Store(self._targets.values(), window_s=WINDOW_S, limits=limits)
        self._probe: VirtualProbe | None = None

    def scrape(self, at: float) -> None:
        self._store.add([self._read(replica, at) for replica in self._service.replicas])
        if self._probe is not None and (result := self._probe.result(at)) is not None:
            self._store.add_probe(self._zero + at, *result)
            self._probe = None

    def ask(self, at: float) -> None:
        """One streamed question through the gateway, as the announced probe asks."""
        self._probe = VirtualProbe(self._service, at, max_tokens=_PROBE_TOKENS, total_s=_PROBE_S)

    def diagnose(self, at: float) -> tuple[Situation, Diagnosis]:
        situation = self._store.situation(self._zero + at, INTERVAL_S, _UNREAD)
        logs = tuple([self._log(replica) for replica in self._service.replicas if replica.log])
        situation = msgspec.structs.replace(situation, logs=logs)
        return situation, diagnose(situation)

    def _read(self, replica: Replica, at: float) -> Scrape:
        target, moment = self._targets[replica.name], self._zero + at
        status, text = self._watch.page(replica, at)
        if status == 0:
            return Scrape(target, moment, 0.01, None, Failure(FailureReason.REFUSED, "connection refused"))
        if status != 200:
            return Scrape(target, moment, 0.01, None, Failure(FailureReason.NOT_FOUND, "", status))
        page = read_page(text.encode(), target, "/metrics", moment)
        if not page.engines:
            return Scrape(target, moment, 0.01, None, page.no_engine())
        return Scrape(target, moment, 0.01, page, None, len(text))

    def _log(self, replica: Replica) -> LogReading:
        year = datetime.datetime.fromtimestamp(self._zero, datetime.UTC).year
        text = "\n".join([line for _, line in replica.log])
        return read_log(text, f"engine-{replica.name}.log", replica.name, year)
