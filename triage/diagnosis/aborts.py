"""Clients that leave before their answer is finished, as far as the engine and recorded answers show it.

The engine sees only that a request went away. Whether a user, a client's time-out or a limit at a hop ended it
stands in the access log of whatever is in front.
"""

from collections.abc import Sequence

from triage.diagnosis.hits import hits_before, hits_in
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.text import count, many, percent, seconds
from triage.diagnosis.thresholds import (
    ABORTED_LEAST,
    ABORTED_SHARE,
    HITS_FELL,
    LEFT_WITHIN_S,
    REPEATED_SHARE,
    VANISHED_LEAST,
    VANISHED_SHARE,
)
from triage.diagnosis.view import UNNAMED_TARGET, ReplicaView
from triage.diagnosis.witness import answer_evidence
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.stream import Completeness, StreamReading
from triage.domain.verdict import Confidence, Direction, Evidence, Kind, Scope

_CAPPED = "who ended them, a user or a limit on the way, only the access log in front of the engine tells"


def judge_aborts(view: ReplicaView, streams: Sequence[StreamReading]) -> Hypothesis | None:
    """Requests of one replica that ended early while it worked; never surer than possible without an access log."""
    gone = started_and_gone(view)
    evidence = [item for item in (gone, _aborted(view)) if item is not None]
    if not evidence or not view.moved:
        return None
    evidence += [item for stream in streams if (item := _client_left(stream)) is not None][:1]
    evidence += _cut_by_server(streams)
    repeated = _repeated(view)
    if repeated is not None:
        evidence.append(repeated)
    stay = _stay(view) if gone is not None else None
    how_long = f", on average after {seconds(stay)}" if stay is not None else ""
    return Hypothesis(
        kind=Kind.CLIENT_ABORT,
        detail="while-streaming" if gone is not None else None,
        scope=Scope(model=view.model or None, replica=view.name if view.name != UNNAMED_TARGET else None),
        summary=f"{evidence[0].text}{how_long}, while tokens flow",
        evidence=tuple(evidence),
        next_test="read the access log in front: flag DC or status 499 at varying ages is clients, one age is a limit",
        ceiling=Confidence.POSSIBLE,
        capped=_CAPPED,
        confounders=("a hop that gives up and a user who gives up look the same to the engine",),
    )


def started_and_gone(view: ReplicaView) -> Evidence | None:
    """First tokens of this window that neither finished nor still run.

    A fall of the running gauge is left out of it: gauges that nobody rewrote show the past.
    """
    first, finished, running = view.window.delta(Quantity.TTFT), view.finished, view.running
    if not known(first) or not known(finished) or running is None:
        return None
    gone = first - finished - max(running.last - running.first, 0.0)
    if gone < VANISHED_LEAST or gone < VANISHED_SHARE * first:
        return None
    text = f"{view.prefix}{count(gone)} of {count(first)} requests that began in this window left unfinished"
    return view.evidence("vanished", text, quantity=Quantity.TTFT, strength=2, value=gone, unit="requests")


def _aborted(view: ReplicaView) -> Evidence | None:
    aborted, finished = value_or(view.window.delta(Quantity.ABORTED), 0.0), value_or(view.finished, 0.0)
    total = max(finished, aborted)
    if aborted < ABORTED_LEAST or aborted < ABORTED_SHARE * total:
        return None
    text = f"{view.prefix}{count(aborted)} of {many(total, 'request')} ended as aborted"
    return view.evidence("aborted", text, quantity=Quantity.ABORTED, strength=2, value=aborted, unit="requests")


def _stay(view: ReplicaView) -> float | None:
    """Mean seconds that the unfinished ones were inside: all time inside, less that of the finished ones."""
    running, e2e = view.running, view.window.histograms.get(Quantity.E2E)
    first, finished = view.window.delta(Quantity.TTFT), view.finished
    if running is None or e2e is None or not known(first) or not known(finished) or first <= finished:
        return None
    stay = (running.mean * view.window.seconds - e2e.total) / (first - finished)
    return stay if stay > 0 else None


def _client_left(stream: StreamReading) -> Evidence | None:
    """A recorded answer whose client stopped while text still came."""
    if not stream.left or stream.completeness is not Completeness.OPEN or not stream.chunks:
        return None
    last, closed = stream.last_token_s, stream.closed_s
    if last is not None and closed is not None and closed - last > LEFT_WITHIN_S:
        return None  # it left because nothing came
    at = f" after {seconds(closed)}" if closed is not None else ""
    text = f"a recorded client left{at}, while text still came"
    return answer_evidence(stream, "client-left", text, 2, value=closed, unit="s")


def _cut_by_server(streams: Sequence[StreamReading]) -> list[Evidence]:
    """A recorded answer that the other side cut: then requests go missing for that reason."""
    cut = [stream for stream in streams if stream.completeness is Completeness.TRUNCATED and stream.chunks]
    if not cut:
        return []
    at = f" after {seconds(cut[0].closed_s)}" if cut[0].closed_s else ""
    text = f"a recorded answer was cut{at} by the other side: its client did not leave"
    return [answer_evidence(cut[0], "cut-by-server", text, 3, direction=Direction.AGAINST)]


def _repeated(view: ReplicaView) -> Evidence | None:
    """Many more prefix hits than before: the same prompts come again, so something retries what it gave up."""
    hits, past = hits_in(view.window), hits_before(view.window)
    if hits is None or hits.asked <= 0:
        return None
    now, before = hits.share, past.share if past is not None else 0.0
    if now < REPEATED_SHARE or now - before < HITS_FELL:
        return None
    text = f"{view.prefix}{percent(now)} of the prompts come again (before: {percent(before)}): work is retried"
    return view.evidence(
        "prompts-repeat", text, quantity=Quantity.PREFIX_HITS, strength=2, direction=Direction.AGAINST, value=now
    )
