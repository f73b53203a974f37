"""Faults between users and engines, of answers, and of what is measured."""

import random

from triage.lab.faults.fault import Fault, Ground
from triage.lab.world.spec import ServiceSpec


def _unlisted(ground: Ground, severity: float, rng: random.Random) -> None:
    ground.hop(unlisted=frozenset([replica.name for replica in ground.some(rng, severity)]))


def _hot(ground: Ground, severity: float, _: random.Random) -> None:
    ground.hop(pinned=severity)


def _route_timeout(ground: Ground, severity: float, _: random.Random) -> None:
    ground.hop(timeout_s=15.0)
    ground.habits(visible=1.0 + 8.0 * severity)


def _idle_timeout(ground: Ground, severity: float, _: random.Random) -> None:
    ground.hop(idle_s=60.0)
    ground.habits(reasoning=1.0 + 30.0 * severity, hides=True)


def _buffering(ground: Ground, severity: float, _: random.Random) -> None:
    ground.hop(holds=True)
    ground.habits(visible=1.0 + 2.0 * severity)


def _retry_storm(ground: Ground, severity: float, _: random.Random) -> None:
    ground.hop(per_try_s=0.5 + 6.0 * (1.0 - severity), retries=3)
    ground.more_users(1.0 + 2.5 * severity)


def _race(ground: Ground, severity: float, _: random.Random) -> None:
    ground.hop(keepalive_race=0.3 * severity, retries=0)


def _cuts(ground: Ground, severity: float, _: random.Random) -> None:
    ground.hop(cuts=0.6 * severity)


def _blank(ground: Ground, severity: float, _: random.Random) -> None:
    for replica in ground.replicas:
        ground.condition(replica, blank=severity)


def _unparsed(ground: Ground, severity: float, _: random.Random) -> None:
    for replica in ground.replicas:
        ground.condition(replica, unparsed=severity)


def _leaving(ground: Ground, severity: float, _: random.Random) -> None:
    ground.crowd(leaving=0.9 * severity)


def _no_keys(ground: Ground, severity: float, _: random.Random) -> None:
    ground.hop(checks_keys=False)
    ground.crowd(keyless=severity)


def _page_off(ground: Ground, severity: float, rng: random.Random) -> None:
    ground.watch.off.update([replica.name for replica in ground.some(rng, severity)])


def _page_stale(ground: Ground, severity: float, rng: random.Random) -> None:
    for replica in ground.some(rng, severity):
        ground.watch.stale[replica.name] = replica.page(ground.now)


def _page_renamed(ground: Ground, severity: float, rng: random.Random) -> None:
    ground.watch.renamed.update([replica.name for replica in ground.some(rng, severity)])


def _streams(spec: ServiceSpec) -> bool:
    return spec.shape.streaming


def _uses_tools(spec: ServiceSpec) -> bool:
    return spec.shape.tool_share > 0


GATEWAYS = (
    Fault("not-routable", "ready engines are missing from the gateway's list", _unlisted),
    Fault("hot-replica", "one replica gets more than its part", _hot),
    Fault("route-timeout", "a route time-out of 15 s", _route_timeout),
    Fault("idle-timeout", "an idle time-out of 60 s and reasoning that is not streamed", _idle_timeout, _streams),
    Fault("buffering", "the gateway hands answers on when they are complete", _buffering, _streams),
    Fault("retry-storm", "retries multiply the load", _retry_storm),
    Fault("keepalive-race", "requests meet connections that are just being closed", _race),
    Fault("streams-cut", "streams end in the middle under status 200", _cuts, _streams),
    Fault("empty-answers", "the text of answers is lost", _blank),
    Fault("tool-calls-unparsed", "tool calls arrive as text", _unparsed, _uses_tools),
    Fault("clients-leaving", "clients leave before they are answered", _leaving),
    Fault("auth-missing", "a route has no authentication policy", _no_keys),
    Fault("metrics-missing", "metrics pages are not exported", _page_off),
    Fault("metrics-frozen", "a proxy gives the same metrics page again and again", _page_stale),
    Fault("metrics-renamed", "a relabelling rule renamed the series", _page_renamed),
)
