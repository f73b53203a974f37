"""Which gauges say something of now: idle engines leave some at what they were."""

from triage.domain.quantity import Quantity
from triage.domain.window import Window

# Waits that more room would not shorten.
HELD = (Quantity.WAITING_DEFERRED, Quantity.GRAMMAR_QUEUE, Quantity.HANDOFF_QUEUE)
# Gauges that count requests: any of them above zero means that work is inside.
_INSIDE = (
    Quantity.RUNNING,
    Quantity.WAITING,
    *HELD,
    Quantity.INFLIGHT,
    Quantity.SWAPPED,
    Quantity.HANDOFF_SENDING,
    Quantity.GATEWAY_QUEUE,
    Quantity.QUEUED,
)
_REQUESTS = frozenset({*_INSIDE, Quantity.WAITING_CAPACITY, Quantity.PREFILLING})
_NONE: frozenset[Quantity] = frozenset()


def nothing_inside(window: Window) -> bool:
    """No request ran or waited in any reading, by at least one gauge that counts them."""
    gauges = window.gauges
    tracks = [track for quantity in _INSIDE if (track := gauges.get(quantity)) is not None]
    return bool(tracks) and all(track.high == 0 for track in tracks)


def stale_gauges(window: Window, idle: bool, moved: bool) -> frozenset[Quantity]:
    """Levels that only show the last work.

    Numbers of requests stay, whoever writes them: zero is true, and more without progress may be a stall. Where they
    linger too, the levels beside them do not count when nothing moved, not even one of them.
    """
    lingering = window.last.lingering
    if idle:
        return lingering - _REQUESTS
    if Quantity.RUNNING not in lingering or window.single or moved:
        return _NONE
    tracks = [track for quantity in lingering if (track := window.gauges.get(quantity)) is not None]
    return lingering - _REQUESTS if all(track.low == track.high for track in tracks) else _NONE
