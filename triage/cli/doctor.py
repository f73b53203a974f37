"""`triage doctor`: what can be reached, what each page holds, what is missing, what that costs and what mends it."""

import asyncio
from functools import partial

import msgspec

from triage.cli.assembly import monitor_of, settings
from triage.cli.doctor_report import DoctorReport, Seen, report_of
from triage.cli.exits import Exit
from triage.cli.options import OutputFormat, SourceOptions
from triage.cli.output import terminal_width, write
from triage.domain.situation import Situation
from triage.domain.target import TargetState

# A report on 80 columns is one that fits beside a runbook.
_WIDTH = 80


def run_doctor(options: SourceOptions, output: OutputFormat) -> int:
    """One read of everything. 0 when all answered, 1 when something did not."""
    chosen = settings(options)

    async def look() -> Situation:
        monitor = monitor_of(chosen, "doctor")
        try:
            return (await monitor.round()).situation
        finally:
            await monitor.close()

    report = report_of(asyncio.run(look()))
    if output is OutputFormat.JSON:
        body = {"schema": "triage.doctor/1"} | msgspec.to_builtins(report)
        write(msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n")
    else:
        width = min(terminal_width(), _WIDTH)
        write(to_markdown(report) if output is OutputFormat.MARKDOWN else to_text(report, width))
    well = not report.unread and all(check.state is TargetState.OK for check in report.targets)
    return Exit.OK if well else Exit.WRONG


def to_text(report: DoctorReport, width: int = _WIDTH) -> str:
    """One block a target: who it is, what it costs, what mends it."""
    wrap = partial(_wrapped, width=width)
    lines = ["targets"]
    for check in report.targets:
        lines += wrap("  ", f"{check.name}  {check.state.value}: {check.says}")
        if check.hint:
            lines += wrap("    ", f"hint: {check.hint}")
        for seen in check.seen:
            lines += [line for label, said in _rows(seen) for line in wrap(f"    {label:<10}", said)]
    for title, said in (("could not be read", report.unread), ("also", report.notes)):
        if said:
            lines += ["", title, *[line for text in said for line in wrap("  ", text)]]
    if report.missing:
        lines += ["", "not configured"]
        for source, costs in report.missing.items():
            lines += wrap("  ", f"{source}: costs {', '.join(costs)}")
    return "\n".join(lines) + "\n"


def to_markdown(report: DoctorReport) -> str:
    lines = ["## targets"]
    for check in report.targets:
        lines.append(f"- `{_plain(check.name)}` {check.state.value}: {_plain(check.says)}")
        if check.hint:
            lines.append(f"  - hint: {check.hint}")
        lines += [f"  - {label}: {_plain(said)}" for seen in check.seen for label, said in _rows(seen)]
    for title, said in (("could not be read", report.unread), ("also", report.notes)):
        if said:
            lines += ["", f"## {title}", *[f"- {_plain(text)}" for text in said]]
    if report.missing:
        lines += ["", "## not configured"]
        lines += [f"- {source}: costs {', '.join(costs)}" for source, costs in report.missing.items()]
    return "\n".join(lines) + "\n"


def _rows(seen: Seen) -> list[tuple[str, str]]:
    """(label, sentence); short where all is well."""
    around = "".join([f", through {seen.via}"] * bool(seen.via) + [f", worker {seen.worker}"] * bool(seen.worker))
    known = len(seen.exported) + len(seen.missing)
    exports = f"{len(seen.exported)} of {known} quantities" if known else "no quantities, only which models are loaded"
    rows = [("is", f"{seen.title}{around}"), ("exports", exports)]
    rows += [("loaded", model) for model in seen.loaded]
    for cost in seen.costs:
        never = "" if cost.possible else ", which this dialect never has"
        rows.append(("costs", f"{', '.join(cost.verdicts)}: no {_or(cost.lacks)}{never}"))
    for mend in seen.mends:
        if not mend.feature:
            label, verb = ("instead", "for") if mend.instead else ("could set", "brings")
            rows.append((label, f"{mend.flag} ({verb} {', '.join(mend.quantities)})"))
    off = [f"{mend.flag} ({', '.join(mend.quantities)})" for mend in seen.mends if mend.feature]
    if off:
        rows.append(("not used", "; ".join(off)))
    told = {name for mend in seen.mends for name in mend.quantities}
    rest = [name for name in seen.missing if name not in told]
    if rest:
        rows.append(("absent", f"{', '.join(rest)} (some appear with their first use)"))
    if seen.late:
        rows.append(("late", f"moved only when a request ends: {', '.join(seen.late)}"))
    if seen.lingering:
        rows.append(("lingering", f"not rewritten while idle: {', '.join(seen.lingering)}"))
    return rows


def _or(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _plain(text: str) -> str:
    return text.replace("`", "'")


def _wrapped(prefix: str, text: str, *, width: int) -> list[str]:
    """Words on lines of at most `width` columns; the prefix on the first, as many spaces on the others."""
    lines: list[str] = []
    current = prefix
    for word in text.split(" "):
        if current.strip() and len(current) + len(word) > width:
            lines.append(current.rstrip())
            current = " " * len(prefix)
        current += word + " "
    return [*lines, current.rstrip()]
