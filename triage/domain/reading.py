"""Readings: one fact each, as a source brought it."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from triage.domain.absence import NOT_APPLICABLE, NOT_EXPORTED, Number
from triage.domain.histogram import Histogram
from triage.domain.quantity import Quantity
from triage.domain.target import Failure, FailureReason, Target


class Role(StrEnum):
    MIXED = "mixed"
    PREFILL = "prefill"
    DECODE = "decode"
    FRONTEND = "frontend"  # an HTTP front end that hands work to engines


class RankReading(msgspec.Struct, frozen=True, gc=False):
    """One data-parallel engine inside a replica. label: e.g. 'engine=3'."""

    label: str
    values: Mapping[Quantity, float]


class EngineReading(msgspec.Struct, frozen=True, gc=False):
    """One scrape of one model on one replica.

    values: gauges and counters by quantity, over all ranks (sums; maxima for levels). A key that
    is missing was not exported; a key in `not_applicable` was exported as NaN or a marker like -1.
    names: the exported series name behind each quantity, for evidence.
    late: counters that this engine moves only when a request finishes: standing still proves nothing.
    lingering: gauges that it does not rewrite while idle: they may show the last work instead of now.
    via: the program that re-exports its page ('Ray Serve'), '' when the engine answers itself.
    worker: what a front end in front of it calls it, '' when the page does not say.
    at: unix seconds, or None when nothing says when.
    """

    target: str
    source: str
    at: float | None
    engine: str
    dialect: str
    version: str
    model: str
    role: Role
    values: Mapping[Quantity, float]
    histograms: Mapping[Quantity, Histogram]
    finished: Mapping[str, float]
    ranks: tuple[RankReading, ...]
    not_applicable: frozenset[Quantity]
    names: Mapping[Quantity, str]
    late: frozenset[Quantity] = frozenset()
    lingering: frozenset[Quantity] = frozenset()
    via: str = ""
    worker: str = ""

    def get(self, quantity: Quantity) -> Number:
        value = self.values.get(quantity)
        if value is not None:
            return value
        return NOT_APPLICABLE if quantity in self.not_applicable else NOT_EXPORTED


class GpuReading(msgspec.Struct, frozen=True):
    """One device at one moment. fields: the exporter's field names without prefix; see dialects/gpu."""

    target: str
    source: str
    at: float | None
    node: str
    device: str
    uuid: str
    name: str
    fields: Mapping[str, float]


class LoadedModel(msgspec.Struct, frozen=True):
    """A model as Ollama's process list has it. on_gpu: share of its bytes in device memory. context: tokens.

    target: whose list it is, '' where a file does not say. unloads_at: unix seconds, moved on by every request.
    """

    source: str
    name: str
    on_gpu: float | None
    context: int | None = None
    target: str = ""
    unloads_at: float | None = None

    def __str__(self) -> str:
        where = "" if self.on_gpu is None else f", {100 * self.on_gpu:.0f} % in GPU memory"
        context = "" if self.context is None else f", context {self.context:,}"
        return f"{self.name or 'a model without a name'}{where}{context}"


class ProcessList(msgspec.Struct, frozen=True):
    """What an engine without a metrics page tells instead: which models are in memory. Neither queue nor times."""

    engine: str
    version: str
    models: tuple[LoadedModel, ...]

    def __str__(self) -> str:
        """One line for a table of targets."""
        loaded = "; ".join(map(str, self.models[:3])) or "no model loaded"
        more = f" and {len(self.models) - 3} more" if len(self.models) > 3 else ""
        return f"{loaded}{more} · {self.engine} exports no queue and no times"


class PageReading(msgspec.Struct, frozen=True, gc=False):
    """Everything one metrics page said. families: every metric family name on it.

    problems: what could not be read on it, cleaned, at most a few.
    software: whose page it is when that is no engine's ('Envoy'), '' when it is or nothing tells.
    relabelled: which engine's series these are under other names, with an example; '' when they are not.
    processes: what was read in place of a page from an engine that has none.
    """

    target: Target
    source: str
    at: float | None
    engines: tuple[EngineReading, ...]
    gpus: tuple[GpuReading, ...]
    families: frozenset[str]
    problems: tuple[str, ...] = ()
    software: str = ""
    relabelled: str = ""
    processes: ProcessList | None = None

    def no_engine(self) -> Failure:
        """Why a page without an engine on it tells nothing."""
        whose = f": a page of {self.software}" if self.software else f": {self.relabelled}" if self.relabelled else ""
        return Failure(FailureReason.NOT_METRICS, f"no engine series on the page{whose}")


class Scrape(msgspec.Struct, frozen=True, gc=False):
    """One attempt to read one target: a page or a failure, never both, never neither.

    at: unix seconds when the answer was complete. took_s: wall seconds. size: bytes read.
    every_s: usual seconds between two of them where somebody else scrapes at a pace of their own, else None.
    """

    target: Target
    at: float
    took_s: float
    page: PageReading | None
    failure: Failure | None
    size: int = 0
    every_s: float | None = None
