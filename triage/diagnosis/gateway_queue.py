"""Requests held in front of the engines: by flow control, by a router, or by the server around an engine."""

from collections.abc import Sequence

import msgspec

from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.line import Line
from triage.diagnosis.line_evidence import (
    all_slots_used,
    engines_queue,
    engines_say,
    line_evidence,
    pool_says,
    reads_failed,
)
from triage.diagnosis.text import count, many, percent, seconds, verb
from triage.diagnosis.thresholds import KV_FULL, KV_HIGH, SHARE_SUPPORT
from triage.diagnosis.witness import probe_evidence, through_gateway
from triage.domain.absence import known
from triage.domain.quantity import Quantity
from triage.domain.stream import ProbeReading
from triage.domain.verdict import Confidence, Direction, Evidence, Kind, Scope

_DIRECT = "send one short request to an engine and one through the front end: only the second may wait"
_FULL = "add replicas or raise the engines' limits, and watch whether the line in front of them shortens"
_READ = "read the engines' own pages: their queues and KV caches tell what the line waits for"
_CONFOUNDER = "the engines' own first-token times start behind this line and do not contain it"


def judge_line(
    line: Line, probes: Sequence[ProbeReading], *, standing: bool, gateway_unread: bool
) -> Hypothesis | None:
    """Requests wait in front of the engines long enough to be felt, or None.

    standing: an engine behind it is dead or stands still. gateway_unread: a gateway log exists that nobody read.
    """
    share = line.share
    if line.track.last <= 0 or not line.felt or (share is not None and share.value < SHARE_SUPPORT):
        return None
    view = line.view
    tests = _tests(line, probes)
    doubt = _doubt(line, standing=standing, gateway_unread=gateway_unread)
    theirs = engines_queue(line)
    return Hypothesis(
        kind=Kind.QUEUEING,
        detail=None if theirs else "gateway-queue",
        scope=Scope(
            model=view.model or None,
            hop=view.name if view.is_frontend else None,
            replica=None if view.is_frontend else view.name,
        ),
        summary=_summary(line),
        evidence=(*line_evidence(line), *engines_say(line), *pool_says(line), *tests),
        share=share,
        next_test=_READ if not line.engines else _FULL if all_slots_used(line.engines) else _DIRECT,
        tested=any(item.direction is Direction.FOR for item in tests),
        ceiling=Confidence.POSSIBLE if doubt else Confidence.CONFIRMED,
        capped=doubt,
        confounders=(_CONFOUNDER,),
    )


def _doubt(line: Line, *, standing: bool, gateway_unread: bool) -> str:
    """Why the line may be no more than the sign of something else."""
    view, engines = line.view, line.engines
    pool, level = view.track(Quantity.POOL_WAITING), view.track(Quantity.POOL_KV_USAGE)
    if standing:
        return "an engine behind it does not work, and that alone makes a line"
    if line.quantity is Quantity.POOL_WAITING:
        return "the engines themselves were not read"
    if engines_queue(line):
        return "requests wait in the engines behind it as well"
    seen_empty = pool is not None and pool.high == 0 and not reads_failed(view)
    ready = view.track(Quantity.READY_ENDPOINTS)
    if not engines and not seen_empty:
        return "the engines behind it were not read"
    if ready is not None and ready.high > len(engines) and not seen_empty:
        read = len(engines)
        return f"only {read} of {count(ready.high)} engines behind it {verb(read, 'was', 'were')} read"
    full = any(engine.kv is not None and engine.kv.high >= KV_FULL for engine in engines)
    if full or (not engines and level is not None and level.high >= KV_HIGH):
        return "a KV cache behind it is full: room in the engines may be what they wait for"
    if line.quantity is Quantity.QUEUED and ready is None:
        return "an engine that was not read may have them"
    if gateway_unread:
        return "the gateway log was not read, so retries could be the load"
    return "seen in one reading only" if line.track.n < 2 else ""


def _tests(line: Line, probes: Sequence[ProbeReading]) -> list[Evidence]:
    """The same asked on both sides of the line."""
    names = {engine.name for engine in line.engines if engine is not line.view}
    timed = [probe for probe in probes if probe.generates and probe.first_token_s is not None and probe.got_token]
    direct = [probe for probe in timed if probe.target in names]
    through = [probe for probe in timed if probe.target == line.view.name or through_gateway(probe)]
    if not direct:
        return []
    own = max(probe.first_token_s or 0.0 for probe in direct)
    if own > line.bound:
        slow = probe_evidence(direct[0], "engine-late", f"an engine asked directly takes {seconds(own)} as well", 2)
        return [msgspec.structs.replace(slow, direction=Direction.AGAINST)]
    late = next((probe for probe in through if (probe.first_token_s or 0.0) > line.bound), None)
    if late is None:
        return []
    text = f"first token after {seconds(late.first_token_s or 0.0)} through it, {seconds(own)} from an engine directly"
    return [probe_evidence(late, "line-in-front", text, 3)]


def _summary(line: Line) -> str:
    n = line.track.last
    who = f"{many(n, 'request')} {verb(n, 'is', 'are')} held"
    if line.quantity is Quantity.POOL_WAITING:
        text = f"{many(n, 'request')} {verb(n, 'waits', 'wait')} in the engines behind {line.view.name}"
    elif not line.view.is_frontend:
        empty = ", whose own queue is empty" if line.engines and not engines_queue(line) else ""
        text = f"{who} by the server around the engine{empty}"
    elif not line.engines:
        text = f"{who} by {line.view.name} in front of the engines"
    elif engines_queue(line):
        text = f"{who} by {line.view.name}, and requests wait in the engines behind it too"
    elif all_slots_used(line.engines):
        text = f"{who} by {line.view.name}: the engines behind it have no queue, and no slot is free"
    else:
        text = f"{who} by {line.view.name}, while nobody waits in the engines behind it"
    part = f"; {percent(line.share.value)} of the {line.share.of} is waiting there" if line.share is not None else ""
    if line.view.is_frontend and known(line.view.ttft):
        return f"first token takes {seconds(line.view.ttft)} (bound {seconds(line.bound)}): {text}{part}"
    return f"{text}{part}"
