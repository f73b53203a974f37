"""Which verdicts a missing source costs, so that "not seen" says what it matters."""

from collections.abc import Mapping

from triage.domain.situation import NOT_CONFIGURED, NotSeen
from triage.domain.verdict import Kind

_GATEWAY = (
    Kind.GATEWAY_TIMEOUT,
    Kind.GATEWAY_OVERHEAD,
    Kind.RETRY_STORM,
    Kind.TRUNCATED_STREAM,
    Kind.CLIENT_ABORT,
    Kind.OVER_REJECTION,
    Kind.AUTH_HOLE,
)
_CLUSTER = (
    Kind.UNSCHEDULABLE,
    Kind.ROLLOUT_STUCK,
    Kind.CRASH_LOOP,
    Kind.OUT_OF_MEMORY,
    Kind.READY_NOT_ROUTABLE,
    Kind.START_BLOCKED,
    Kind.COLD_START,
)
_GPU = (Kind.GPU_FAULT, Kind.GPU_THROTTLED)
_PROBE = (
    Kind.HIDDEN_REASONING,
    Kind.ENGINE_STALLED,
    Kind.TRUNCATED_STREAM,
    Kind.EMPTY_OUTPUT,
    Kind.TOOL_CALL_FAILURE,
)
_ENGINE = (Kind.QUEUEING, Kind.SLOW_PREFILL, Kind.SLOW_DECODE, Kind.KV_PRESSURE)

_BY_SOURCE: dict[str, tuple[Kind, ...]] = {
    "engine metrics": _ENGINE,
    "probe": _PROBE,
    "gateway log": _GATEWAY,
    "kubernetes": _CLUSTER,
    "gpu": _GPU,
}
# Words in a file name that say which of these it is; a file with none of them may cost anything.
_BY_WORD: tuple[tuple[tuple[str, ...], str], ...] = (
    (("gateway", "access", "upstream", "router", "routing", "proxy", "route", "balancer", "usage"), "gateway log"),
    (("pod", "event", "node", "deployment", "service", "endpoint", "claim", "hpa", "set", "pool"), "kubernetes"),
    (("dcgm", "gpu", "exporter", "bench"), "gpu"),
    (("response", "request", "stream", "models"), "probe"),
    (("metrics",), "engine metrics"),
)


def costs_of_source(source: str) -> tuple[str, ...]:
    return tuple(kind.value for kind in _BY_SOURCE[source])


def sources_of(kind: Kind) -> tuple[str, ...]:
    """The sources in which a verdict can be seen, the nearest first."""
    return tuple(source for source, kinds in _BY_SOURCE.items() if kind in kinds)


def costs_of_file(name: str) -> tuple[str, ...]:
    """What an unread file of this name may hide."""
    lowered = name.lower()
    for words, source in _BY_WORD:
        if any(word in lowered for word in words):
            return costs_of_source(source)
    return ()


def costs_of_absent(present: Mapping[str, bool], tried: Mapping[str, str] | None = None) -> tuple[NotSeen, ...]:
    """One entry for each source that is not there. tried: why those gave nothing that are configured."""
    reasons = tried or {}
    return tuple(
        NotSeen(source, reasons.get(source, NOT_CONFIGURED), costs_of_source(source))
        for source, there in present.items()
        if not there
    )
