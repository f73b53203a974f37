"""Everything that is known about a moment. Every judgement starts from one."""

import msgspec

from triage.domain.limits import Limits
from triage.domain.logs import LogReading
from triage.domain.prompts import PromptPair, Reuse
from triage.domain.reading import GpuReading, LoadedModel, ProcessList
from triage.domain.stream import AnswerCounts, ErrorAnswer, ProbeReading, RequestReading, ServedModel, StreamReading
from triage.domain.target import Failure, Target, TargetState
from triage.domain.window import Window


class Replica(msgspec.Struct, frozen=True, gc=False):
    """One engine process serving one model, over the window. baseline: an earlier window known to be good.

    baseline_name: where it comes from, as evidence says it.
    """

    target: Target
    model: str
    window: Window
    age_s: float | None
    baseline: Window | None = None
    baseline_name: str = "the baseline window"


class TargetStatus(msgspec.Struct, frozen=True, gc=False):
    """How reading one target went. families: names on its last page.

    answered_at: unix seconds of the last good answer. relabelled: as in PageReading.
    processes: what it told instead of a page, where it has none.
    """

    target: Target
    state: TargetState
    failure: Failure | None = None
    answered_at: float | None = None
    age_s: float | None = None
    engine: str = ""
    dialect: str = ""
    families: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    relabelled: str = ""
    processes: ProcessList | None = None


class GpuWindow(msgspec.Struct, frozen=True):
    """One device: first and last reading of the window (the same object when there is only one)."""

    first: GpuReading
    last: GpuReading


class ContainerCpu(msgspec.Struct, frozen=True):
    """CPU of one container, from its cgroup counters over `interval_s` seconds, and of its node."""

    source: str
    name: str
    limit_cores: float | None = None
    usage_cores: float | None = None
    throttled_periods: float | None = None
    periods: float | None = None
    throttled_s: float | None = None
    interval_s: float | None = None
    node_cores: float | None = None
    node_busy_cores: float | None = None


class MonitoredTarget(msgspec.Struct, frozen=True):
    """One scrape target as a monitoring server sees it. health: up, down, unknown, or dropped (by relabelling)."""

    source: str
    job: str
    url: str
    health: str
    error: str = ""


class Alert(msgspec.Struct, frozen=True):
    """An alert as a monitoring server has it: what somebody else concluded, never proof of its own.

    state: firing or pending. since: unix seconds or None. labels: without the name, in their order.
    summary: its annotation. expression: its rule, where that was read.
    """

    source: str
    name: str
    state: str
    since: float | None = None
    labels: tuple[tuple[str, str], ...] = ()
    summary: str = ""
    expression: str = ""


class QueriedMetric(msgspec.Struct, frozen=True):
    """One series name inside a person's query. exported: on an engine page that was read, or None when none was.

    renamed_to: its successors that are exported. removed: known to be gone without a successor.
    """

    name: str
    exported: bool | None
    renamed_to: tuple[str, ...] = ()
    removed: bool = False
    note: str = ""


class DashboardQuery(msgspec.Struct, frozen=True):
    """A person's PromQL. empty: its recorded answer had no series; None when no answer was recorded."""

    source: str
    expression: str
    metrics: tuple[QueriedMetric, ...]
    empty: bool | None = None


class AdapterUse(msgspec.Struct, frozen=True):
    """LoRA adapters of one engine. slots: how many fit into a batch; wanted: how many different ones are asked for."""

    source: str
    slots: int
    wanted: int


NOT_CONFIGURED = "not configured"


class NotSeen(msgspec.Struct, frozen=True):
    """A source that was not looked at, why, and which verdicts that costs.

    expected: it was configured, or lies in the folder, so that something may be hidden in it.
    """

    source: str
    why: str
    costs: tuple[str, ...] = ()
    expected: bool = False


class Situation(msgspec.Struct, frozen=True):
    """at: unix seconds of the newest evidence, or None when nothing carries a time."""

    at: float | None
    window_s: float
    limits: Limits = Limits()
    replicas: tuple[Replica, ...] = ()
    targets: tuple[TargetStatus, ...] = ()
    streams: tuple[StreamReading, ...] = ()
    baseline_streams: tuple[StreamReading, ...] = ()
    probes: tuple[ProbeReading, ...] = ()
    logs: tuple[LogReading, ...] = ()
    gpus: tuple[GpuWindow, ...] = ()
    containers: tuple[ContainerCpu, ...] = ()
    monitored: tuple[MonitoredTarget, ...] = ()
    alerts: tuple[Alert, ...] = ()
    queries: tuple[DashboardQuery, ...] = ()
    loaded_models: tuple[LoadedModel, ...] = ()
    requests: tuple[RequestReading, ...] = ()
    error_answers: tuple[ErrorAnswer, ...] = ()
    answer_counts: tuple[AnswerCounts, ...] = ()
    served_models: tuple[ServedModel, ...] = ()
    reuse: tuple[Reuse, ...] = ()
    prompt_pairs: tuple[PromptPair, ...] = ()
    adapters: tuple[AdapterUse, ...] = ()
    not_seen: tuple[NotSeen, ...] = ()
