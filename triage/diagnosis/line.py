"""The line in front of engines: how many are held in it, for how long, and what part of the time that is."""

from collections.abc import Sequence

from triage.diagnosis.lazy import lazy
from triage.diagnosis.reference import ttft_bound
from triage.diagnosis.shares import share_between
from triage.diagnosis.tracks import together
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import NOT_EXPORTED, Number, known, value_or
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.verdict import Share
from triage.domain.window import Track

_FIRST = "time to first token at the front end"
_ALL = "time in front of the engines and in them"
# Each is observed once for a request that was let through, the nearest to that moment first.
_PASSED = (Quantity.GATEWAY_QUEUE_TIME, Quantity.TTFT, Quantity.E2E)


class Line:
    """Requests that `view` holds back from `engines`; those are the ones whose queue and batch could be read.

    quantity: GATEWAY_QUEUE where they are counted; QUEUED where only "no first response yet" is, and more of them
    are there than the engines can have; POOL_WAITING where the engines' own queues are known from the front end alone.
    """

    def __init__(
        self, view: ReplicaView, engines: Sequence[ReplicaView], track: Track, quantity: Quantity, limits: Limits
    ) -> None:
        self.view = view
        self.engines = engines
        self.track = track
        self.quantity = quantity
        self.bound = ttft_bound(view, limits).bound

    @lazy
    def held_for(self) -> Number:
        """Mean seconds that the requests let through in this window had been held."""
        return self.view.window.mean(Quantity.GATEWAY_QUEUE_TIME)

    @lazy
    def live(self) -> Number:
        """Little: seconds that a request at the end of the line will be held, at the rate of this window."""
        window = self.view.window
        for quantity in _PASSED:
            rate = window.rate(quantity)
            if known(rate) and rate > 0:
                return self.track.mean / rate
            if known(rate) and quantity is Quantity.GATEWAY_QUEUE_TIME and self.track.low > 0:
                return window.seconds  # not one was let through
        return NOT_EXPORTED

    @lazy
    def felt(self) -> bool:
        """First tokens come later than their bound: as the front end sees them, else the wait and the engines' time.

        Where nothing says for how long requests are held, a line in every reading is reason enough to tell.
        """
        if self.view.is_frontend and known(self.view.ttft):
            return self.view.ttft > self.bound
        waits = [wait for wait in (self.held_for, self.live) if known(wait)]
        if not waits:
            return self.track.low > 0
        own = [engine.ttft for engine in self.engines if known(engine.ttft)]
        return max(waits) + max(own, default=0.0) > self.bound

    @lazy
    def share(self) -> Share | None:
        """The line's part of the time to first token at the front end, else of the time of everything inside."""
        gauges = self._of_everything()
        found = [gauges[0]] if gauges is not None and self.track.low > 0 else []
        bounds = list(gauges[1:]) if found and gauges is not None else []
        requests = self.track.mean + self._behind_mean
        of = _ALL
        first = self.view.is_frontend and known(self.view.ttft) and self.view.ttft > 0
        whole = self.view.ttft if first else self.view.window.mean(Quantity.E2E)
        # How a server around an engine measures its own answers differs; a front end's begin on arrival.
        if self.view.is_frontend and known(self.held_for) and known(whole) and whole > 0:
            found.append(min(self.held_for / whole, 1.0))
            requests = max(requests, value_or(self.view.window.delta(Quantity.GATEWAY_QUEUE_TIME), 0.0))
        if first:
            # All of the line lies before the first token: its share there is at least its share of everything.
            of = _FIRST
        return share_between(max(found), (*found, *bounds), requests, of) if found else None

    def _of_everything(self) -> tuple[float, float, float] | None:
        """(value, low, high) by the gauges."""
        held, inside, behind = self.track, self.view.track(Quantity.INFLIGHT), self._behind
        if behind is None and inside is None:
            return None
        if behind is None and inside is not None:
            # Some front ends count what they hold as inside and some do not.
            low = held.low / (held.low + inside.high) if held.low else 0.0
            return held.mean / (held.mean + inside.mean), low, min(held.high / max(inside.low, held.high), 1.0)
        assert behind is not None
        least, usual, most = (inside.low, inside.mean, inside.high) if inside is not None else (0.0, 0.0, 0.0)
        return (
            held.mean / max(usual, held.mean + behind.mean),
            held.low / max(most, held.low + behind.high, 1.0),
            held.high / max(least, held.high + behind.low),
        )

    @lazy
    def _behind(self) -> Track | None:
        """Requests in the engines, whatever they do there."""
        return together([track for engine in self.engines for track in (engine.running, engine.queued)])

    @property
    def _behind_mean(self) -> float:
        return self._behind.mean if self._behind is not None else 0.0


def line_of(view: ReplicaView, engines: Sequence[ReplicaView], limits: Limits) -> Line | None:
    """The line that `view` shows, if it shows one."""
    readable = [engine for engine in engines if engine.queued is not None and engine.running is not None]
    counted = view.track(Quantity.GATEWAY_QUEUE)
    if counted is not None and counted.high > 0:
        return Line(view, readable, counted, Quantity.GATEWAY_QUEUE, limits)
    if not view.is_frontend:
        return None
    beyond = _beyond(view, readable) if len(readable) == len(engines) else None
    if beyond is not None:
        return Line(view, readable, beyond, Quantity.QUEUED, limits)
    pool = view.track(Quantity.POOL_WAITING)
    if pool is None or pool.high == 0 or readable:
        return None
    return Line(view, (), pool, Quantity.POOL_WAITING, limits)


def _beyond(view: ReplicaView, engines: Sequence[ReplicaView]) -> Track | None:
    """Requests without a first response that can be in none of the engines; None unless there are in every reading.

    A request in prefill, or whose KV cache is on its way, has no first response either.
    """
    queued = view.track(Quantity.QUEUED)
    if queued is None or queued.low <= 0 or not engines:
        return None
    inside = together(
        [
            track
            for engine in engines
            for track in (
                engine.queued,
                engine.track(Quantity.PREFILLING) or engine.running,
                engine.track(Quantity.HANDOFF_SENDING),
                engine.track(Quantity.GATEWAY_QUEUE),
            )
        ]
    )
    if inside is None or queued.low <= inside.high:
        return None
    return Track(
        first=max(queued.first - inside.first, 0.0),
        last=max(queued.last - inside.last, 0.0),
        low=queued.low - inside.high,
        high=queued.high - inside.low,
        mean=queued.mean - inside.mean,
        n=queued.n,
    )
