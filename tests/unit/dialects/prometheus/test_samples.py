"""Samples back to pages: whoever added which labels, a replica's page is what it had served."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import RECORDINGS
from triage.dialects.exposition import parse_series, split_lines
from triage.dialects.pages import read_page
from triage.dialects.prometheus.samples import Instance, instances_of, named
from triage.domain.target import Target

PAGES = [
    path
    for engine in ("vllm", "sglang", "llama-cpp", "dynamo")
    for path in sorted((RECORDINGS / engine).glob("*.prom"))[:3]
]
POD = {"job": "engines", "instance": "10.0.0.1:8000", "pod": "p-0", "namespace": "llm"}


def scraped(text: str, added: dict[str, str], *times: float, **external: str) -> list[dict[str, Any]]:
    """What a server has of a page: target labels put on, clashing ones of the page called exported_*."""
    lines = split_lines(text)
    found = []
    for key, value in zip(lines.keys, lines.values, strict=True):
        series = parse_series(key)
        own = {f"exported_{label}" if label in added else label: text for label, text in series.labels.items()}
        metric = {"__name__": series.name, **own, **added, **external}
        found.append({"metric": metric, "values": [[at, value] for at in times]})
    return found


def targets(*added: dict[str, str]) -> dict[tuple[str, str], dict[str, str]]:
    return {(labels["job"], labels["instance"]): labels for labels in added}


def engines(instance: Instance) -> list[object]:
    at, body = instance.pages[-1]
    return list(read_page(body, Target("t"), "s", at).engines)


@pytest.mark.parametrize("path", PAGES, ids=[path.name for path in PAGES])
@pytest.mark.parametrize("extra", [{}, {"engine": "own", "model_name": "label of the target"}], ids=["plain", "clash"])
def test_a_page_comes_back_as_it_was(path: Any, extra: dict[str, str]) -> None:
    text = path.read_text("utf-8", "replace")
    added = POD | extra
    (instance,) = instances_of(scraped(text, added, 10.0, 25.0, prometheus="a", prometheus_replica="b"), targets(added))
    assert [at for at, _ in instance.pages] == [10.0, 25.0]
    assert engines(instance) == list(read_page(text.encode(), Target("t"), "s", 25.0).engines)


def test_without_the_targets_the_usual_labels_are_taken_off() -> None:
    text = PAGES[0].read_text("utf-8", "replace")
    (instance,) = instances_of(scraped(text, POD, 10.0), {})
    assert engines(instance) == list(read_page(text.encode(), Target("t"), "s", 10.0).engines)


def test_one_address_that_two_jobs_scrape_is_one_replica() -> None:
    text = PAGES[0].read_text("utf-8", "replace")
    other = POD | {"job": "podmonitor"}
    matrix = scraped(text, POD, 10.0) + scraped(text, other, 12.0)
    (instance,) = instances_of(matrix, targets(POD, other))
    assert engines(instance) == list(read_page(text.encode(), Target("t"), "s", instance.pages[0][0]).engines)


def test_names_are_pods_until_they_are_not_unique() -> None:
    places = [("", "a", "p-0", "h:1"), ("", "b", "p-1", "h:2"), ("", "a", "", "h:3")]
    assert list(named(places).values()) == ["p-0", "p-1", "h:3"]
    ports = [("", "a", "p-0", "h:1"), ("", "a", "p-0", "h:2")]
    assert list(named(ports).values()) == ["p-0 h:1", "p-0 h:2"]
    clusters = [("x", "a", "p-0", "h:1"), ("y", "a", "p-0", "h:1")]
    assert list(named(clusters).values()) == ["x a p-0 h:1", "y a p-0 h:1"]


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(ANY_JSON | st.fixed_dictionaries({"metric": ANY_JSON, "values": ANY_JSON}), max_size=5))
def test_whatever_a_server_sends_is_read_or_left_out(matrix: list[Any]) -> None:
    for instance in instances_of(matrix, {}):
        for at, body in instance.pages:
            read_page(body, Target("t"), "s", at)


LABEL = st.text(max_size=12)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,6}", fullmatch=True), LABEL, max_size=3), st.floats(allow_nan=False))
def test_no_label_value_can_add_a_line_or_a_series(labels: dict[str, str], value: float) -> None:
    entry = {"metric": {"__name__": "vllm:x", **labels}, "values": [[1.0, repr(value)]]}
    (instance,) = instances_of([entry], {})
    lines = split_lines(instance.pages[0][1].decode())
    assert len(lines.keys) == 1
    series = parse_series(lines.keys[0])
    assert series.name == "vllm:x"
    kept = {name: text for name, text in labels.items() if name in series.labels}
    assert {name: text.encode("utf-8", "replace").decode() for name, text in kept.items()} == series.labels
