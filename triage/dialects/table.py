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
    """

    names: tuple[str, ...]
    where: dict[str, str] = {}
    by: str = ""
    take: Literal["value", "count", "sum"] = "value"
    scale: float = 1.0
    not_applicable: tuple[float, ...] = ()
    label: str = ""
    every: bool = False


class VersionMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The family `name` exists from version `since` on, or in versions before `before`."""

    name: str
    since: str = ""
    before: str = ""
    label: str = ""  # 'label=value' that must be on one of its series


class Rename(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name that dashboards still use. to: its successors, none when it was removed without one."""

    old: str
    to: tuple[str, ...] = ()
    note: str = ""


class Recognise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names that must all be on the page, at least one of which must be, and none of which may be.

    label: a label that the first name of `any` must carry (or must not, with a leading '!').
    """

    any: tuple[str, ...]
    all: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    label: str = ""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One dialect. rank_labels: one value per data-parallel engine: kept apart, then added.

    copy_labels: several processes report the same thing: the largest counts, never the sum.
    late: counters that move only when a request finishes.
    prefixes: how the names of this table may begin on a page, the spelling used here first.
    drop: a label and the only value of it that is kept; other series are parts of that total.
    """

    engine: str
    dialect: str
    title: str
    source: str
    recognise: Recognise
    metrics: dict[Quantity, Metric]
    prefixes: tuple[str, ...] = ()
    model_label: str = "model_name"
    role: Role = Role.MIXED
    role_label: str = ""
    rank_labels: tuple[str, ...] = ()
    copy_labels: tuple[str, ...] = ()
    drop: dict[str, str] = {}
    late: frozenset[Quantity] = frozenset()
    versions: tuple[VersionMark, ...] = ()
    renames: tuple[Rename, ...] = ()


@cache
def engine_tables() -> tuple[Table, ...]:
    """Every shipped engine table, in file-name order."""
    folder = resources.files("triage.dialects.engines")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return tuple(msgspec.toml.decode(f.read_bytes(), type=Table) for f in files)


@cache
def known_renames() -> dict[str, Rename]:
    """Old series name to its rename, over all engines; also a quantity's older spellings."""
    renames: dict[str, Rename] = {}
    for table in engine_tables():
        for metric in table.metrics.values():
            for old in metric.names[1:]:
                renames.setdefault(old, Rename(old, (metric.names[0],)))
        renames.update({rename.old: rename for rename in table.renames})
    return renames
