"""Lines of a watch: one event each."""

import msgspec

from triage.lab.cluster.asks import Choice
from triage.lab.cluster.discovery import Resource
from triage.lab.cluster.names import Object
from triage.lab.cluster.statuses import Refusal
from triage.lab.cluster.store import Change, Store

_INITIAL_END = {"k8s.io/initial-events-end": "true"}


def present(store: Store, choice: Choice) -> list[bytes]:
    """Everything that is there, as if it came now."""
    found = store.select(choice.resource.plural, choice.namespace, choice.selects)
    return [_line("ADDED", choice.resource, one) for one in found]


def since(store: Store, choice: Choice, version: int) -> list[bytes]:
    """What has changed after that version. Refusal (410) when that is not known any more."""
    lines = [_changed(choice, change) for change in store.since(version)]
    return [line for line in lines if line]


def bookmark(resource: Resource, version: int, *, initial_end: bool = False) -> bytes:
    """Only a version. A Pod's is recorded with its empty parts; others have no more than metadata here."""
    metadata: Object = {"resourceVersion": str(version), **({"annotations": _INITIAL_END} if initial_end else {})}
    rest: Object = {"spec": {"containers": None}, "status": {}} if resource.kind == "Pod" else {}
    return _line("BOOKMARK", resource, {"metadata": metadata, **rest})


def error(refusal: Refusal) -> bytes:
    return msgspec.json.encode({"type": "ERROR", "object": refusal.body}) + b"\n"


def _changed(choice: Choice, change: Change) -> bytes:
    """Empty when the choice has nothing to do with it. What is no longer selected is as good as deleted."""
    plural, namespace, _ = change.key
    if plural != choice.resource.plural or choice.namespace not in ("", namespace):
        return b""
    was = change.before if change.before is not None and _chosen(choice, change.before) else None
    now = change.now if change.now is not None and _chosen(choice, change.now) else None
    if now is not None:
        return _line("ADDED" if was is None else "MODIFIED", choice.resource, now)
    if was is not None:
        metadata = {**was["metadata"], "resourceVersion": str(change.version)}
        return _line("DELETED", choice.resource, {**was, "metadata": metadata})
    return b""


def _chosen(choice: Choice, one: Object) -> bool:
    return choice.selects is None or choice.selects(one)


def _line(kind: str, resource: Resource, one: Object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": typed(resource, one)}) + b"\n"


def typed(resource: Resource, one: Object) -> Object:
    """An object by itself names its kind; in a list it does not."""
    return {"kind": resource.kind, "apiVersion": resource.group_version, **one}
