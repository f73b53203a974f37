"""Puts the pieces of a live run together: gate, source, prober, monitor."""

import os
import sys
from collections.abc import Callable, Sequence

from triage.cli.options import SourceOptions
from triage.cli.output import notice
from triage.config import Config, TargetConfig, credential_of, load_config, override
from triage.domain.errors import ConfigError
from triage.domain.situation import NotSeen
from triage.gate import Gate
from triage.gate.address import address_of
from triage.monitor.joined import Joined
from triage.monitor.monitor import Monitor, ScrapeSource
from triage.probing.budget import Budget
from triage.probing.prober import EngineProber
from triage.sources.descriptors import raise_descriptor_limit
from triage.sources.engine_scrape import EngineScrape


def settings(options: SourceOptions, window_s: float | None = None, interval_s: float | None = None) -> Config:
    """The configuration with the options over it. ConfigError when it names nothing to look at."""
    chosen = override(
        load_config(options.config),
        targets=options.targets or (),
        prometheus=options.prometheus,
        window_s=window_s,
        interval_s=interval_s,
        timeout_s=options.timeout_s,
        credential=credential_of(key_env=options.key_env, key_file=options.key_file, key_command=options.key_command),
    )
    if not chosen.targets and chosen.prometheus is None:
        raise ConfigError(
            "no target",
            "neither --target nor --prometheus nor a triage.toml names an engine",
            "try: triage diagnose --target http://HOST:8000, or: triage demo",
        )
    for said in chosen.notices:
        notice(f"triage: {said}")
    return chosen


def monitor_of(
    config: Config,
    name: str,
    *,
    budget: Callable[[], Budget] | None = None,
    probe_every_s: float | None = None,
    probed: Sequence[TargetConfig] = (),
    not_seen: Sequence[NotSeen] = (),
    beside: ScrapeSource | None = None,
) -> Monitor:
    """A monitor over the configured targets; it can probe when it gets a budget for that.

    probed: asked by the probe in place of the targets. beside: read together with the targets.
    Build it inside the running event loop; close it.
    """
    gate = Gate()
    pairs = [(one.target, one.access) for one in config.targets]
    crowded = raise_descriptor_limit(len(pairs))
    if crowded:
        notice(f"triage: {crowded}")
    return Monitor(
        _source(gate, config, beside),
        name=name,
        limits=config.limits,
        window_s=config.window_s,
        interval_s=config.interval_s,
        prober=_prober(gate, probed, config.targets, budget) if budget is not None else None,
        probe_every_s=probe_every_s,
        not_seen=not_seen,
    )


def _prober(
    gate: Gate, probed: Sequence[TargetConfig], targets: Sequence[TargetConfig], budget: Callable[[], Budget]
) -> EngineProber:
    engines = [(one.target, one.access) for one in targets]
    return EngineProber(
        gate, [(one.target, one.access) for one in probed] or engines, budget, engines if probed else ()
    )


def _source(gate: Gate, config: Config, beside: ScrapeSource | None) -> ScrapeSource:
    """What is scraped directly, and the Prometheus beside it."""
    direct = EngineScrape(gate, [(one.target, one.access) for one in config.targets])
    if beside is not None:
        return Joined(direct, beside)
    if config.prometheus is None:
        return direct
    from triage.sources.prometheus import PrometheusSource

    server = PrometheusSource(
        gate,
        config.prometheus.access,
        matchers=config.prometheus.matchers,
        window_s=config.window_s,
        direct={address_of(one.access.url).authority: one.target for one in config.targets},
    )
    return Joined(direct, server) if config.targets else server


def on_a_terminal() -> bool:
    """Textual draws wherever it is told to and then waits for keys: only a real terminal gets it."""
    dumb = os.environ.get("TERM", "") in ("", "dumb")
    return sys.stdin.isatty() and sys.stdout.isatty() and not dumb
