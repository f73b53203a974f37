"""What an answer says, and where it was seen."""

import re
from collections.abc import Sequence
from enum import Enum, auto

from triage.domain.stream import ProbeReading, StreamReading
from triage.domain.verdict import Direction, Evidence, Family

# Words in a probe's target that name something in front of the engines.
_GATEWAY_NAMES = frozenset(
    {"gateway", "edge", "ingress", "proxy", "router", "lb", "loadbalancer", "load", "client"}
    | {"envoy", "nginx", "haproxy", "litellm"}
)
# Words in the name of a capture that say it was taken at the engine.
_ENGINE_NAMES = frozenset(
    {"upstream", "direct", "engine", "backend", "pod", "worker", "replica", "server"}
    | {"vllm", "sglang", "trtllm", "ollama", "llama"}
)


def through_gateway(probe: ProbeReading) -> bool:
    """Sent to something in front of the engines, which may have asked any of them, or another provider."""
    return not _GATEWAY_NAMES.isdisjoint(_words(probe.target))


class Side(Enum):
    """Where an answer was recorded."""

    CLIENT = auto()  # in front of the engines
    ENGINE = auto()  # at an engine
    UNKNOWN = auto()


def side_of(name: str) -> Side:
    """Told from the words in a target's or a capture's name; both or neither say nothing."""
    words = _words(name)
    outside, inside = not _GATEWAY_NAMES.isdisjoint(words), not _ENGINE_NAMES.isdisjoint(words)
    if outside == inside:
        return Side.UNKNOWN
    return Side.CLIENT if outside else Side.ENGINE


def _words(name: str) -> list[str]:
    return re.split(r"[^a-z]+", name.lower())


def answer_evidence(
    stream: StreamReading,
    name: str,
    text: str,
    strength: int,
    *,
    direction: Direction = Direction.FOR,
    value: float | None = None,
    unit: str = "",
    threshold: float | None = None,
) -> Evidence:
    """One statement that a recorded answer supports. name: the last part of its id."""
    return Evidence(
        id=f"probe.{name}",
        direction=direction,
        strength=strength,
        family=Family.PROBE,
        text=text,
        value=value,
        unit=unit,
        threshold=threshold,
        n=stream.chunks or None,
        source=stream.source,
    )


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
