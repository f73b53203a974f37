"""A diagnosis as text for a terminal or a log, and as Markdown for a ticket."""

from collections.abc import Callable
from functools import partial

from triage.domain.situation import Situation
from triage.domain.verdict import Diagnosis, Direction, Evidence, Share, Verdict
from triage.report.document import TargetEntry, document, iso
from triage.report.others import others_say

# Width when the output is no terminal: fits a ticket and a side-by-side diff.
USUAL_WIDTH = 100


def to_text(situation: Situation, diagnosis: Diagnosis, width: int = USUAL_WIDTH) -> str:
    """Verdicts first, then what was excluded, not seen, and the numbers of each target."""
    wrap = partial(_wrapped, width=width)
    lines = [_heading(situation, diagnosis), ""]
    for place, verdict in enumerate(diagnosis.verdicts):
        lines += _verdict_lines(verdict, wrap, first=place == 0)
    if diagnosis.ruled_out:
        lines.append("ruled out")
        for out in diagnosis.ruled_out:
            lines += wrap("  ", f"{out.kind.value}{_scoped(out.scope.model)}: {out.because}")
        lines.append("")
    if diagnosis.not_seen:
        lines.append("not seen")
        for seen in diagnosis.not_seen:
            costs = f"; costs {', '.join(seen.costs)}" if seen.costs else ""
            lines += wrap("  ", f"{seen.source}: {seen.why}{costs}")
        lines.append("")
    others = others_say(situation)
    if others:
        lines.append("what others say")
        for said in others:
            lines += wrap("  ", said)
        lines.append("")
    entries = document(situation, diagnosis).targets
    if entries:
        lines.append("targets")
        for entry in entries:
            lines += wrap("  ", _target_line(entry))
        lines.append("")
    return "\n".join(lines)


def to_brief(situation: Situation, diagnosis: Diagnosis, width: int = USUAL_WIDTH) -> str:
    """What to leave in the scrollback: the first verdict in full, the others and the dark targets by name."""
    wrap = partial(_wrapped, width=width)
    first, *others = diagnosis.verdicts
    lines = [_heading(situation, diagnosis), *_verdict_lines(first, wrap, first=False)]
    if others:
        lines += wrap("also     ", ", ".join(_word(verdict) for verdict in others))
    dark = [f"{s.target.name} ({s.failure})" for s in situation.targets if s.failure is not None]
    if dark:
        lines += wrap("dark     ", ", ".join(dark))
    return "\n".join(lines).rstrip() + "\n"


def to_markdown(situation: Situation, diagnosis: Diagnosis) -> str:
    """The same for a ticket. Remote text stands in code spans, so that it cannot become markup."""
    first = diagnosis.verdicts[0]
    lines = [f"# {_word(first)}", "", f"{_code(first.summary)}", "", f"*{_heading(situation, diagnosis)}*", ""]
    for verdict in diagnosis.verdicts:
        lines += [f"## {_word(verdict)}", "", f"{_code(verdict.summary)}", ""]
        if _scope(verdict):
            lines.append(f"- scope: {_code(_scope(verdict))}")
        if verdict.share:
            lines.append(f"- share: {_share(verdict.share)}")
        lines += [f"- {item.direction.value}: {_code(item.text)} ({_code(item.source)})" for item in verdict.evidence]
        if verdict.next_test:
            lines.append(f"- next: {_code(verdict.next_test)}")
        if verdict.runbook:
            lines.append(f"- runbook: `triage runbook show {verdict.runbook}`")
        lines.append("")
    if diagnosis.ruled_out:
        lines += ["## Ruled out", ""]
        lines += [f"- {out.kind.value}: {_code(out.because)}" for out in diagnosis.ruled_out]
        lines.append("")
    if diagnosis.not_seen:
        lines += ["## Not seen", ""]
        lines += [f"- {_code(seen.source)}: {_code(seen.why)}" for seen in diagnosis.not_seen]
        lines.append("")
    others = others_say(situation)
    if others:
        lines += ["## What others say", "", *[f"- {_code(said)}" for said in others], ""]
    return "\n".join(lines)


