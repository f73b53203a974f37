"""Versions, pages and the bounded past of the cluster's store; selectors; paths; logs."""

import json

import pytest

from triage.lab.cluster import watching
from triage.lab.cluster.asks import Choice, LogAsk, read_choice, read_log_ask, read_place
from triage.lab.cluster.discovery import RESOURCES
from triage.lab.cluster.pod_log import after, log_bytes
from triage.lab.cluster.selectors import selector
from triage.lab.cluster.statuses import Refusal
from triage.lab.cluster.store import Store

PODS = next(one for one in RESOURCES if one.plural == "pods")
ALL = LogAsk(previous=False, follow=False, timestamps=False, tail=None, limit=None, since=None)


def pod(name: str, **labels: str) -> tuple[tuple[str, str, str], dict]:
    metadata = {"name": name, "namespace": "lab", "uid": name, "labels": labels}
    return ("pods", "lab", name), {"metadata": metadata, "status": {"phase": "Running"}}


def objects(*pods: tuple) -> dict:
    return dict(pods)


def kinds(store: Store, version: int, labels: str = "") -> list[tuple[str, str]]:
    choice = Choice(PODS, "lab", selector("pods", labels, ""))
    lines = [json.loads(line) for line in watching.since(store, choice, version)]
    return [(one["type"], one["object"]["metadata"]["name"]) for one in lines]


def test_only_changes_have_a_new_version() -> None:
    store = Store()
    assert store.take(objects(pod("a"), pod("b")))
    first = store.version
    assert not store.take(objects(pod("a"), pod("b")))
    assert store.version == first
    assert store.take(objects(pod("a", app="x"), pod("c")))
    assert kinds(store, first) == [("DELETED", "b"), ("MODIFIED", "a"), ("ADDED", "c")]
    versions = [one["metadata"]["resourceVersion"] for one in store.select("pods", "lab")]
    assert versions == [str(first + 2), str(first + 3)]


def test_what_a_selector_loses_is_deleted_for_it() -> None:
    store = Store()
    store.take(objects(pod("a", app="x")))
    version = store.version
    store.take(objects(pod("a", app="y")))
    assert kinds(store, version, "app=x") == [("DELETED", "a")]
    assert kinds(store, version, "app=y") == [("ADDED", "a")]
    assert kinds(store, version, "app=z") == []


def test_the_past_is_bounded() -> None:
    store = Store(changes=4)
    for turn in range(10):
        store.take(objects(pod("a", turn=str(turn))))
    assert len(kinds(store, store.version - 4)) == 4
    with pytest.raises(Refusal) as refused:
        store.since(store.version - 5)
    assert refused.value.code == 410
    assert refused.value.body["message"] == "too old resource version: 6 (7)"


def test_pages_are_of_one_version_and_expire() -> None:
    store = Store()
    store.take(objects(*[pod(name) for name in "abcde"]))
    page = store.page(PODS, "lab", None, 2, "")
    assert ([one["metadata"]["name"] for one in page.items], page.remaining) == (["a", "b"], 3)
    store.take(objects(pod("a")))
    rest = store.page(PODS, "lab", None, 2, page.token)
    assert ([one["metadata"]["name"] for one in rest.items], rest.remaining) == (["c", "d"], 1)
    assert rest.version == page.version
    last = store.page(PODS, "lab", None, 2, rest.token)
    assert ([one["metadata"]["name"] for one in last.items], last.token, last.remaining) == (["e"], "", None)
    for turn in range(20):
        store.take(objects(pod("a", turn=str(turn)), pod("b")))
        store.page(PODS, "lab", None, 1, "")
    with pytest.raises(Refusal, match="continue parameter is too old") as refused:
        store.page(PODS, "lab", None, 2, page.token)
    assert refused.value.code == 410


@pytest.mark.parametrize("token", ["nonsense!", "e30", "bm8"])
def test_a_token_that_is_none_is_refused(token: str) -> None:
    with pytest.raises(Refusal) as refused:
        Store().page(PODS, "", None, 1, token)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("labels", "fields", "expected"),
    [
        ("app=x", "", True),
        ("app==x,tier!=y", "", True),
        ("app=x,tier=y", "", False),
        ("app=", "", False),
        ("", "metadata.name=a", True),
        ("", "metadata.name=a,status.phase!=Running", False),
        ("", "metadata.namespace=lab", True),
        ("", "spec.nodeName=", True),
    ],
)
def test_selectors(labels: str, fields: str, expected: bool) -> None:
    selects = selector("pods", labels, fields)
    assert selects is not None
    assert selects(pod("a", app="x")[1]) is expected


