"""The way from a user to a replica and back: where a call is sent, how often, and what cuts it short."""

import math
import random
import zlib
from collections.abc import Callable

from triage.lab.batching.refusal import Reason, Refused
from triage.lab.batching.request import Sequence
from triage.lab.world.call import Attempt, Call, Outcome
from triage.lab.world.hop import Balance, Hop
from triage.lab.world.replica import Replica
from triage.lab.world.spec import Condition
from triage.lab.world.timeline import Timeline

# One way between two processes in one room.
_HOP_S = 0.0005
_RETRY_BACK_OFF_S = 0.025
# Sums of moments are off by less.
_HAIR_S = 1e-6
_REFUSED = "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}"
# How often silence is looked at, as part of the limit on it.
_LOOKS = 8
# Affinity gives way when a replica has more than so many times the mean (Envoy's hash_balance_factor of 150 to 200).
_UNEVEN = 1.75

Ended = Callable[[Call, float], None]


class Gateway:
    """Of one service. Calls end through `ended`, each once."""

    def __init__(self, hop: Hop, replicas: list[Replica], timeline: Timeline, seed: str, ended: Ended) -> None:
        self.hop = hop
        self._replicas = {replica.name: replica for replica in replicas}
        self._timeline = timeline
        self._rng = random.Random(f"{seed}/gateway")  # noqa: S311 - a reproducible model, no secret
        self._ended = ended
        self.listed: list[str] = []
        self._open: dict[str, int] = dict.fromkeys(self._replicas, 0)
        self._turn = 0

    # ---- the list of replicas, which lags behind them

    def heard(self, replica: Replica, at: float) -> None:
        """A replica's readiness has changed; the list follows later."""
        self._timeline.at(at + self.hop.lag_s, lambda _: self._list(replica))

    def list_now(self) -> None:
        self.listed = [name for name, replica in self._replicas.items() if self._wanted(replica)]

    def _list(self, replica: Replica) -> None:
        wanted = self._wanted(replica)
        if wanted and replica.name not in self.listed:
            self.listed.append(replica.name)
            self.listed.sort()
        elif not wanted and replica.name in self.listed:
            self.listed.remove(replica.name)

    def _wanted(self, replica: Replica) -> bool:
        seen = replica.listening if self.hop.by_port else replica.healthy
        return seen and replica.name not in self.hop.unlisted

    # ---- one call

    def take(self, call: Call, at: float) -> None:
        hop = self.hop
        if hop.checks_keys and not call.identity:
            self._end(call, at, Outcome.REFUSED, 401, "", "missing_api_key")
            return
        if hop.timeout_s is not None:
            self._timeline.at(at + hop.timeout_s, lambda moment: self._timed_out(call, moment))
        if hop.idle_s is not None:
            self._watch(call, at, at + hop.idle_s)
        self._try(call, at)

    def leave(self, call: Call, at: float) -> None:
        """The user has gone."""
        if call.open:
            self._drop(call, at)
            self._end(call, at, Outcome.LEFT, call.status, "DC", "downstream_remote_disconnect")

    def _try(self, call: Call, at: float) -> None:
        if not call.open:
            return
        name = self._pick(call)
        if name is None:
            self._end(call, at, Outcome.FAILED, 503, "UH", "no_healthy_upstream")
            return
        attempt = Attempt(name, at)
        call.attempts.append(attempt)
        replica = self._replicas.get(name)
        if replica is None or not replica.listening:
            self._failed(call, attempt, at, 503, "UF", _REFUSED)
            return
        if self.hop.keepalive_race and self._rng.random() < self.hop.keepalive_race:
            self._failed(call, attempt, at, 503, "UC", "upstream_reset_before_response_started")
            return
        try:
            attempt.sequence = replica.submit(call.request, at + _HOP_S, _Ear(self, call, attempt, replica))
        except Refused as refused:
            status = refused.reason.value
            attempt.status = status
            if refused.reason is Reason.CONTEXT:
                self._close(attempt, at)
                self._end(call, at, Outcome.REFUSED, status, "", "via_upstream")
            else:
                self._failed(call, attempt, at, status, "", "via_upstream")
            return
        self._open[name] += 1
        self._spoil(call, replica.condition)
        per_try = self.hop.per_try_s
        if per_try is not None:
            self._timeline.at(at + per_try, lambda moment: self._try_timed_out(call, attempt, moment))
        if self.hop.cuts and call.request.streaming and self._rng.random() < self.hop.cuts:
            after = self._rng.uniform(0.5, 6.0)
            self._timeline.at(at + after, lambda moment: self._cut(call, attempt, moment))

    def _pick(self, call: Call) -> str | None:
        hop = self.hop
        names = [*self.listed, *[f"ghost-{i}" for i in range(hop.ghosts)]]
        if not names:
            return None
        place = zlib.crc32(call.session.encode())
        if hop.pinned and (place >> 8) % 1000 < 1000 * hop.pinned:
            return names[0]
        self._turn += 1
        if hop.balance is Balance.SESSION and not (hop.loose and self._rng.random() < hop.loose):
            return self._bounded(names, place)
        if hop.balance is not Balance.LEAST:
            return names[self._turn % len(names)]
        start = self._turn % len(names)
        turned = names[start:] + names[:start]
        return min(turned, key=lambda name: self._open.get(name, 0))

    def _bounded(self, names: list[str], place: int) -> str:
        """The session's own replica, or the next one that does not have far more than its part already."""
        counts = [self._open.get(name, 0) for name in names]
        most = _UNEVEN * (sum(counts) + 1) / len(names)
        for step in range(len(names)):
            at = (place + step) % len(names)
            if counts[at] < most:
                return names[at]
        return names[place % len(names)]

    # ---- how it ends

    def answered(self, call: Call, attempt: Attempt, at: float) -> None:
        """The engine has sent its last token."""
        self._close(attempt, at)
        if call.open:
            if math.isnan(call.first_byte):
                call.first_byte = at
            call.status = attempt.status = 200
            self._end(call, at, Outcome.COMPLETE, 200, "", "via_upstream")

    def _spoil(self, call: Call, condition: Condition) -> None:
        """What the engine's parsers will do to the answer."""
        call.blank = bool(condition.blank) and self._rng.random() < condition.blank
        call.unparsed = call.request.calls_tool and self._rng.random() < condition.unparsed

    def lost(self, call: Call, attempt: Attempt, at: float) -> None:
        """The engine died under it."""
        self._close(attempt, at)
        if not call.open:
            return
        if math.isnan(attempt.first_byte):
            self._failed(call, attempt, at, 503, "UC", "upstream_reset_before_response_started")
        else:
            details = "upstream_reset_after_response_started"
            self._end(call, at, Outcome.CUT, 200, "UPE", details)

    def _failed(self, call: Call, attempt: Attempt, at: float, status: int, flag: str, details: str) -> None:
        """A try that brought nothing: another one while there are any left."""
        if math.isnan(attempt.ended):
            self._close(attempt, at)
        attempt.status, attempt.why = status, details
        if len(call.attempts) <= self.hop.retries:
            wait = _RETRY_BACK_OFF_S * self._rng.uniform(1.0, 2.0 ** len(call.attempts))
            self._timeline.at(at + wait, lambda moment: self._try(call, moment))
            return
        flags = ",".join(word for word in ("URX" if self.hop.retries else "", flag) if word)
        self._end(call, at, Outcome.FAILED, status, flags, details)

    def _try_timed_out(self, call: Call, attempt: Attempt, at: float) -> None:
        if call.open and math.isnan(attempt.ended) and math.isnan(attempt.first_byte):
            self._abort(attempt, at)
            self._failed(call, attempt, at, 504, "UT", "upstream_per_try_timeout")

    def _timed_out(self, call: Call, at: float) -> None:
        if call.open:
            self._stop(call, at, "UT", "response_timeout")

    def _cut(self, call: Call, attempt: Attempt, at: float) -> None:
        if call.open and attempt is call.attempts[-1] and not math.isnan(attempt.first_byte):
            self._abort(attempt, at)
            self._end(call, at, Outcome.CUT, 200, "UPE", "upstream_reset_after_response_started")

    def _stop(self, call: Call, at: float, flag: str, details: str) -> None:
        self._drop(call, at)
        started = not math.isnan(call.first_byte)
        self._end(call, at, Outcome.CUT if started else Outcome.FAILED, 200 if started else 504, flag, details)

    def _watch(self, call: Call, begun: float, due: float) -> None:
        self._timeline.at(due, lambda moment: self._look(call, begun, moment))

    def _look(self, call: Call, begun: float, at: float) -> None:
        """Silence is known to one part in eight of its limit: what flows is not told byte by byte."""
        idle = self.hop.idle_s
        if not call.open or idle is None:
            return
        if self._flows(call):
            call.silent_since = math.nan
            self._watch(call, begun, at + idle / _LOOKS)
            return
        if math.isnan(call.silent_since):
            call.silent_since = begun if math.isnan(call.first_byte) else at
        if at - call.silent_since >= idle - _HAIR_S:
            self._stop(call, at, "SI", "stream_idle_timeout")
        else:
            self._watch(call, begun, min(at + idle / _LOOKS, call.silent_since + idle))

    def _flows(self, call: Call) -> bool:
        """Bytes come now: the answer is being written, and is not held back anywhere."""
        sequence = call.answer
        if sequence is None or not call.request.streaming or math.isnan(call.first_byte) or self.hop.holds:
            return False
        replica = self._replicas.get(call.attempts[-1].replica)
        hidden = not call.request.shows_reasoning and math.isnan(sequence.first_visible)
        return replica is not None and not replica.engine.halted and not hidden

    # ---- small things

    def _drop(self, call: Call, at: float) -> None:
        if call.attempts and math.isnan(call.attempts[-1].ended):
            self._abort(call.attempts[-1], at)

    def _abort(self, attempt: Attempt, at: float) -> None:
        replica = self._replicas.get(attempt.replica)
        if replica is not None and attempt.sequence is not None:
            replica.engine.abort(attempt.sequence, at)
        self._close(attempt, at)

    def _close(self, attempt: Attempt, at: float) -> None:
        attempt.ended = at
        replica = self._replicas.get(attempt.replica)
        if replica is not None and attempt.sequence is not None:
            self._open[attempt.replica] -= 1
            attempt.at_end = replica.engine.clocks.look()

    def _end(self, call: Call, at: float, outcome: Outcome, status: int, flags: str, details: str) -> None:
        call.outcome, call.status, call.flags, call.details, call.ended = outcome, status, flags, details, at
        self._ended(call, at)


