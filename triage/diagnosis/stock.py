"""What speaks for and against health, witness by witness, without naming a cause."""

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from triage.diagnosis.death import last_words
from triage.diagnosis.decode import cpu_evidence
from triage.diagnosis.interference import frozen_share
from triage.diagnosis.liveness import dark_targets
from triage.diagnosis.monitoring import is_foreign
from triage.diagnosis.peers import Peers
from triage.diagnosis.reference import per_token_reference, ttft_bound
from triage.diagnosis.text import count, many, percent, seconds
from triage.diagnosis.thresholds import (
    ABORTED_SHARE,
    ABOVE_TOP,
    FREEZE_S,
    HIT_QUERIES,
    HITS_FELL,
    QUANTILE_MINIMUM,
    REFUSED_LEAST,
    REFUSED_SHARE,
    SHARE_SUPPORT,
    VANISHED_LEAST,
    VANISHED_SHARE,
    WHOLLY_ON_GPU,
)
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import NO_WINDOW, known, value_or
from triage.domain.derived import hit_share
from triage.domain.logs import LogKind, LogMark
from triage.domain.quantity import Quantity
from triage.domain.situation import Situation
from triage.domain.stream import Completeness, ProbeReading, StreamReading
from triage.domain.verdict import Direction, Evidence, Family

# Requests wait in every reading, and nothing says for how long.
UNMEASURED_QUEUE = "engine.always-waiting"
_GOOD_ENDS = frozenset({Completeness.COMPLETE, Completeness.OPEN, Completeness.NO_TERMINATOR})


class Findings(msgspec.Struct, frozen=True):
    """What speaks against health without naming a cause, and what speaks for it.

    outside: clients leave or are refused; the cause may lie in front of the engine.
    false_alarm: an alarming line in a log, and why it means nothing; "" without one.
    """

    broken: tuple[Evidence, ...]
    outside: tuple[Evidence, ...]
    good: tuple[Evidence, ...]
    unreadable: tuple[str, ...]
    false_alarm: str = ""


