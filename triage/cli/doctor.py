"""`triage doctor`: what can be reached, what cannot and why, and what that costs."""

import asyncio

import msgspec

from triage.cli.assembly import monitor_of, settings
from triage.cli.exits import Exit
from triage.cli.options import OutputFormat, SourceOptions
from triage.cli.output import write
from triage.domain.situation import Situation
from triage.domain.target import TargetState


class Check(msgspec.Struct, frozen=True):
    """One thing that was tried. hint: what would mend it, or ''."""

    name: str
    url: str
    state: TargetState
    says: str
    hint: str = ""


class DoctorReport(msgspec.Struct, frozen=True):
    """missing: sources that are not configured, with the verdicts that costs."""

    targets: tuple[Check, ...]
    missing: dict[str, tuple[str, ...]]


def run_doctor(options: SourceOptions, output: OutputFormat) -> int:
    """One read of everything. 0 when all answered, 1 when something did not."""
    chosen = settings(options)

    async def look() -> Situation:
        monitor = monitor_of(chosen, "doctor")
        try:
            return (await monitor.round()).situation
        finally:
            await monitor.close()

    report = _report(asyncio.run(look()))
    if output is OutputFormat.JSON:
        body = {"schema": "triage.doctor/1"} | msgspec.to_builtins(report)
        write(msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n")
    else:
        write(_text(report, markdown=output is OutputFormat.MARKDOWN))
    return Exit.OK if all(check.state is TargetState.OK for check in report.targets) else Exit.WRONG


def _report(situation: Situation) -> DoctorReport:
    versions = {replica.target.name: replica for replica in situation.replicas}
    checks = []
    for status in situation.targets:
        replica = versions.get(status.target.name)
        if replica is not None:
            last = replica.window.last
            says = " ".join(part for part in (last.engine, last.dialect, last.version, replica.model) if part)
        else:
            says = str(status.failure) if status.failure else status.state.value
        checks.append(Check(status.target.name, status.target.url, status.state, says, _hint(status.state, says)))
    missing = {seen.source: seen.costs for seen in situation.not_seen}
    return DoctorReport(tuple(checks), missing)


def _hint(state: TargetState, says: str) -> str:
    if state is TargetState.OK:
        return ""
    for word, hint in (
        ("401", "name a credential: key_env, key_file or key_command of the target, or $TRIAGE_API_KEY"),
        ("403", "the credential is known and may not read this route"),
        ("404", "give the metrics URL itself; SGLang and llama.cpp serve metrics only with their flag"),
        ("--metrics", "restart the server with the flag it names"),
        ("refused", "nothing listens there: check host and port"),
        ("time-out", "a firewall, a wrong address or a stuck process; try a larger --timeout"),
        ("tls", "name the CA as ca of the target"),
        ("name not found", "check the host name"),
        ("not metrics", "this is another page; give the engine's own metrics URL"),
        ("redirect", "give the address it redirects to"),
    ):
        if word in says:
            return hint
    return ""


def _text(report: DoctorReport, *, markdown: bool) -> str:
    mark = "- " if markdown else "  "
    lines = ["## targets" if markdown else "targets"]
    for check in report.targets:
        said = f"`{check.name}`" if markdown else check.name
        lines.append(f"{mark}{said} {check.state.value}: {check.says.replace('`', chr(39))}")
        if check.hint:
            lines.append(f"{mark}    {check.hint}")
    if report.missing:
        lines += ["", "## not configured" if markdown else "not configured"]
        lines += [f"{mark}{source}: costs {', '.join(costs)}" for source, costs in report.missing.items()]
    return "\n".join(lines) + "\n"
