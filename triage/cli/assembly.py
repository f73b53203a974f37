"""Puts the pieces of a live run together: gate, source, prober, monitor."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from triage.cli.output import notice
from triage.config import Config, load_config, override
from triage.domain.errors import ConfigError
from triage.gate import Gate
from triage.monitor.monitor import Monitor
from triage.probing.prober import EngineProber
from triage.sources.descriptors import raise_descriptor_limit
from triage.sources.engine_scrape import EngineScrape


def settings(
    targets: Sequence[str] | None,
    config: Path | None,
    window_s: float | None = None,
    interval_s: float | None = None,
    timeout_s: float | None = None,
) -> Config:
    """The configuration with the options over it. ConfigError when it names no target."""
    chosen = override(
        load_config(config), targets=targets or (), window_s=window_s, interval_s=interval_s, timeout_s=timeout_s
    )
    if not chosen.targets:
        raise ConfigError(
            "no target",
            "neither --target nor a triage.toml names an engine",
            "try: triage diagnose --target http://HOST:8000, or: triage demo",
        )
    for said in chosen.notices:
        notice(f"triage: {said}")
    return chosen


def monitor_of(config: Config, name: str, *, probing: bool = True, probe_every_s: float | None = None) -> Monitor:
    """A monitor over the configured targets. Build it inside the running event loop; close it."""
    gate = Gate()
    pairs = [(one.target, one.access) for one in config.targets]
    crowded = raise_descriptor_limit(len(pairs))
    if crowded:
        notice(f"triage: {crowded}")
    return Monitor(
        EngineScrape(gate, pairs),
        name=name,
        limits=config.limits,
        window_s=config.window_s,
        interval_s=config.interval_s,
        prober=EngineProber(gate, pairs) if probing else None,
        probe_every_s=probe_every_s,
    )


def on_a_terminal() -> bool:
    """Textual draws wherever it is told to and then waits for keys: only a real terminal gets it."""
    dumb = os.environ.get("TERM", "") in ("", "dumb")
    return sys.stdin.isatty() and sys.stdout.isatty() and not dumb