def take_stock(situation: Situation, views: Sequence[ReplicaView]) -> Findings:
    """Everything that breaks a limit or shows one kept, over replicas, probes, streams and targets."""
    broken: list[Evidence] = []
    outside: list[Evidence] = []
    good: list[Evidence] = []
    unreadable: list[str] = []
    by_model: dict[str, list[ReplicaView]] = defaultdict(list)
    for view in views:
        by_model[view.model].append(view)
    peers = {model: Peers(own) for model, own in by_model.items()}
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
    unreadable += [
        f"{log.source} ends with: {fatal.text}"
        for log in situation.logs
        if log.kind is LogKind.ENGINE and (fatal := last_words(log)) is not None
    ]
    unreadable += [
        f"{model.name}: only {percent(model.on_gpu)} of it is in GPU memory, so it may be slow"
        for model in situation.loaded_models
        if model.on_gpu is not None and model.on_gpu < WHOLLY_ON_GPU
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
    if any(map(_nobody, situation.probes)):
        unreadable.append("requests without credentials were sent on purpose, and who may reach what is not judged yet")
    for probe in situation.probes:
        if probe.generates:
            evidence, ok = _probe(probe, situation)
            (good if ok else broken).append(evidence)
    for stream in situation.streams:
        if not stream.timed and (stream.reasoning_tokens or stream.reasoning_chars) and stream.visible_chars:
            # When its text became visible is the question, and it does not say.
            unreadable.append(
                f"{stream.source}: part of this answer is reasoning, and it says nothing of when text came"
            )
            continue
        evidence, ok = _stream(stream, situation)
        (good if ok else broken).append(evidence)
    return Findings(
        tuple(broken), tuple(outside), tuple(good), tuple(dict.fromkeys(unreadable)), _false_alarm(situation, views)
    )


def _false_alarm(situation: Situation, views: Sequence[ReplicaView]) -> str:
    """Engines warn of a hang while they only wait for work."""
    warned = any(log.last(LogMark.STALL_WARNING) is not None for log in situation.logs)
    idle = bool(views) and all(view.idle for view in views)
    return "the warning in the log is harmless while nothing waits" if warned and idle else ""


def _replica(
    view: ReplicaView, peers: Peers, situation: Situation
) -> tuple[list[Evidence], list[Evidence], list[Evidence], list[str]]:
    broken: list[Evidence] = []
    good: list[Evidence] = []
    unreadable: list[str] = []
    window = view.window
    if window.single:
        return broken, [], good, ["only one scrape: nothing can be said about change"]
    if not view.comparable:
        why = "the engine restarted inside the window" if window.restarted else "counters went back inside the window"
        return broken, [], good, [f"{view.prefix}{why if window.resets else 'no usable interval'}"]
    limits = situation.limits
    if view.busy and view.moved is False:
        broken.append(
            _against(view, "no-progress", f"{view.prefix}work is inside and no counter moves", Quantity.RUNNING)
        )
    bound = ttft_bound(view, limits)
    ttft = window.histograms.get(Quantity.TTFT)
    slow = ttft.quantile(0.95) if ttft is not None and ttft.count >= QUANTILE_MINIMUM else None
    if known(view.ttft) and view.ttft > bound.bound:
        text = f"{view.prefix}first token takes {seconds(view.ttft)} (bound {seconds(bound.bound)})"
        broken.append(_against(view, "first-token-slow", text, Quantity.TTFT, view.ttft, bound.bound))
    elif slow is not None and slow.low >= bound.bound:
        text = f"{view.prefix}first token p95 is above {seconds(slow.low)} (bound {seconds(bound.bound)})"
        broken.append(_against(view, "first-token-slow", text, Quantity.TTFT, slow.low, bound.bound))
    reference = per_token_reference(view, peers, limits)
    running = view.running.mean if view.running is not None else 0.0
    if known(view.per_token) and view.per_token > reference.bound and not reference.explains_by_batch(running):
        against = f"{seconds(reference.value)} ({reference.name})"
        text = f"{view.prefix}{seconds(view.per_token)} between tokens against {against}"
        if reference.may_explain_by_batch(view.per_token, running):
            unreadable.append(f"{text}, and how large its batch was then is not known")
        else:
            broken.append(_against(view, "token-slow", text, Quantity.ITL, view.per_token, reference.bound))
    fell = _hits_fell(view)
    if fell is not None:
        broken.append(fell)
    frozen = frozen_share(window.histograms.get(Quantity.ITL))
    if frozen >= SHARE_SUPPORT:
        text = f"{view.prefix}{percent(frozen)} of the time between tokens passes in gaps above {seconds(FREEZE_S)}"
        broken.append(_against(view, "token-gaps", text, Quantity.ITL, frozen, SHARE_SUPPORT))
    broken += _failures(view, limits.failure_share)
    outside = _leaving(view)
    measured = known(view.ttft) or known(view.per_token) or view.is_prefill_only
    if view.answers_without_tokens:
        # The whole answer is the first thing its user sees.
        e2e = window.mean(Quantity.E2E)
        measured = measured or known(e2e)
        if known(e2e) and e2e > bound.bound:
            text = f"{view.prefix}answers take {seconds(e2e)} (bound {seconds(bound.bound)})"
            broken.append(_against(view, "answer-slow", text, Quantity.E2E, e2e, bound.bound))
    if view.always_waiting and not known(view.ttft):
        broken.append(
            _against(view, "always-waiting", f"{view.prefix}requests wait in every reading", Quantity.WAITING)
        )
    if view.busy and not measured and not view.is_frontend:
        unreadable.append(_blind(view))
    elif not broken and not outside:
        good += _works(view)
    return broken, outside, good, unreadable


def _hits_fell(view: ReplicaView) -> Evidence | None:
    """Far fewer prompt tokens come from the prefix cache than in the baseline window, else than since start."""
    now = hit_share(view.window)
    queries = view.window.delta(Quantity.PREFIX_QUERIES)
    if not known(now) or not known(queries) or queries < HIT_QUERIES:
        return None
    baseline = view.replica.baseline
    before, name = (hit_share(baseline), "the baseline window") if baseline is not None else (NO_WINDOW, "")
    if not known(before):
        values = view.window.first.values
        asked, found = values.get(Quantity.PREFIX_QUERIES, 0.0), values.get(Quantity.PREFIX_HITS, 0.0)
        before, name = (found / asked, "its mean since start") if asked >= HIT_QUERIES else (NO_WINDOW, "")
    if not known(before) or before - now < HITS_FELL:
        return None
    text = f"{view.prefix}prefix cache hits fell to {percent(now)} from {percent(before)} ({name})"
    return _against(view, "hits-fell", text, Quantity.PREFIX_HITS, now, before - HITS_FELL)


def _works(view: ReplicaView) -> list[Evidence]:
    if view.moved and known(view.generated) and view.generated > 0:
        times = []
        if known(view.ttft):
            times.append(f"first token {seconds(view.ttft)}")
        if known(view.per_token):
            times.append(f"{seconds(view.per_token)} between tokens")
        text = f"{view.prefix}{many(view.generated, 'token')} in {seconds(view.window.seconds)}"
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
        text = f"{view.prefix}{many(view.finished, 'request')} answered in {seconds(view.window.seconds)}{each}"
        return [view.evidence("works", text, quantity=Quantity.FINISHED, value=view.finished, unit="requests")]
    if view.moved and view.is_prefill_only and known(view.computed_prompt):
        text = f"{view.prefix}{count(view.computed_prompt)} prompt tokens in {seconds(view.window.seconds)}"
        return [view.evidence("works", text, quantity=Quantity.PROMPT_TOKENS, value=view.computed_prompt)]
    if view.idle:
        return [view.evidence("idle", f"{view.prefix}nothing runs or waits", quantity=Quantity.RUNNING, strength=1)]
    return []


def _blind(view: ReplicaView) -> str:
    """Why a working replica cannot be judged."""
    e2e = view.window.histograms.get(Quantity.E2E)
    above = e2e.share_above_top() if e2e is not None else 0.0
    if e2e is not None and known(above) and above > ABOVE_TOP and e2e.edges:
        mean = value_or(e2e.mean(), 0.0)
        return (
            f"{view.prefix}{percent(above)} of the answers took longer than the top bucket "
            f"({seconds(e2e.edges[-1])}): the quantile is only 'at least' that, the mean is {seconds(mean)}; "
            "neither first-token nor inter-token time is exported"
        )
    return f"{view.prefix}neither first-token nor inter-token time can be read, so slow cannot be told from busy"


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
            text = f"{view.prefix}{count(bad)} {what} of {count(all_of_them)}"
            return [_against(view, "failures", text, quantity, bad / all_of_them if all_of_them else None, bound)]
    return []


def _leaving(view: ReplicaView) -> list[Evidence]:
    """Clients that go away or are sent away: visible here, explained only in front of the engine."""
    found = []
    running = view.running
    inside = value_or(view.window.delta(Quantity.TTFT), 0.0) + (running.first if running else 0.0)
    vanished = value_or(view.vanished, 0.0)
    if vanished >= VANISHED_LEAST and vanished >= VANISHED_SHARE * inside:
        text = f"{view.prefix}{count(vanished)} of {count(inside)} started requests left without finishing"
        found.append(_against(view, "vanished", text, Quantity.TTFT, vanished, None))
    finished, aborted = value_or(view.finished, 0.0), value_or(view.window.delta(Quantity.ABORTED), 0.0)
    total = max(finished, aborted)
    if aborted >= 3 and aborted >= ABORTED_SHARE * total:
        text = f"{view.prefix}{count(aborted)} of {count(total)} requests ended because the client left"
        found.append(_against(view, "aborted", text, Quantity.ABORTED, aborted, None))
    refused = value_or(view.window.delta(Quantity.HTTP_REFUSED), 0.0)
    answers = refused + value_or(view.window.delta(Quantity.HTTP_ANSWERED), 0.0)
    if refused >= REFUSED_LEAST and refused >= REFUSED_SHARE * answers:
        text = f"{view.prefix}{count(refused)} of {count(answers)} HTTP requests were refused (4xx)"
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


def _nobody(probe: ProbeReading) -> bool:
    """Sent without credentials."""
    return probe.auth.lower() in ("none", "no key", "anonymous", "missing")


def _probe(probe: ProbeReading, situation: Situation) -> tuple[Evidence, bool]:
    bound = situation.limits.first_visible_p95_s
    late = probe.first_token_s is not None and probe.first_token_s > bound
    nobody = _nobody(probe)
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
            strength=(3 if stream.timed else 1) if ok else 2,
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
