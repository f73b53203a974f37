"""One drill in virtual time: a healthy past, a fault, a page, and looks at the fleet until it is over."""

import random

import msgspec

from triage.domain.verdict import Confidence, Diagnosis, Kind
from triage.drill.observer import INTERVAL_S, Observer
from triage.lab.account.ledger import Ledger, read_ledger
from triage.lab.account.truth import Objectives, Truth, find_truth
from triage.lab.faults.fault import Fault, Ground
from triage.lab.fleets import Workload
from triage.lab.world.watch import Watch
from triage.lab.world.world import World

# An engine has a usual speed once it is ten minutes old.
_PAST_S = 720.0
# From the fault to the page: alerts wait for a minute or two before they fire.
_PAGED_S = (60.0, 120.0)
# Looks after the page, seconds.
LOOKS_S = (30.0, 60.0, 90.0)
# What is counted as now: users remember the last minute.
SPAN_S = 60.0
_ZERO = 1_764_800_000.0


class Look(msgspec.Struct, frozen=True):
    """One diagnosis beside the truth of that moment. after_s: since the page. certain: what is surely wrong."""

    after_s: float
    kind: Kind
    confidence: Confidence | None
    detail: str | None
    truth: Kind
    certain: tuple[Kind, ...]
    accepted: frozenset[Kind]
    summary: str
    why: str

    @property
    def right(self) -> bool:
        return self.kind in self.accepted


class Run(msgspec.Struct, frozen=True):
    """name: of the fault. severity 0..1. looks: in their order."""

    name: str
    workload: str
    seed: str
    severity: float
    looks: tuple[Look, ...]

    @property
    def last(self) -> Look:
        return self.looks[-1]


class Course:
    """A workload's world with its healthy past behind it; then one fault begins, once."""

    def __init__(self, workload: Workload, seed: str) -> None:
        self.workload = workload
        self.seed = seed
        self.world = World(workload.services, seed, _ZERO)
        self.service = self.world.services[0]
        self.watch = Watch()
        self.ground = Ground(self.world, self.service, self.watch)
        self.objectives = Objectives(workload.first_visible_p95_s, workload.time_per_token_mean_s)
        self.world.advance(_PAST_S)
        self.before: Ledger = read_ledger(self.service, _PAST_S - 2 * SPAN_S, _PAST_S)

    def run(self, faults: tuple[Fault, ...], severity: float | None = None) -> Run:
        """severity: drawn by the seed when None."""
        name = "+".join([fault.name for fault in faults])
        rng = random.Random(f"{self.seed}/{self.workload.name}/{name}")  # noqa: S311 - a reproducible draw, no secret
        drawn = rng.random() if severity is None else severity
        for fault in faults:
            fault.begin(self.ground, drawn, rng)
        self.world.advance(_PAST_S + rng.uniform(*_PAGED_S))
        paged = self.world.now
        observer = Observer(self.service, self.watch, _ZERO, self.objectives)
        observer.ask(paged)
        looks = []
        for step in range(int(LOOKS_S[-1] / INTERVAL_S) + 1):
            after = step * INTERVAL_S
            self.world.advance(paged + after)
            observer.scrape(self.world.now)
            if after in LOOKS_S:
                _, diagnosis = observer.diagnose(self.world.now)
                looks.append(_look(after, diagnosis, self.truth()))
                observer.ask(self.world.now)
        return Run(name, self.workload.name, self.seed, drawn, tuple(looks))

    def truth(self) -> Truth:
        now = self.world.now
        ledger = read_ledger(self.service, now - SPAN_S, now)
        return find_truth(self.service, self.watch, self.objectives, self.before, ledger)


def _look(after_s: float, diagnosis: Diagnosis, truth: Truth) -> Look:
    first = diagnosis.verdicts[0]
    return Look(
        after_s,
        first.kind,
        first.confidence,
        first.detail,
        truth.main,
        truth.certain,
        truth.accepted,
        first.summary,
        truth.why,
    )
