"""Reading the screen as text, waiting for it, and comparing it with what was kept."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from tests.tui.factory import FakeFeed
from triage.monitor.observation import Observation
from triage.tui.app import Switch, TriageApp

GOLDEN = Path(__file__).parent / "golden"
SIZES = ((80, 24), (140, 45))

RUNBOOK = """# Queueing: requests wait for a slot

## Meaning

More requests came than may run at once.

## Diagnosis

1. Look at `vllm:num_requests_running` *(only reads)*:

```
kubectl get pods -l app=llama
```

| look at | worry from |
|---|---|
| waiting | 10 |
"""


def make_app(feed: FakeFeed, **options: Any) -> TriageApp:
    """An app whose clock stands still, so that nothing on the screen depends on the test's speed."""
    options.setdefault("runbook", lambda kind: RUNBOOK if kind == "queueing" else None)
    options.setdefault("report", lambda observation: f"report of round {observation.sequence}")
    options.setdefault("clock", lambda: 0.0)
    return TriageApp(feed, **options)


def switches(log: list[str]) -> list[Switch]:
    """Two incidents; choosing one puts its name into `log`, the last one is active."""

    def switch(name: str, title: str) -> Switch:
        return Switch(name, title, lambda: log.append(name), lambda: log[-1:] == [name])

    return [switch("healthy", "nothing is wrong"), switch("queueing", "more requests than slots")]


def lines(app: App[Any]) -> list[str]:
    """What the topmost screen shows, one string a line, without trailing blanks."""
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


def text(app: App[Any]) -> str:
    return "\n".join(lines(app)) + "\n"


async def until(pilot: Pilot[Any], condition: Callable[[], object], rounds: int = 400) -> None:
    """Let the app work until the condition holds; fails with the screen's text when it never does."""
    for _ in range(rounds):
        await pilot.pause()
        if condition():
            return
        # Lets timers and workers run; the condition, not this, decides when to go on.
        await pilot.pause(0.01)
    raise AssertionError(f"never came true; the screen shows:\n{text(pilot.app)}")


def compare(name: str, shown: str) -> None:
    """Compare with golden/<name>.txt; TRIAGE_UPDATE_GOLDEN=1 writes it instead."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("TRIAGE_UPDATE_GOLDEN"):
        path.write_text(shown, encoding="utf-8")
    assert path.exists(), f"no {path.name}: run once with TRIAGE_UPDATE_GOLDEN=1 and look at it"
    assert shown == path.read_text(encoding="utf-8")


def replayed(observation: Observation | None, **options: Any) -> tuple[FakeFeed, TriageApp]:
    feed = FakeFeed(observation)
    return feed, make_app(feed, **options)
