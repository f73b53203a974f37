"""The schema of a dialect table: one TOML file per engine family and naming generation."""

from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from triage.domain.quantity import Quantity
from triage.domain.reading import Role


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one quantity is exported.

    names: without _total/_bucket/_sum/_count, newest first; the first one on the page counts.
    where: labels a series must carry. by: label whose values split the quantity (finish reasons).
    take: which part of a histogram stands for a scalar quantity. scale: factor to the quantity's unit.
    not_applicable: exported values that mean "no value".
    every: the names are different things that add up, not spellings of one.
    label: the number stands in this label of an info series, as a number or as a list of names to count;
    of several series the one with the largest value is the newest (vLLM writes the time as the value).
    count: a histogram quantity that the page has as two plain counters; `names` is the sum, this the count.
    """

    names: tuple[str, ...]
    where: dict[str, str] = {}
    by: str = ""
    take: Literal["value", "count", "sum"] = "value"
    scale: float = 1.0
    not_applicable: tuple[float, ...] = ()
    label: str = ""
    every: bool = False
    count: str = ""


class VersionMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The family `name` exists from version `since` on, or in versions before `before`."""

    name: str
    since: str = ""
    before: str = ""
    label: str = ""  # that one of its series must carry


class Rename(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name that dashboards still use. to: its successors, none when it was removed without one."""

    old: str
    to: tuple[str, ...] = ()
    note: str = ""


class Recognise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names that must all be on the page, at least one of which must be, and none of which may be.

    label: a label that a name of `any` must carry (or none may carry, with a leading '!').
    """

    any: tuple[str, ...]
    all: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    label: str = ""


class Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What has to be set at the server for quantities that are not always exported.

    quantities: none means the whole page. instead: the quantity is not to be had; where else the answer lies.
    feature: the flag turns on what is measured, not the measuring: without it there is nothing to export.
    """

    flag: str
    quantities: tuple[Quantity, ...] = ()
    instead: bool = False
    feature: bool = False


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One dialect. rank_labels: one value per data-parallel engine: kept apart, then added.

    copy_labels: several processes report the same thing: the largest counts, never the sum.
    late: counters that move only when a request finishes.
    lingering: gauges that nobody rewrites while the engine is idle: they show the last work, not now.
    prefixes: how the names of this table may begin on a page, the spelling used here first.
    via: for such a beginning, the program that re-exports the names under it.
    drop: a label and the only value of it that is kept; other series are parts of that total.
    foreign_labels: on a series without the model's label they mark another program's series of the same name.
    models_from: the only names whose series tell which models there are (all names where none of them is there).
    joins: another program around an engine, on the engine's own page: its quantities complete the engine's.
    worker_label: names this worker as the front end in front of it does.
    """

    engine: str
    dialect: str
    title: str
    source: str
    recognise: Recognise
    metrics: dict[Quantity, Metric]
    prefixes: tuple[str, ...] = ()
    via: dict[str, str] = {}
    model_label: str = "model_name"
    models_from: tuple[str, ...] = ()
    foreign_labels: tuple[str, ...] = ()
    joins: bool = False
    worker_label: str = ""
    role: Role = Role.MIXED
    role_label: str = ""
    rank_labels: tuple[str, ...] = ()
    copy_labels: tuple[str, ...] = ()
    drop: dict[str, str] = {}
    late: frozenset[Quantity] = frozenset()
    lingering: frozenset[Quantity] = frozenset()
    versions: tuple[VersionMark, ...] = ()
    renames: tuple[Rename, ...] = ()
    switches: tuple[Switch, ...] = ()


@cache
def engine_tables() -> tuple[Table, ...]:
    """Every shipped engine table, in file-name order."""
    folder = resources.files("triage.dialects.engines")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return tuple(msgspec.toml.decode(f.read_bytes(), type=Table) for f in files)


def table_of(engine: str, dialect: str) -> Table | None:
    """The table that a reading was made with."""
    return next((t for t in engine_tables() if (t.engine, t.dialect) == (engine, dialect)), None)


@cache
def known_renames() -> dict[str, Rename]:
    """Old series name to its rename, over all engines; also a quantity's older spellings."""
    renames: dict[str, Rename] = {}
    for table in engine_tables():
        for metric in table.metrics.values():
            for old in () if metric.every else metric.names[1:]:
                renames.setdefault(old, Rename(old, (metric.names[0],)))
        renames.update({rename.old: rename for rename in table.renames})
    return renames
