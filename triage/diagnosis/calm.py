"""Healthy, and not enough to tell: both are verdicts, and both need their reasons."""

from collections.abc import Sequence

from triage.diagnosis.answers_stock import ALL_REASONING
from triage.diagnosis.fall import HITS_FELL_ID
from triage.diagnosis.liveness import dark_targets
from triage.diagnosis.stock import Findings
from triage.diagnosis.view import ReplicaView
from triage.diagnosis.witness import through_gateway
from triage.domain.logs import LogKind
from triage.domain.situation import NOT_CONFIGURED, NotSeen, Situation
from triage.domain.verdict import Confidence, Family, Kind, Scope, Verdict

_TEXT_MUST_COME = "send one longer request: text must come"


def healthy(situation: Situation, findings: Findings) -> Verdict | None:
    """The healthy verdict, or None when nothing positive carries it or something unread may hide a fault."""
    if not findings.good or findings.broken or findings.outside or findings.unreadable:
        return None
    probed = any(item.family is Family.PROBE and item.strength >= 2 for item in findings.good)
    unread = [seen for seen in situation.not_seen if seen.expected]
    # Somebody put the unread file there for a reason: health needs the engine's page and an answered request, and
    # either that request came through the gateway whose log it is, or the alarm that was read means nothing.
    agree = probed and any(item.family is Family.ENGINE for item in findings.good)
    through = any(through_gateway(probe) and probe.generates for probe in situation.probes)
    covered = through and all(Kind.GATEWAY_TIMEOUT.value in seen.costs for seen in unread)
    # An alert concludes, from things that may not have been read here: it is no proof, but no reason for calm either.
    firing = sorted({alert.name for alert in situation.alerts if alert.state == "firing"})
    if unread and (firing or not agree or not (covered or findings.false_alarm)):
        return None
    worked = probed or any(item.id == "engine.works" for item in findings.good)
    unseen = [item.text for item in findings.good if item.id == ALL_REASONING]
    surest = Confidence.CONFIRMED if probed and not unseen else Confidence.LIKELY
    unfelt = [item.text for item in findings.good if item.id == HITS_FELL_ID]
    confidence = Confidence.POSSIBLE if unread or not worked or firing or unfelt else surest
    said = "; ".join(dict.fromkeys(item.text for item in findings.good[:2]))
    caveat = f"; {findings.false_alarm}" if findings.false_alarm else ""
    if unread:
        caveat += f"; not read: {', '.join(sorted({seen.source for seen in unread})[:3])}"
    elif any(item.family is Family.PROBE for item in findings.good) and not probed:
        caveat += "; an answer without times says nothing about speed"
    elif not worked:
        caveat = "; nothing was asked of it, and an idle page looks the same for a lost worker"
    caveat += f"; {unseen[0]}" if unseen else ""
    caveat += f"; {unfelt[0]}, and nobody waits for it" if unfelt else ""
    if firing:
        caveat += f"; nothing that was read agrees with the firing alert {', '.join(firing[:3])}"
    return Verdict(
        kind=Kind.HEALTHY,
        confidence=confidence,
        scope=Scope(),
        summary=f"no limit is broken: {said}{caveat}",
        evidence=findings.good[:12],
        runbook=Kind.HEALTHY.value,
        next_test=_TEXT_MUST_COME if unseen else "" if probed else "send one short request: an answer confirms it",
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
        so_far = "what was read is unremarkable" if findings.good else "nothing that was read tells"
        so_far = f"{possible[0].kind.value} is possible" if possible else so_far
        summary = f"{so_far}, but {names}{more} could not be read and may hold the cause"
    elif possible:
        summary = f"{possible[0].kind.value} is possible, and nothing that was read is enough to say more"
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


def _probe_failed(situation: Situation) -> bool:
    return any(seen.source == "probe" and seen.why != NOT_CONFIGURED for seen in situation.not_seen)


def _wanted(situation: Situation, findings: Findings, views: Sequence[ReplicaView], unread: Sequence[NotSeen]) -> str:
    """What to look at by hand and what to collect, most telling first."""
    by_hand = list(dict.fromkeys(seen.source for seen in unread))
    wanted: list[str] = []
    dark = dark_targets(situation.targets)
    if dark:
        wanted.append(f"the log and the state of {dark[0].target.name}")
    if findings.outside and not any(log.kind is LogKind.ACCESS for log in situation.logs):
        wanted.append("the gateway's access log for these minutes")
    if any(item.id == "engine.refused" for item in findings.outside):
        wanted.append("the body of one refused answer, as response-400.json")
    if not views:
        # An engine that told which models it holds has no page to scrape.
        pageless = bool(situation.loaded_models) or any(status.processes is not None for status in situation.targets)
        wanted += [] if pageless else ["two scrapes of the engine, 30 s apart"]
    elif all(view.window.single for view in views):
        wanted.append("a second scrape, 30 s after the first")
    elif not all(view.comparable for view in views):
        wanted.append("two scrapes with no restart between them, and the log from before it")
    if any(probe.generates and probe.status in (401, 403) for probe in situation.probes):
        wanted.append("the same request with valid credentials")
    elif not situation.probes and not situation.streams and not _probe_failed(situation):
        wanted.append("one streamed request to the replica (a probe)")
    if findings.broken and not any(log.kind is LogKind.ENGINE for log in situation.logs):
        wanted.append("the engine's log of these minutes")
    if not wanted and not by_hand:
        wanted.append("a longer window with traffic in it")
    said = [f"what {', '.join(by_hand[:4])} {'says' if len(by_hand) == 1 else 'say'}"] if by_hand else []
    return ", ".join([*said, *wanted[:3]])
