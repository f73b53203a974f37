"""What a request asks for: its path and its query, read as the API server reads them."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from triage.lab.cluster.discovery import RESOURCES, Resource
from triage.lab.cluster.selectors import Selects, selector
from triage.lab.cluster.statuses import Refusal, bad_request, no_such_resource

Query = Mapping[str, str]

_BY_PLACE = {(one.root, one.plural): one for one in RESOURCES}
_ROOTS = {one.root for one in RESOURCES}
_TRUE = ("1", "t", "T", "true", "TRUE", "True")


class Place(NamedTuple):
    """namespace: "" for all, or where there are none. name: "" for a list. part: a subresource, or ""."""

    resource: Resource
    namespace: str
    name: str
    part: str


class Choice(NamedTuple):
    """Of a list or a watch."""

    resource: Resource
    namespace: str
    selects: Selects | None


class LogAsk(NamedTuple):
    """since: unix seconds. None where nothing limits."""

    previous: bool
    follow: bool
    timestamps: bool
    tail: int | None
    limit: int | None
    since: float | None


def read_place(path: str) -> Place | None:
    """None for an API group that is not served. Refusal (404) for a resource that its group has not."""
    root, rest = _split(path)
    if root not in _ROOTS:
        return None
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource = _BY_PLACE.get((root, rest[0])) if rest else None
    name, part = (*rest[1:], "", "")[:2]
    if (
        resource is None
        or len(rest) > 3
        or (resource.namespaced and not namespace and name)
        or (not resource.namespaced and namespace)
        or (part and (resource.plural, part) != ("pods", "log"))
    ):
        raise no_such_resource()
    return Place(resource, namespace, name, part)


def read_choice(place: Place, query: Query) -> Choice:
    """Refusal (400) for selectors that cannot be read."""
    selects = selector(place.resource.plural, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    return Choice(place.resource, place.namespace, selects)


def read_log_ask(query: Query, now: float) -> LogAsk:
    """now: unix seconds. Refusal (400, 422) for numbers that are none, or too small."""
    seconds = _number(query, "sinceSeconds", 1)
    since = None if seconds is None else now - seconds
    if since is None and query.get("sinceTime"):
        try:
            since = datetime.fromisoformat(query["sinceTime"]).timestamp()
        except ValueError as error:
            raise bad_request(f"sinceTime: {error}") from error
    return LogAsk(
        previous=is_true(query, "previous"),
        follow=is_true(query, "follow"),
        timestamps=is_true(query, "timestamps"),
        tail=_number(query, "tailLines", 0),
        limit=_number(query, "limitBytes", 1),
        since=since,
    )


def is_true(query: Query, name: str) -> bool:
    return query.get(name, "") in _TRUE


def whole_number(query: Query, name: str) -> int:
    """0 when it is not given. Refusal (400) for text that is no number."""
    text = query.get(name, "")
    try:
        return int(text) if text else 0
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error


def _number(query: Query, name: str, least: int) -> int | None:
    if not query.get(name):
        return None
    number = whole_number(query, name)
    if number < least:
        words = f"must be greater than or equal to {least}"
        cause = {"reason": "FieldValueInvalid", "message": f"Invalid value: {number}: {words}", "field": name}
        details = {"kind": "PodLogOptions", "causes": [cause]}
        raise Refusal(422, "Invalid", f'PodLogOptions "" is invalid: {name}: Invalid value: {number}: {words}', details)
    return number


def _split(path: str) -> tuple[str, list[str]]:
    """Root of a group and version, and what stands behind it."""
    steps = [step for step in path.split("/") if step]
    head = 2 if steps[:1] == ["api"] else 3
    return "/" + "/".join(steps[:head]), steps[head:]