class _Ear:
    """Hears an engine for one attempt."""

    __slots__ = ("_attempt", "_call", "_gateway", "_replica")

    def __init__(self, gateway: Gateway, call: Call, attempt: Attempt, replica: Replica) -> None:
        self._gateway = gateway
        self._call = call
        self._attempt = attempt
        self._replica = replica

    def first_token(self, sequence: Sequence, at: float) -> None:
        """The first byte goes out with it, unless it is hidden reasoning or the answer is wanted whole."""
        if sequence.request.streaming and (sequence.request.shows_reasoning or not sequence.request.reasoning_tokens):
            self._byte(at)

    def first_visible(self, sequence: Sequence, at: float) -> None:
        if sequence.request.streaming:
            self._byte(at)
            if self._call.open and not self._gateway.hop.holds:
                self._call.first_visible = at

    def ended(self, sequence: Sequence, at: float) -> None:
        if sequence.finished == at and sequence.phase.value == "lost":
            self._gateway.lost(self._call, self._attempt, at)
            return
        if self._call.open and math.isnan(self._call.first_visible) and not math.isnan(sequence.first_visible):
            self._call.first_visible = at
        self._gateway.answered(self._call, self._attempt, at)

    def _byte(self, at: float) -> None:
        if math.isnan(self._attempt.first_byte):
            self._attempt.first_byte = at
            self._attempt.status = 200
            if self._call.open and math.isnan(self._call.first_byte) and not self._gateway.hop.holds:
                self._call.first_byte = at
                self._call.status = 200
