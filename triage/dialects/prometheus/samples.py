"""Raw samples of a server (a range selector's matrix) back to the pages they were scraped from.

Every sample keeps the time it was scraped at. An instant query would stamp all of them with its own time, and would go
on answering with the last value for five minutes after it stopped being true.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from triage.domain.text import clean

# What tells one replica from another. Not the job: two jobs that scrape one address see one replica.
_PLACE = ("cluster", "namespace", "pod", "instance")
# What service discovery usually adds, where the server does not say it (Thanos, remote writers).
_USUAL_TARGET_LABELS = frozenset(
    {"job", "instance", "namespace", "pod", "container", "endpoint", "service", "node", "cluster"}
)
# What servers add to tell themselves from their twins: the same sample twice is still one sample.
_SERVER_LABELS = frozenset(
    {"prometheus", "prometheus_replica", "receive", "receive_replica", "thanos_replica", "tenant_id", "monitor"}
)
# A time at which fewer than this share of the usual number of series were written is no scrape of the page, but a
# few series that carry times of their own.
_WHOLE_PAGE = 0.5


Place: TypeAlias = tuple[str, ...]


class Instance(NamedTuple):
    """One scraped address. place: what tells it from others. pages: (unix seconds, page), oldest first."""

    place: Place
    job: str
    pages: tuple[tuple[float, bytes], ...]

    @property
    def address(self) -> str:
        return address_of(self.place)


class _Part(NamedTuple):
    """The series of one replica as one job has them: (series as a page writes it, samples)."""

    job: str
    series: list[tuple[str, list[tuple[float, str]]]]


def instances_of(matrix: Sequence[Any], targets: Mapping[tuple[str, str], Mapping[str, str]]) -> list[Instance]:
    """The pages behind a matrix. targets: labels of the known scrape targets by (job, instance).

    What is not shaped like a series is left out.
    """
    places: dict[Place, dict[str, _Part]] = defaultdict(dict)
    for entry in matrix:
        labels, samples = _labels(entry), _samples(entry)
        name = labels.pop("__name__", "")
        if not name or not samples:
            continue
        place = place_of(labels)
        job = labels.get("job", "")
        added = targets.get((job, labels.get("instance", "")))
        key = _key(name, _own_labels(labels, added))
        places[place].setdefault(job, _Part(job, [])).series.append((key, samples))
    found = []
    for place, parts in places.items():
        part = max(parts.values(), key=lambda part: (len(part.series), part.job))
        found.append(Instance(place, part.job, _pages(part)))
    return sorted(found)


def address_of(place: Place) -> str:
    """The `instance` label: host and port, unless somebody relabelled it."""
    return place[_PLACE.index("instance")]


def place_of(labels: Mapping[str, str]) -> Place:
    return tuple(labels.get(label, "") for label in _PLACE)


def _pages(part: _Part) -> tuple[tuple[float, bytes], ...]:
    """One page for each time at which most of the series were written."""
    lines: dict[float, list[str]] = defaultdict(list)
    for key, samples in part.series:
        for at, value in samples:
            lines[at].append(f"{key} {value}")
    usual = Counter({at: len(found) for at, found in lines.items()})
    most = max(usual.values(), default=0)
    whole = sorted(at for at, count in usual.items() if count >= _WHOLE_PAGE * most)
    return tuple((at, "\n".join(lines[at]).encode("utf-8", "replace")) for at in whole)


def _own_labels(labels: Mapping[str, str], added: Mapping[str, str] | None) -> dict[str, str]:
    """The labels that the page itself had: without those of the target, and with `exported_x` called x again."""
    if added is None:
        of_target = {name for name in labels if name in _USUAL_TARGET_LABELS}
    else:
        of_target = {name for name, value in added.items() if labels.get(name) == value}
    own = {name: value for name, value in labels.items() if name not in of_target and name not in _SERVER_LABELS}
    for name in [name for name in own if name.startswith("exported_")]:
        original = name.removeprefix("exported_")
        if original in of_target:
            own[original] = own.pop(name)
    return own


def named(places: Sequence[Place]) -> dict[Place, str]:
    """A name for people: the pod where there is one, else the address; with more of the place where two are alike."""
    names: dict[Place, str] = {}
    for labels in (("pod",), ("pod", "instance"), _PLACE):
        alike = Counter(names.values())
        for place in places:
            if place not in names or alike[names[place]] > 1:
                parts = [place[_PLACE.index(label)] for label in labels]
                text = " ".join(part for part in parts if part) or address_of(place)
                names[place] = clean(text, 120) or "unnamed"
    return names


def _key(name: str, labels: Mapping[str, str]) -> str:
    """A series as the text format writes it."""
    if not labels:
        return name
    return name + "{" + ",".join(f'{label}="{_escaped(value)}"' for label, value in sorted(labels.items())) + "}"


def _escaped(value: str) -> str:
    if "\\" not in value and '"' not in value and "\n" not in value:
        return value
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _labels(entry: Any) -> dict[str, str]:
    metric = entry.get("metric") if isinstance(entry, dict) else None
    if not isinstance(metric, dict) or not all(map(_is_text, metric)) or not all(map(_is_text, metric.values())):
        return {}
    return dict(metric)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _samples(entry: Any) -> list[tuple[float, str]]:
    """Times and value texts; what is neither is left out. float() of a text with a line end or a space in it would
    be a number, and in a page a line of its own.
    """
    values = entry.get("values") if isinstance(entry, dict) else None
    found = []
    for pair in values if isinstance(values, list) else ():
        match pair:
            case [int() | float() as at, str() as value] if value.isprintable() and value and " " not in value:
                found.append((float(at), value))
    return found
