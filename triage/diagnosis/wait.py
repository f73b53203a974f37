"""How long requests wait for room on one replica."""

from triage.diagnosis.lazy import lazy
from triage.diagnosis.reference import Reference, ttft_bound, usual_ttft
from triage.diagnosis.shares import gauge_bounds, share_between
from triage.diagnosis.thresholds import (
    SHARE_SUPPORT,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import Number, known, value_or
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.verdict import Share

_ENGINE_TIME = "time in the engine"


class Wait:
    """How long requests wait for room on one replica, by the gauges and by the histograms."""

    def __init__(self, view: ReplicaView, limits: Limits) -> None:
        self.view = view
        self.bound = ttft_bound(view, limits)
        waiting, running = view.queued, view.running
        self.waiting = waiting.mean if waiting else 0.0
        self.running = running.mean if running else 0.0
        in_system = self.waiting + self.running
        # Little's law: of all requests inside, the waiting ones spend this share of everybody's time.
        self.of_everything = self.waiting / in_system if in_system else 0.0
        self.queue_mean = view.window.mean(Quantity.QUEUE_TIME)
        self.ttft = view.ttft
        self.prefill_mean = view.window.mean(Quantity.PREFILL_TIME)

    @lazy
    def usual(self) -> Reference | None:
        """What the first token took before."""
        return usual_ttft(self.view)

    @lazy
    def admissions(self) -> Number:
        """First tokens in the window."""
        return self.view.window.delta(Quantity.TTFT)

    def share(self) -> Share | None:
        """Waiting's share of the time to first token, else of the whole time in the engine."""
        found: list[float] = []
        bounds: tuple[float, ...] = ()
        counted: list[float] = []
        if known(self.ttft) and self.ttft > 0:
            if known(self.queue_mean):
                found.append(min(self.queue_mean / self.ttft, 1.0))
                counted.append(value_or(self.view.window.delta(Quantity.QUEUE_TIME), 0.0))
            if self.view.always_waiting:
                # All waiting lies before the first token, so its share there is at least its share of the whole.
                found.append(self.of_everything)
                bounds = self.gauge_bounds
                counted.append(self.waiting + self.running)
                if known(self.prefill_mean) and self._queue_fills(self.ttft):
                    found.append(max(1.0 - self.prefill_mean / self.ttft, 0.0))
        waiting, running = self.view.queued, self.view.running
        if found:
            return share_between(max(found), (*found, *bounds), max(counted), "time to first token")
        if waiting is None or running is None or waiting.mean == 0:
            return None
        return share_between(self.of_everything, self.gauge_bounds, self.waiting + self.running, _ENGINE_TIME)

    @lazy
    def gauge_bounds(self) -> tuple[float, float]:
        """Between which of_everything lies, over the readings."""
        waiting, running = self.view.queued, self.view.running
        return gauge_bounds(waiting, [running]) if waiting is not None else (0.0, 0.0)

    def at_most(self, share: Share) -> float:
        """The largest of what a share was estimated from; without the width of one request."""
        return self.gauge_bounds[1] if share.of == _ENGINE_TIME else share.value

    def felt(self) -> bool:
        """Long enough to matter: first tokens are above their bound, or nothing says how long they take."""
        if known(self.ttft):
            return self.ttft > self.bound.bound
        return self.view.always_waiting

    def _queue_fills(self, ttft: float) -> bool:
        """The queue is long enough for what prefill leaves over; else that time is spent in front of the scheduler."""
        live = self.live_queue_time()
        return not known(live) or live >= SHARE_SUPPORT * ttft

    def live_queue_time(self) -> Number:
        """Little: waiting over admissions per second; sees the requests that still wait."""
        admissions = self.view.window.rate(Quantity.TTFT)
        if known(admissions) and admissions > 0:
            return self.waiting / admissions
        return admissions if not known(admissions) else float("inf")
