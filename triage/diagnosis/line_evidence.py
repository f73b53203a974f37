"""What is said of a line in front of engines: by what stands there, and by the engines behind it."""

from collections.abc import Sequence

import msgspec

from triage.diagnosis.line import Line
from triage.diagnosis.text import count, many, percent, seconds, verb
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.verdict import Evidence, Family


def engines_queue(line: Line) -> bool:
    """Requests wait in the engines' own queues too, in every reading: then the line in front only goes on with them."""
    if any(engine.always_waiting for engine in line.engines):
        return True
    pool = line.view.track(Quantity.POOL_WAITING)
    return not line.engines and pool is not None and pool.low > 0


def line_evidence(line: Line) -> list[Evidence]:
    """How many are held, and for how long."""
    view, track = line.view, line.track
    lasting = track.low > 0 and track.n >= 2
    found = [
        _front(
            view,
            "held",
            f"{count(track.first)} then {count(track.last)} requests {_WHERE[line.quantity]}",
            quantity=line.quantity,
            strength=3 if lasting and line.quantity is Quantity.GATEWAY_QUEUE else 2 if lasting else 1,
            value=track.last,
            unit="requests",
            threshold=0.0,
        )
    ]
    if known(line.held_for):
        found.append(
            _front(
                view,
                "held-for",
                f"requests that were let through had been held {seconds(line.held_for)} each",
                quantity=Quantity.GATEWAY_QUEUE_TIME,
                value=line.held_for,
                unit="s",
                n=int(value_or(view.window.delta(Quantity.GATEWAY_QUEUE_TIME), 0.0)),
            )
        )
    saturation = view.track(Quantity.GATEWAY_SATURATION)
    if saturation is not None and saturation.low >= 1:
        found.append(
            _front(
                view,
                "saturated",
                f"it takes the engines to be full: saturation {saturation.last:.2g}",
                quantity=Quantity.GATEWAY_SATURATION,
                strength=1,
                value=saturation.last,
                unit="share",
                threshold=1.0,
            )
        )
    return found


_WHERE = {
    Quantity.GATEWAY_QUEUE: "are held in front of the engines",
    Quantity.QUEUED: "without a first response are more than the engines behind have: they are held in front of them",
    Quantity.POOL_WAITING: "wait in the engines' own queues, as the front end last read them",
}


def reads_failed(view: ReplicaView) -> bool:
    """The front end's picture of its engines may be old."""
    return value_or(view.window.delta(Quantity.PICKER_ERRORS), 0.0) > 0


def all_slots_used(engines: Sequence[ReplicaView]) -> bool:
    return bool(engines) and all(
        known(limit := engine.sequence_limit) and engine.running is not None and engine.running.high >= limit
        for engine in engines
    )


def engines_say(line: Line) -> list[Evidence]:
    """The other side: what the engines' own pages show."""
    if not line.engines:
        return []
    waiting = sum(engine.queued.mean for engine in line.engines if engine.queued is not None)
    running = sum(engine.running.last for engine in line.engines if engine.running is not None)
    levels = [engine.kv.high for engine in line.engines if engine.kv is not None]
    own = line.engines[0] is line.view
    where = "in its own queue" if own else f"in {many(len(line.engines), 'engine')} behind it"
    kv = f", KV caches at most {percent(max(levels))} full" if levels else ""
    used = ", all slots used" if all_slots_used(line.engines) else ""
    who = "no request waits" if waiting == 0 else f"{many(waiting, 'request')} {verb(waiting, 'waits', 'wait')}"
    return [
        line.engines[0].evidence(
            "behind-the-line",
            f"{who} {where}; {count(running)} run{used}{kv}",
            quantity=Quantity.WAITING,
            strength=2 if waiting == 0 else 1,
            value=waiting,
            unit="requests",
            threshold=0.0,
        )
    ]


def pool_says(line: Line) -> list[Evidence]:
    """Without the engines' pages: the front end's picture of their queues."""
    view, pool = line.view, line.view.track(Quantity.POOL_WAITING)
    if line.engines or pool is None or line.quantity is Quantity.POOL_WAITING or reads_failed(view):
        return []
    says = "nobody waits" if pool.high == 0 else f"{many(pool.last, 'request')} {verb(pool.last, 'waits', 'wait')}"
    return [
        _front(
            view,
            "pool-waiting",
            f"as it last read the engines, {says} in their own queues",
            quantity=Quantity.POOL_WAITING,
            strength=1,
            value=pool.last,
            unit="requests",
        )
    ]


def _front(
    view: ReplicaView,
    name: str,
    text: str,
    *,
    quantity: Quantity,
    strength: int = 2,
    value: float | None = None,
    unit: str = "",
    threshold: float | None = None,
    n: int | None = None,
) -> Evidence:
    """A statement by what stands in front of the engines; by the engine's own server it is the engine's."""
    said = view.evidence(
        name, text, quantity=quantity, strength=strength, value=value, unit=unit, threshold=threshold, n=n
    )
    if not view.is_frontend:
        return said
    return msgspec.structs.replace(said, id=f"gateway.{name}", family=Family.GATEWAY)
