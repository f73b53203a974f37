"""The text format, against the reference parser and against garbage."""

import math
import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tests.data import RECORDINGS
from triage.dialects.exposition import parse_series, read_lines
from triage.dialects.pages import read_page
from triage.domain.quantity import Quantity
from triage.domain.target import Target

TARGET = Target("a")
PAGES = sorted(
    path
    for path in RECORDINGS.rglob("*")
    # LiteLLM's are whole answers, with their head.
    if path.suffix == ".prom" or (path.parent.name != "litellm" and re.search("metrics_|stats_prom", path.name))
)

names = st.from_regex(r"\A[a-zA-Z_:][a-zA-Z0-9_:]{0,20}\Z")
label_names = st.from_regex(r"\A[a-zA-Z_][a-zA-Z0-9_]{0,8}\Z").filter(lambda name: name != "le")
label_values = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=20)
numbers = st.one_of(
    st.floats(allow_nan=False), st.integers(-(10**9), 10**9), st.sampled_from([math.inf, -math.inf, math.nan])
)


def written(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return ("+Inf" if value > 0 else "-Inf") if math.isinf(value) else repr(float(value))


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@st.composite
def sample_lines(draw: st.DrawFn) -> tuple[str, str, dict[str, str], float]:
    name = draw(names)
    labels = draw(st.dictionaries(label_names, label_values, max_size=4))
    value = float(draw(numbers))
    inside = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
    stamp = draw(st.sampled_from(["", " 1395066363000", "\t1395066363000"]))
    gap = draw(st.sampled_from([" ", "  ", "\t"]))
    return f"{name}{'{' + inside + '}' if labels else ''}{gap}{written(value)}{stamp}", name, labels, value


@given(st.lists(sample_lines(), max_size=8))
def test_every_legal_line_is_read(samples: list[tuple[str, str, dict[str, str], float]]) -> None:
    lines, problems = read_lines("\n".join(line for line, *_ in samples))
    assert not problems
    assert len(lines.keys) == len(samples)
    for key, value, (_, name, labels, number) in zip(lines.keys, lines.values, samples, strict=True):
        series = parse_series(key)
        assert (series.name, series.labels) == (name, labels)
        assert float(value) == number or (math.isnan(float(value)) and math.isnan(number))


@given(st.binary(max_size=400))
def test_no_bytes_make_it_raise(body: bytes) -> None:
    page = read_page(body, TARGET, "x", None)
    assert not page.engines


@given(st.text(alphabet=string.printable, max_size=300))
def test_no_text_makes_it_raise(text: str) -> None:
    read_page(("vllm:num_requests_running " + text).encode(), TARGET, "x", None)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_recordings_read_like_the_reference(path: Path) -> None:
    text = path.read_text()
    lines, problems = read_lines(text)
    ours = [(*parse_series(key), float(value)) for key, value in zip(lines.keys, lines.values, strict=True)]
    theirs = [
        (sample.name, dict(sample.labels), float(sample.value))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]
    assert not problems

    def order(row: tuple[str, dict[str, str], float]) -> tuple[str, str, str]:
        # The reference adds _total to a counter that was exported without it.
        return row[0].removesuffix("_total"), str(sorted(row[1].items())), repr(row[2])

    assert sorted(map(order, ours)) == sorted(map(order, theirs))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html><body>502 Bad Gateway</body></html>", "line 1 is not a sample: <html>"),
        (b"\xff\xfe\x00binary", "line 1 is not a sample"),
        (b'vllm:num_requests_running{model_name="m', "line 1 is not a sample"),
        (b"name 1_000\n", "line 1 is not a sample"),
    ],
)
def test_garbage_is_named(body: bytes, problem: str) -> None:
    page = read_page(body, TARGET, "x", None)
    assert not page.families
    assert page.problems[0].startswith(problem)


def test_half_a_page_keeps_its_good_lines() -> None:
    body = b'vllm:num_requests_running{engine="0",model_name="m"} 3\nvllm:num_requests_waiting{engine="0",mo'
    page = read_page(body, TARGET, "x", None)
    assert page.engines[0].get(Quantity.RUNNING) == 3
    assert page.problems


def test_quoted_utf8_names_and_exemplars() -> None:
    lines, problems = read_lines('{"my.metric","a.b"="c"} 1\nm_bucket{le="1"} 3 # {trace_id="x"} 0.5 1.2\n# EOF\n')
    assert not problems
    assert parse_series(lines.keys[0]) == ("my.metric", {"a.b": "c"})
    assert lines.values == ["1", "3"]
