"""What an answer to a probe says, and whom it was asked."""

import re
from collections.abc import Sequence

from triage.domain.stream import ProbeReading
from triage.domain.verdict import Direction, Evidence, Family

# Words in a probe's target that name something in front of the engines.
_GATEWAY_NAMES = frozenset(
    {"gateway", "edge", "ingress", "proxy", "router", "lb", "loadbalancer", "load", "client"}
    | {"envoy", "nginx", "haproxy", "litellm"}
)


def through_gateway(probe: ProbeReading) -> bool:
    """Sent to something in front of the engines, which may have asked any of them, or another provider."""
    return not _GATEWAY_NAMES.isdisjoint(re.split(r"[^a-z]+", probe.target.lower()))


def probe_evidence(probe: ProbeReading, name: str, text: str, strength: int) -> Evidence:
    """One statement that a probe supports. name: the last part of its id."""
    return Evidence(
        id=f"probe.{name}",
        direction=Direction.FOR,
        strength=strength,
        family=Family.PROBE,
        text=text,
        value=probe.total_s,
        unit="s",
        n=1,
        source=f"{probe.source} {probe.method} {probe.path}",
    )


def distinct(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The first of each kind: ten equal answers are one fact."""
    kept: dict[str, Evidence] = {}
    for item in evidence:
        kept.setdefault(item.id, item)
    return list(kept.values())