def _heading(situation: Situation, diagnosis: Diagnosis) -> str:
    at = iso(diagnosis.at) or "no time in the evidence"
    assumed = any(replica.window.assumed for replica in situation.replicas)
    window = (
        f"window {diagnosis.window_s:.0f} s{' (assumed)' if assumed else ''}" if diagnosis.window_s else "no window"
    )
    return f"{at} · {window} · {len(situation.targets)} targets"


def _word(verdict: Verdict) -> str:
    sure = f"{verdict.confidence.value.upper()} " if verdict.confidence else ""
    detail = f" ({verdict.detail})" if verdict.detail else ""
    return f"{sure}{verdict.kind.value}{detail}"


def _scope(verdict: Verdict) -> str:
    return " ".join(part for part in (verdict.scope.model, verdict.scope.replica, verdict.scope.node) if part)


def _verdict_lines(verdict: Verdict, wrap: Callable[[str, str], list[str]], *, first: bool) -> list[str]:
    """first: with all evidence and confounders; otherwise two items a side."""
    scope = _scope(verdict)
    lines = [_word(verdict) + (f" · {scope}" if scope else ""), *wrap("  ", verdict.summary)]
    if verdict.share:
        lines.append(f"  share    {_share(verdict.share)}")
    for direction in (Direction.FOR, Direction.AGAINST):
        items = [item for item in verdict.evidence if item.direction is direction]
        for place, item in enumerate(items if first else items[:2]):
            label = direction.value if place == 0 else ""
            lines += wrap(f"  {label:<8} ", f"{item.text}  [{_origin(item)}]")
    if verdict.next_test:
        lines += wrap("  next     ", verdict.next_test)
    if verdict.runbook:
        lines.append(f"  runbook  triage runbook show {verdict.runbook}")
    if first:
        for place, confounder in enumerate(verdict.confounders):
            lines += wrap("  mind     " if place == 0 else "           ", confounder)
    return [*lines, ""]


def _origin(item: Evidence) -> str:
    parts = [item.source]
    if item.n is not None:
        parts.append(f"n={item.n}")
    if item.age_s:
        parts.append(f"{item.age_s:.0f} s old")
    return " · ".join(part for part in parts if part)


def _share(share: Share) -> str:
    return f"{100 * share.value:.0f} % ({100 * share.low:.0f}–{100 * share.high:.0f}) of {share.of}"


def _scoped(model: str | None) -> str:
    return f" ({model})" if model else ""


def _target_line(entry: TargetEntry) -> str:
    head = " ".join(part for part in (entry.engine, entry.dialect, entry.version, entry.model) if part)
    if entry.why:
        return f"{entry.name}: {entry.state.value} ({entry.why})"
    values = [
        f"{label} {entry.readings[name] * scale:.4g}{unit}"
        for name, label, scale, unit in (
            ("running", "running", 1, ""),
            ("waiting", "waiting", 1, ""),
            ("kv_usage", "kv", 100, " %"),
            ("ttft_mean_s", "first token", 1, " s"),
            ("itl_mean_s", "per token", 1000, " ms"),
            ("generation_tokens_delta", "tokens +", 1, ""),
        )
        if name in entry.readings
    ]
    return f"{entry.name}: {head}: {', '.join(values) or entry.state.value}"


def _wrapped(prefix: str, text: str, *, width: int) -> list[str]:
    """Words on lines of at most `width` columns; the prefix on the first, as many spaces on the others."""
    lines: list[str] = []
    current = prefix
    for word in text.split(" "):
        if len(current) + len(word) + 1 > width and current.strip():
            lines.append(current.rstrip())
            current = " " * len(prefix)
        current += word + " "
    return [*lines, current.rstrip()]


def _code(text: str) -> str:
    return "`" + text.replace("`", "'") + "`" if text else ""