@pytest.mark.parametrize(("labels", "fields"), [("app in (x)", ""), ("a=b=c", ""), ("", "spec.color=red")])
def test_selectors_that_are_not_understood_are_refused(labels: str, fields: str) -> None:
    with pytest.raises(Refusal) as refused:
        selector("pods", labels, fields)
    assert refused.value.body["reason"] == "BadRequest"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/pods", ("pods", "", "", "")),
        ("/api/v1/namespaces/lab/pods/a/log", ("pods", "lab", "a", "log")),
        ("/api/v1/namespaces", ("namespaces", "", "", "")),
        ("/api/v1/namespaces/lab", ("namespaces", "", "lab", "")),
        ("/api/v1/nodes/n", ("nodes", "", "n", "")),
        ("/apis/apps/v1/namespaces/lab/deployments/d", ("deployments", "lab", "d", "")),
    ],
)
def test_paths(path: str, expected: tuple[str, str, str, str]) -> None:
    place = read_place(path)
    assert place is not None
    assert (place.resource.plural, *place[1:]) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/secrets",
        "/api/v1",
        "/api/v1/pods/a",
        "/api/v1/namespaces/lab/nodes",
        "/api/v1/namespaces/lab/pods/a/exec",
        "/api/v1/namespaces/lab/pods/a/log/more",
        "/apis/apps/v1/pods",
    ],
)
def test_paths_that_lead_nowhere(path: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_place(path)
    assert refused.value.code == 404


def test_a_group_that_is_not_served() -> None:
    assert read_place("/apis/kserve.io/v1beta1/inferenceservices") is None
    assert read_place("/metrics") is None


def test_a_watch_can_be_of_one_object() -> None:
    place = read_place("/api/v1/namespaces/lab/pods")
    assert place is not None
    choice = read_choice(place, {"fieldSelector": "metadata.name=a"})
    store = Store()
    store.take(objects(pod("a"), pod("b")))
    assert len(watching.present(store, choice)) == 1


def test_logs_are_cut_from_the_end_first_and_then_at_their_bytes() -> None:
    entries = [(0.25, "one"), (1.5, "two\nthree"), (2.0, "four")]
    assert log_bytes(entries, ALL, 100.0) == b"one\ntwo\nthree\nfour\n"
    assert log_bytes(entries, ALL._replace(tail=2), 100.0) == b"three\nfour\n"
    assert log_bytes(entries, ALL._replace(tail=0), 100.0) == b""
    assert log_bytes(entries, ALL._replace(tail=2, limit=3), 100.0) == b"thr"
    assert log_bytes(entries, ALL._replace(since=101.8), 100.0) == b"four\n"
    stamped = log_bytes(entries[:1], ALL._replace(timestamps=True), 100.0)
    assert stamped == b"1970-01-01T00:01:40.250000000Z one\n"


def test_what_came_after_an_entry() -> None:
    entries = [(0.0, "same"), (0.0, "same"[:2] + "me"), (1.0, "new")]
    assert after(entries, entries[1]) == entries[2:]
    assert after(entries, None) == entries
    assert after(entries, (9.0, "gone")) == entries


@pytest.mark.parametrize(
    ("query", "code"), [({"tailLines": "x"}, 400), ({"tailLines": "-1"}, 422), ({"limitBytes": "0"}, 422)]
)
def test_log_options_that_are_wrong(query: dict[str, str], code: int) -> None:
    with pytest.raises(Refusal) as refused:
        read_log_ask(query, 100.0)
    assert refused.value.code == code


def test_since_is_a_number_of_seconds_or_a_moment() -> None:
    assert read_log_ask({"sinceSeconds": "30"}, 100.0).since == 70.0
    assert read_log_ask({"sinceTime": "1970-01-01T00:01:00Z"}, 100.0).since == 60.0
