"""What a live run would see of a simulated fleet: pages, logs and a probe, read as real ones are."""

import datetime

import msgspec

from triage.diagnosis.diagnose import diagnose
from triage.dialects.logs.read import read_log
from triage.dialects.pages import read_page
from triage.domain.limits import Limits
from triage.domain.logs import LogReading
from triage.domain.monitoring import MonitoringReading
from triage.domain.reading import Scrape
from triage.domain.situation import NotSeen, Situation
from triage.domain.target import Failure, FailureReason, Target
from triage.domain.verdict import Diagnosis, Kind
from triage.drill.virtual_probe import VirtualProbe
from triage.lab.account.alerts import SOURCE, firing
from triage.lab.account.truth import Objectives
from triage.lab.world.replica import Replica
from triage.lab.world.service import Service
from triage.lab.world.watch import Watch
from triage.situation.costs import costs_of_source
from triage.situation.store import Store

INTERVAL_S = 5.0
WINDOW_S = 30.0
# As the demo asks: short enough for an incident, long enough to time its tokens.
PROBE_TOKENS = 280
PROBE_S = 60.0

# There is a gateway, and nobody has read its log.
UNREAD = (
    NotSeen("gateway log", "its reader is still to come", costs_of_source("gateway log"), expected=True),
    # The probe offers no tools: what becomes of tool calls shows in other people's answers only.
    NotSeen("captured answers", "none were given", (Kind.TOOL_CALL_FAILURE.value, Kind.WRONG_OUTPUT.value)),
)


class Observer:
    """Looks at one service from some moment on. zero: unix seconds of the virtual zero."""

    def __init__(self, service: Service, watch: Watch, zero: float, objectives: Objectives) -> None:
        limits = limits_of(objectives)
        self._objectives = objectives
        self._service = service
        self._watch = watch
        self._zero = zero
        self._targets = {replica.name: Target(replica.name) for replica in service.replicas}
        self._store = Store(self._targets.values(), window_s=WINDOW_S, limits=limits)
        self._probe: VirtualProbe | None = None

    def scrape(self, at: float) -> None:
        alerts = firing(self._service, self._objectives, at, self._zero)
        told = MonitoringReading(SOURCE, self._zero + at, targets=(), alerts=alerts)
        self._store.add([*[self._read(replica, at) for replica in self._service.replicas], told])
        if self._probe is not None and (result := self._probe.result(at)) is not None:
            self._store.add_probe(self._zero + at, *result)
            self._probe = None

    def ask(self, at: float) -> None:
        """One streamed question through the gateway, as the announced probe asks."""
        self._probe = VirtualProbe(self._service, at, max_tokens=PROBE_TOKENS, total_s=PROBE_S)

    def diagnose(self, at: float) -> tuple[Situation, Diagnosis]:
        situation = self._store.situation(self._zero + at, INTERVAL_S, UNREAD)
        logs = tuple([self._log(replica) for replica in self._service.replicas if replica.log])
        situation = msgspec.structs.replace(situation, logs=logs)
        return situation, diagnose(situation)

    def _read(self, replica: Replica, at: float) -> Scrape:
        status, text = self._watch.page(replica, at)
        return read_answer(self._targets[replica.name], self._zero + at, status, text)

    def _log(self, replica: Replica) -> LogReading:
        year = datetime.datetime.fromtimestamp(self._zero, datetime.UTC).year
        text = "\n".join([line for _, line in replica.log])
        return read_log(text, f"engine-{replica.name}.log", replica.name, year)


def read_answer(target: Target, at: float, status: int, text: str) -> Scrape:
    """A page as the live source reads it. at: unix seconds. status 0: nobody accepted the connection."""
    if status == 0:
        return Scrape(target, at, 0.01, None, Failure(FailureReason.REFUSED, "connection refused"))
    if status != 200:
        return Scrape(target, at, 0.01, None, Failure(FailureReason.NOT_FOUND, "", status))
    return Scrape(target, at, 0.01, read_page(text.encode(), target, "/metrics", at), None, len(text))


def limits_of(objectives: Objectives) -> Limits:
    """Declared where this service's normal is not everybody's."""
    usual = Limits()
    if objectives.first_visible_p95_s == usual.first_visible_p95_s:
        return usual
    return msgspec.structs.replace(
        usual, first_visible_p95_s=objectives.first_visible_p95_s, declared=frozenset({"first_visible_p95_s"})
    )
