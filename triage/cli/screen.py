"""Opens the Textual app on a monitor. The only module outside `tui` that loads it."""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from triage.cli.exits import Exit, exit_of
from triage.cli.output import terminal_width, write
from triage.domain.verdict import Kind
from triage.monitor.monitor import Monitor
from triage.monitor.observation import Observation
from triage.report.plain import to_brief
from triage.tui.app import Switch, TriageApp

if TYPE_CHECKING:
    from triage.runbook import Library


async def show(
    monitor: Monitor, *, switches: Sequence[Switch] = (), switch_on: Callable[[str], None] | None = None
) -> int:
    """Run the screen until the person leaves; then the last diagnosis goes into the scrollback.

    switch_on: turns on what is typed by name, such as several switches at once.
    """
    app = TriageApp(
        monitor,
        runbook=lambda topic: _runbook(topic, monitor.latest()),
        report=lambda seen: to_brief(seen.situation, seen.diagnosis, terminal_width()),
        switches=switches,
        switch_on=switch_on,
    )
    loop = asyncio.create_task(monitor.run())
    try:
        await app.run_async()
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
    write(app.exit_report())
    latest = monitor.latest()
    return Exit.OK if latest is None else exit_of(latest.diagnosis)


@cache
def _library() -> "Library":
    """Read with the first runbook that is asked for: before the first paint it would cost 50 ms, most of it YAML."""
    from triage.runbook import load

    return load()


def _runbook(topic: str, seen: Observation | None) -> str | None:
    """A runbook's Markdown with the live names of the verdict it belongs to filled in."""
    if topic not in set(Kind):
        return None
    from triage.runbook import render

    runbook = _library().for_kind(Kind(topic))
    return None if runbook is None else render(runbook, _names(topic, seen))


def _names(topic: str, seen: Observation | None) -> dict[str, str]:
    if seen is None:
        return {}
    verdict = next((v for v in seen.diagnosis.verdicts if v.kind.value == topic), None)
    if verdict is None:
        return {}
    replicas = [r for r in seen.situation.replicas if verdict.scope.model in (None, r.model)]
    named = [r for r in replicas if r.target.name == verdict.scope.replica] or replicas
    names = {"model": verdict.scope.model or (named[0].model if named else "")}
    if named:
        names |= {"replica": named[0].target.name, "url": named[0].target.url.removesuffix("/metrics").rstrip("/")}
    others = [r for r in replicas if named and r.target.name != named[0].target.name]
    if others:
        names["peer_url"] = others[0].target.url.removesuffix("/metrics").rstrip("/")
    return {key: value for key, value in names.items() if value}
