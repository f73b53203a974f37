"""labelSelector and fieldSelector: conditions of equality, joined by commas."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from triage.lab.cluster.names import Object
from triage.lab.cluster.statuses import bad_request

Selects = Callable[[Object], bool]

_TERM = re.compile(r"([A-Za-z0-9._/-]+)\s*(==|!=|=)\s*([A-Za-z0-9._-]*)")
_EVERYWHERE = ("metadata.name", "metadata.namespace")
# Those that the API server indexes (pkg/apis/*/v1/conversion.go), as far as they mean something here.
_FIELDS = {
    "pods": ("spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP"),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.fieldPath",
        "reason",
        "type",
        "reportingComponent",
    ),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
}


def selector(plural: str, labels: str, fields: str) -> Selects | None:
    """Refusal (400) for what cannot be read. None: everything is selected."""
    label_terms = _terms(labels, "label")
    field_terms = _terms(fields, "field")
    for key, _, _ in field_terms:
        if key not in (*_EVERYWHERE, *_FIELDS.get(plural, ())):
            raise bad_request(f"field label not supported: {key}")
    if not label_terms and not field_terms:
        return None

    def selects(one: Object) -> bool:
        worn = one["metadata"].get("labels", {})
        return all(_holds(worn.get(key), sign, value) for key, sign, value in label_terms) and all(
            _holds(_field(one, key), sign, value) for key, sign, value in field_terms
        )

    return selects


def _terms(text: str, what: str) -> list[tuple[str, str, str]]:
    terms = []
    for part in text.split(",") if text.strip() else ():
        match = _TERM.fullmatch(part.strip())
        if match is None:
            raise bad_request(
                f"unable to parse requirement: {what} selector {part!r}: only =, == and != are known here"
            )
        terms.append((match[1], match[2], match[3]))
    return terms


def _holds(found: str | None, sign: str, wanted: str) -> bool:
    return (found != wanted) if sign == "!=" else found == wanted


def _field(one: Object, path: str) -> str:
    """ "" where the object has no such field, as in the API server."""
    place: Any = one
    for step in path.split("."):
        place = place.get(step) if isinstance(place, Mapping) else None
    return "" if place is None else str(place)
