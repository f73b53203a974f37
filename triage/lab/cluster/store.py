"""The cluster's objects with their versions, and what has changed lately."""

import base64
import binascii
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from triage.lab.cluster.discovery import Resource
from triage.lab.cluster.names import Object
from triage.lab.cluster.objects import Key
from triage.lab.cluster.selectors import Selects
from triage.lab.cluster.statuses import bad_request, expired

# Changes that a watch can go back to.
_CHANGES = 1000
# Lists that are being read page by page.
_PAGED_LISTS = 8
_TOO_OLD_LIST = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter."
)


class Change(NamedTuple):
    """One step of the store. now, before: None when there is or was no such object."""

    version: int
    key: Key
    before: Object | None
    now: Object | None


class Page(NamedTuple):
    """remaining: None where the API server does not tell. token: "" at the end."""

    version: int
    items: list[Object]
    token: str
    remaining: int | None


class _Continue(msgspec.Struct):
    v: str
    rv: int
    start: str


class Store:
    """version: of the last change; it only grows."""

    def __init__(self, changes: int = _CHANGES) -> None:
        self.version = 1
        self._plain: Mapping[Key, Object] = {}
        self._objects: dict[Key, Object] = {}
        self._changes: deque[Change] = deque(maxlen=changes)
        self._forgotten = self.version
        self._paged: OrderedDict[int, dict[Key, Object]] = OrderedDict()

    def take(self, objects: Mapping[Key, Object]) -> bool:
        """From now on there are these. True when something has changed."""
        before = self.version
        for key in [key for key in self._plain if key not in objects]:
            self._note(key, self._objects.pop(key), None)
        for key, plain in objects.items():
            if self._plain.get(key) != plain:
                self._note(key, self._objects.get(key), plain)
        self._plain = objects
        return self.version != before

    def get(self, key: Key) -> Object | None:
        return self._objects.get(key)

    def select(self, plural: str, namespace: str, selects: Selects | None = None) -> list[Object]:
        """Sorted by namespace and name. namespace: "" for all."""
        return [one for _, one in self._chosen(self._objects, plural, namespace, selects)]

    def page(self, resource: Resource, namespace: str, selects: Selects | None, limit: int, token: str) -> Page:
        """limit: 0 for no limit. Refusal: a token that cannot be read (400), or that is too old (410)."""
        version, start, objects = self.version, "", self._objects
        if token:
            asked = _read_token(token)
            version, start = asked.rv, asked.start
            found = self._paged.get(version) if version != self.version else objects
            if found is None:
                raise expired(_TOO_OLD_LIST)
            objects = found
        chosen = [
            (place, one)
            for place, one in self._chosen(objects, resource.plural, namespace, selects)
            if place + "\0" > start
        ]
        if not limit or len(chosen) <= limit:
            return Page(version, [one for _, one in chosen], "", None)
        self._keep(version, objects)
        following = f"{chosen[limit - 1][0]}\0"
        left = None if selects else len(chosen) - limit
        return Page(version, [one for _, one in chosen[:limit]], _write_token(version, following), left)

    def since(self, version: int) -> list[Change]:
        """Changes after that version, oldest first. Refusal (410) when some of them are forgotten."""
        if version < self._forgotten:
            raise expired(f"too old resource version: {version} ({self._forgotten})")
        found = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            found.append(change)
        return found[::-1]

    # ---- inside

    def _note(self, key: Key, before: Object | None, plain: Object | None) -> None:
        self.version += 1
        now = None
        if plain is not None:
            metadata = dict(plain["metadata"])
            now = {**plain, "metadata": _with_version(metadata, self.version)}
            self._objects[key] = now
        elif before is not None:
            # A deleted object is shown once more, with the version of its deletion.
            before = {**before, "metadata": _with_version(before["metadata"], self.version)}
        if len(self._changes) == self._changes.maxlen:
            self._forgotten = self._changes[0].version
        self._changes.append(Change(self.version, key, before, now))

    def _chosen(
        self, objects: Mapping[Key, Object], plural: str, namespace: str, selects: Selects | None
    ) -> list[tuple[str, Object]]:
        found = [
            (key[2] if namespace or not key[1] else f"{key[1]}/{key[2]}", one)
            for key, one in objects.items()
            if key[0] == plural and namespace in ("", key[1]) and (selects is None or selects(one))
        ]
        return sorted(found, key=lambda pair: pair[0])

    def _keep(self, version: int, objects: Mapping[Key, Object]) -> None:
        self._paged[version] = dict(objects)
        while len(self._paged) > _PAGED_LISTS:
            self._paged.popitem(last=False)


def _with_version(metadata: Object, version: int) -> Object:
    """Behind the uid, where the API writes it."""
    fields: Object = {}
    for name, value in metadata.items():
        if name != "resourceVersion":
            fields[name] = value
        if name == "uid":
            fields["resourceVersion"] = str(version)
    return fields


def _write_token(version: int, start: str) -> str:
    text = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _read_token(token: str) -> _Continue:
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        return msgspec.json.decode(text, type=_Continue)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from error
