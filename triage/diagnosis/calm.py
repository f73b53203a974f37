"""Healthy, and not enough to tell: both are verdicts, and both need their reasons."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from triage.diagnosis.decode import cpu_evidence
from triage.diagnosis.liveness import dark_targets
from triage.diagnosis.monitoring import is_foreign
from triage.diagnosis.reference import per_token_reference, ttft_bound
from triage.diagnosis.text import count, percent, seconds
from triage.diagnosis.thresholds import (
    ABORTED_SHARE,
    ABOVE_TOP,
    QUANTILE_MINIMUM,
    REFUSED_LEAST,
    REFUSED_SHARE,
    VANISHED_LEAST,
    VANISHED_SHARE,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.situation import NotSeen, Situation
from triage.domain.stream import Completeness, ProbeReading, StreamReading
from triage.domain.verdict import Confidence, Direction, Evidence, Family, Kind, Scope, Verdict

# Requests wait in every reading, and nothing says for how long.
UNMEASURED_QUEUE = "engine.always-waiting"
_GOOD_ENDS = frozenset({Completeness.COMPLETE, Completeness.OPEN, Completeness.NO_TERMINATOR})


class Findings(msgspec.Struct, frozen=True):
    """What speaks against health without naming a cause, and what speaks for it.

    outside: clients leave or are refused; the cause may lie in front of the engine.
    """

    broken: tuple[Evidence, ...]
    outside: tuple[Evidence, ...]
    good: tuple[Evidence, ...]
    unreadable: tuple[str, ...]


def take_stock(situation: Situation, views: Sequence[ReplicaView]) -> Findings:
    """Everything that breaks a limit or shows one kept, over replicas, probes, streams and targets."""
    broken: list[Evidence] = []
    outside: list[Evidence] = []
    good: list[Evidence] = []
    unreadable: list[str] = []
    peers: dict[str, list[ReplicaView]] = defaultdict(list)
    for view in views:
        peers[view.model].append(view)
    for view in views:
        bad, leaving, fine, blind = _replica(view, peers[view.model], situation)
        broken += bad
        outside += leaving
        good += fine
        unreadable += blind
    for status in dark_targets(situation.targets):
        broken.append(
            Evidence(
                id="engine.dark",
                direction=Direction.AGAINST,
                strength=3,
                family=Family.ENGINE,
                text=f"{status.target.name} does not answer ({status.failure or status.state.value})",
                source=status.target.url or status.target.name,
                age_s=status.age_s,
            )
        )
    unreadable += [
        f"{status.target.name}: its metrics are not those of an engine that is known here"
        for status in situation.targets
        if is_foreign(status)
    ]
    broken += [
        Evidence(
            id="engine.target-down",
            direction=Direction.AGAINST,
            strength=2,
            family=Family.ENGINE,
            text=f"monitoring calls {target.url or target.job} down ({target.error or 'no reason given'})",
            source=target.source,
        )
        for target in situation.monitored
        if target.health == "down"
    ]
    broken += cpu_evidence(situation.containers)
    for probe in situation.probes:
        if probe.generates:
            evidence, ok = _probe(probe, situation)
            (good if ok else broken).append(evidence)
    for stream in situation.streams:
        evidence, ok = _stream(stream, situation)
        (good if ok else broken).append(evidence)
    return Findings(tuple(broken), tuple(outside), tuple(good), tuple(dict.fromkeys(unreadable)))


def healthy(situation: Situation, findings: Findings) -> Verdict | None:
    """The healthy verdict, or None when nothing positive carries it or something unread may hide a fault."""
    if not findings.good or findings.broken or findings.outside or findings.unreadable:
        return None
    probed = any(item.family is Family.PROBE for item in findings.good)
    unread = [seen for seen in situation.not_seen if seen.expected]
    # With something unread, one good answer is not enough: the engine's own page must agree.
    if unread and not (probed and any(item.family is Family.ENGINE for item in findings.good)):
        return None
    worked = probed or any(item.id == "engine.works" for item in findings.good)
    surest = Confidence.CONFIRMED if probed else Confidence.LIKELY
    confidence = Confidence.POSSIBLE if unread or not worked else surest
    said = "; ".join(dict.fromkeys(item.text for item in findings.good[:2]))
    caveat = ""
    if unread:
        caveat = f"; not read: {', '.join(sorted({seen.source for seen in unread})[:3])}"
    elif not worked:
        caveat = "; nothing was asked of it, and an idle page looks the same for a lost worker"
    return Verdict(
        kind=Kind.HEALTHY,
        confidence=confidence,
        scope=Scope(),
        summary=f"no limit is broken: {said}{caveat}",
        evidence=findings.good[:12],
        runbook=Kind.HEALTHY.value,
        next_test="" if probed else "send one short request: an answer confirms it",
    )


def insufficient(
    situation: Situation, findings: Findings, views: Sequence[ReplicaView], possible: Sequence[Verdict]
) -> Verdict:
    """Says what is missing and what would mend it; the most telling source first. possible: causes not sure enough."""
    unread = [seen for seen in situation.not_seen if seen.expected]
    reasons = [item.text for item in (*findings.outside, *findings.broken)][:2]
    wanted = _wanted(situation, findings, views, unread)
    if reasons:
        summary = f"{'; '.join(reasons)}: what was read cannot say why"
    elif findings.unreadable:
        summary = f"{findings.unreadable[0]}"
    elif unread:
        names = ", ".join(dict.fromkeys(seen.source for seen in unread[:3]))
        more = f" and {len(unread) - 3} more" if len(unread) > 3 else ""
        so_far = f"{possible[0].kind.value} is possible" if possible else "what was read is unremarkable"
        summary = f"{so_far}, but {names}{more} could not be read and may hold the cause"
    else:
        summary = "no reading says enough to judge"
    return Verdict(
        kind=Kind.INSUFFICIENT_DATA,
        confidence=None,
        scope=Scope(),
        summary=summary,
        evidence=(*findings.outside, *findings.broken, *findings.good)[:12],
        runbook=Kind.INSUFFICIENT_DATA.value,
        next_test=f"collect: {wanted}",
    )


def _wanted(situation: Situation, findings: Findings, views: Sequence[ReplicaView], unread: Sequence[NotSeen]) -> str:
    """The sources that would help, most telling first."""
    wanted: list[str] = []
    dark = dark_targets(situation.targets)
    if dark:
        wanted.append(f"the log and the state of {dark[0].target.name}")
    if findings.outside:
        wanted.append("the gateway's access log for these minutes")
    wanted += [seen.source for seen in unread if seen.source not in wanted]
    if not views:
        wanted.append("two scrapes of the engine, 30 s apart")
    elif all(view.window.single for view in views):
        wanted.append("a second scrape, 30 s after the first")
    if not situation.probes and not situation.streams:
        wanted.append("one streamed request to the replica (a probe)")
    return ", ".join(wanted[:4]) or "a longer window with traffic in it"


# ---- one witness each


def _replica(
    view: ReplicaView, peers: Sequence[ReplicaView], situation: Situation
) -> tuple[list[Evidence], list[Evidence], list[Evidence], list[str]]:
    broken: list[Evidence] = []
    good: list[Evidence] = []
    unreadable: list[str] = []
    window = view.window
    if window.single:
        return broken, [], good, ["only one scrape: nothing can be said about change"]
    if not view.comparable:
        why = "it restarted inside the window" if window.restarted else "its counters went back inside the window"
        return broken, [], good, [f"{view.name}: {why if window.resets else 'no usable interval'}"]
    limits = situation.limits
    if view.busy and view.moved is False:
        broken.append(
            _against(view, "no-progress", f"{view.name}: work is inside and no counter moves", Quantity.RUNNING)
        )
    bound = ttft_bound(view, limits)
    ttft = window.histograms.get(Quantity.TTFT)
    slow = ttft.quantile(0.95) if ttft is not None and ttft.count >= QUANTILE_MINIMUM else None
    if known(view.ttft) and view.ttft > bound.bound:
        text = f"{view.name}: first token takes {seconds(view.ttft)} (bound {seconds(bound.bound)})"
        broken.append(_against(view, "first-token-slow", text, Quantity.TTFT, view.ttft, bound.bound))
    elif slow is not None and slow.low >= bound.bound:
        text = f"{view.name}: first token p95 is above {seconds(slow.low)} (bound {seconds(bound.bound)})"
        broken.append(_against(view, "first-token-slow", text, Quantity.TTFT, slow.low, bound.bound))
    reference = per_token_reference(view, peers, limits)
    running = view.running.mean if view.running is not None else 0.0
    if known(view.per_token) and view.per_token > reference.bound and not reference.explains_by_batch(running):
        against = f"{seconds(reference.value)} ({reference.name})"
        text = f"{view.name}: {seconds(view.per_token)} between tokens against {against}"
        if reference.may_explain_by_batch(view.per_token, running):
            unreadable.append(f"{text}, and how large its batch was then is not known")
        else:
            broken.append(_against(view, "token-slow", text, Quantity.ITL, view.per_token, reference.bound))
    broken += _failures(view, limits.failure_share)
    outside = _leaving(view)
    measured = known(view.ttft) or known(view.per_token) or view.is_prefill_only
    if view.answers_without_tokens:
        # The whole answer is the first thing its user sees.
        e2e = window.mean(Quantity.E2E)
        measured = measured or known(e2e)
        if known(e2e) and e2e > bound.bound:
            text = f"{view.name}: answers take {seconds(e2e)} (bound {seconds(bound.bound)})"
            broken.append(_against(view, "answer-slow", text, Quantity.E2E, e2e, bound.bound))
    if view.always_waiting and not known(view.ttft):
        broken.append(
            _against(view, "always-waiting", f"{view.name}: requests wait in every reading", Quantity.WAITING)
        )
    if view.busy and not measured and not view.is_frontend:
        unreadable.append(_blind(view))
    elif not broken and not outside:
        good += _works(view)
    return broken, outside, good, unreadable


def _works(view: ReplicaView) -> list[Evidence]:
    if view.moved and known(view.generated) and view.generated > 0:
        times = []
        if known(view.ttft):
            times.append(f"first token {seconds(view.ttft)}")
        if known(view.per_token):
            times.append(f"{seconds(view.per_token)} between tokens")
        text = f"{view.name}: {count(view.generated)} tokens in {seconds(view.window.seconds)}"
        return [
            view.evidence(
                "works",
                f"{text}, {', '.join(times)}" if times else text,
                quantity=Quantity.GENERATION_TOKENS,
                value=view.generated,
                unit="tokens",
            )
        ]
    if view.moved and view.answers_without_tokens and known(view.finished):
        e2e = view.window.mean(Quantity.E2E)
        each = f", {seconds(e2e)} each" if known(e2e) else ""
        text = f"{view.name}: {count(view.finished)} requests answered in {seconds(view.window.seconds)}{each}"
        return [view.evidence("works", text, quantity=Quantity.FINISHED, value=view.finished, unit="requests")]
    if view.moved and view.is_prefill_only and known(view.computed_prompt):
        text = f"{view.name}: {count(view.computed_prompt)} prompt tokens in {seconds(view.window.seconds)}"
        return [view.evidence("works", text, quantity=Quantity.PROMPT_TOKENS, value=view.computed_prompt)]
    if view.idle:
        return [
            view.evidence("idle", f"{view.name}: idle, nothing runs or waits", quantity=Quantity.RUNNING, strength=1)
        ]
    return []


def _blind(view: ReplicaView) -> str:
    """Why a working replica cannot be judged."""
    e2e = view.window.histograms.get(Quantity.E2E)
    above = e2e.share_above_top() if e2e is not None else 0.0
    if e2e is not None and known(above) and above > ABOVE_TOP and e2e.edges:
        mean = value_or(e2e.mean(), 0.0)
        return (
            f"{view.name}: {percent(above)} of the answers took longer than the top bucket "
            f"({seconds(e2e.edges[-1])}): the quantile is only 'at least' that, the mean is {seconds(mean)}; "
            "neither first-token nor inter-token time is exported"
        )
    return f"{view.name}: neither first-token nor inter-token time can be read, so slow cannot be told from busy"


def _failures(view: ReplicaView, bound: float) -> list[Evidence]:
    """Answers that failed: counted by the engine or its HTTP layer."""
    failed = value_or(view.window.delta(Quantity.HTTP_FAILED), 0.0)
    fine = value_or(view.window.delta(Quantity.HTTP_ANSWERED), 0.0)
    errors = value_or(view.window.delta(Quantity.FAILED), 0.0)
    finished = value_or(view.finished, 0.0)
    for bad, all_of_them, what, quantity in (
        (failed, failed + fine, "5xx answers", Quantity.HTTP_FAILED),
        (errors, finished, "requests ended in an error", Quantity.FAILED),
    ):
        if bad >= 3 and bad > bound * all_of_them:
            text = f"{view.name}: {count(bad)} {what} of {count(all_of_them)}"
            return [_against(view, "failures", text, quantity, bad / all_of_them if all_of_them else None, bound)]
    return []


def _leaving(view: ReplicaView) -> list[Evidence]:
    """Clients that go away or are sent away: visible here, explained only in front of the engine."""
    found = []
    running = view.running
    inside = value_or(view.window.delta(Quantity.TTFT), 0.0) + (running.first if running else 0.0)
    vanished = value_or(view.vanished, 0.0)
    if vanished >= VANISHED_LEAST and vanished >= VANISHED_SHARE * inside:
        text = f"{view.name}: {count(vanished)} of {count(inside)} started requests left without finishing"
        found.append(_against(view, "vanished", text, Quantity.TTFT, vanished, None))
    finished, aborted = value_or(view.finished, 0.0), value_or(view.window.delta(Quantity.ABORTED), 0.0)
    total = max(finished, aborted)
    if aborted >= 3 and aborted >= ABORTED_SHARE * total:
        text = f"{view.name}: {count(aborted)} of {count(total)} requests ended because the client left"
        found.append(_against(view, "aborted", text, Quantity.ABORTED, aborted, None))
    refused = value_or(view.window.delta(Quantity.HTTP_REFUSED), 0.0)
    answers = refused + value_or(view.window.delta(Quantity.HTTP_ANSWERED), 0.0)
    if refused >= REFUSED_LEAST and refused >= REFUSED_SHARE * answers:
        text = f"{view.name}: {count(refused)} of {count(answers)} HTTP requests were refused (4xx)"
        found.append(_against(view, "refused", text, Quantity.HTTP_REFUSED, refused / answers, REFUSED_SHARE))
    return found


def _against(
    view: ReplicaView,
    name: str,
    text: str,
    quantity: Quantity,
    value: float | None = None,
    threshold: float | None = None,
) -> Evidence:
    return view.evidence(
        name, text, quantity=quantity, direction=Direction.AGAINST, value=value, threshold=threshold, strength=2
    )


def _probe(probe: ProbeReading, situation: Situation) -> tuple[Evidence, bool]:
    bound = situation.limits.first_visible_p95_s
    late = probe.first_token_s is not None and probe.first_token_s > bound
    nobody = probe.auth.lower() in ("none", "no key", "anonymous", "missing")
    ok = probe.got_token and not late and (probe.status or 0) < 400 and not nobody
    if nobody and probe.got_token:
        text = f"{probe.target}: a probe without credentials was answered"
    elif ok:
        text = f"{probe.target}: a probe got its first token in {seconds(probe.first_token_s or probe.total_s or 0)}"
    elif late:
        text = f"{probe.target}: a probe waited {seconds(probe.first_token_s or 0)} for its first token"
    else:
        text = f"{probe.target}: a probe got {probe.error or probe.body or probe.status or 'no answer'}"
    return (
        Evidence(
            id="probe.token" if ok else "probe.failed",
            direction=Direction.FOR if ok else Direction.AGAINST,
            strength=3 if ok else 2,
            family=Family.PROBE,
            text=text,
            value=probe.first_token_s if probe.first_token_s is not None else probe.total_s,
            unit="s",
            threshold=bound,
            n=1,
            source=f"{probe.source} {probe.method} {probe.path}",
        ),
        ok,
    )


def _stream(stream: StreamReading, situation: Situation) -> tuple[Evidence, bool]:
    bound = situation.limits.first_visible_p95_s
    shown = stream.visible_chars > 0 or stream.tool_calls > 0
    late = stream.first_visible_s is not None and stream.first_visible_s > bound
    ok = stream.completeness in _GOOD_ENDS and shown and not late
    if ok:
        first = f", first visible token after {seconds(stream.first_visible_s)}" if stream.first_visible_s else ""
        text = f"a stream was {stream.completeness.value}{first}"
    elif late and stream.first_visible_s is not None:
        text = f"a stream showed its first text after {seconds(stream.first_visible_s)}"
    else:
        text = f"a stream was {stream.completeness.value}" + ("" if shown else " and showed no text")
    return (
        Evidence(
            id="probe.stream" if ok else "probe.stream-bad",
            direction=Direction.FOR if ok else Direction.AGAINST,
            strength=3 if ok else 2,
            family=Family.PROBE,
            text=text,
            value=stream.first_visible_s,
            unit="s",
            threshold=bound,
            n=stream.chunks or None,
            source=stream.source,
        ),
        ok,
    )
