"""Which dialect a page speaks, and which releases write such a page."""

from triage.dialects.series import PageIndex
from triage.dialects.table import Table, VersionMark


def own_series(table: Table, index: PageIndex) -> PageIndex:
    """The page as the table's program wrote it: its spelling of names, without series of other programs.

    A router may export an engine's names with labels of its own; added to the engine's they would count twice.
    """
    index = index.under(table.prefixes)
    if not table.foreign_labels:
        return index
    strange, model = table.foreign_labels, table.model_label
    return index.without(lambda labels: model not in labels and any(label in labels for label in strange))


def recognised(table: Table, index: PageIndex) -> bool:
    """Whether the page speaks this dialect: names decide, never a label's value or a flag.

    index: as `own_series` gives it.
    """
    rule = table.recognise
    present = [name for name in rule.any if index.has(name)]
    if not present or not all(map(index.has, rule.all)) or any(map(index.has, rule.none)):
        return False
    if not rule.label:
        return True
    label = rule.label.lstrip("!")
    carried = any(
        label in placed.labels
        for name in present
        for spelling in (name, f"{name}_total", f"{name}_count")
        for placed in index.series(spelling)
    )
    return carried != rule.label.startswith("!")


def version_of(marks: tuple[VersionMark, ...], index: PageIndex) -> str:
    """The bracket of releases that export what is on this page, such as '≥ 0.22.1'; '' when nothing tells."""
    since: list[str] = []
    before: list[str] = []
    for mark in marks:
        if not index.has(mark.name):
            continue
        if mark.label and not any(mark.label in placed.labels for placed in index.series(mark.name)):
            continue
        if mark.since:
            since.append(mark.since)
        if mark.before:
            before.append(mark.before)
    low = max(since, key=_version_key, default="")
    high = min(before, key=_version_key, default="")
    return ", ".join([f"≥ {low}"] * bool(low) + [f"< {high}"] * bool(high))


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
