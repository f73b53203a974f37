"""Ollama's process list, as it is and as a hostile server would write it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.dialects.ollama import read_loaded, read_processes, read_version
from triage.domain.reading import LoadedModel, PageReading
from triage.domain.target import Target
from triage.domain.text import clean

MODEL: dict[str, Any] = {
    "name": "gemma3:latest",
    "model": "gemma3:latest",
    "size": 6591830464,
    "digest": "a2af6cc3eb7f",
    "details": {"parent_model": "", "format": "gguf", "family": "gemma3", "parameter_size": "4.3B"},
    "expires_at": "2025-10-17T16:47:07.93355-07:00",
    "size_vram": 5333539264,
    "context_length": 4096,
}
HOME = Target("ollama", "http://h")


def page(body: Any) -> PageReading | None:
    return read_processes(
        body if isinstance(body, bytes) else json.dumps(body).encode(), HOME, "/api/ps", 5.0, "0.12.3"
    )


def one(**changed: Any) -> LoadedModel:
    (model,) = read_loaded({"models": [MODEL | changed]}, "ps.json")
    return model


def test_the_documented_answer() -> None:
    found = page({"models": [MODEL]})
    assert found is not None
    assert found.processes is not None
    assert (found.processes.engine, found.processes.version, found.at) == ("ollama", "0.12.3", 5.0)
    (model,) = found.processes.models
    assert (model.name, model.context, model.target) == ("gemma3:latest", 4096, "ollama")
    assert model.on_gpu == pytest.approx(0.809, abs=1e-3)
    assert model.unloads_at == pytest.approx(1760744827.93355)
    assert str(model) == "gemma3:latest, 81 % in GPU memory, context 4,096"
    assert not found.engines
    assert not found.families


def test_nothing_loaded_is_an_answer_and_older_releases_have_no_context() -> None:
    empty = page({"models": []})
    assert empty is not None
    assert empty.processes is not None
    assert str(empty.processes) == "no model loaded · ollama exports no queue and no times"
    old = one(context_length=None)
    assert (old.context, str(old)) == (None, "gemma3:latest, 81 % in GPU memory")


@pytest.mark.parametrize(
    "body",
    [
        b"Ollama is running",
        b"[]",
        b"",
        b'{"models": null}',
        b'{"models": {}}',
        b'{"models": [1]}',
        b'{"models": [{"name": "m"}]}',  # the shape of /api/tags and of other lists
        b'{"object": "list", "data": []}',
        b"[" * 100_000,
        json.dumps({"models": [MODEL] * 1001}).encode(),
    ],
)
def test_another_answer_is_no_process_list(body: bytes) -> None:
    assert page(body) is None


@pytest.mark.parametrize(
    ("changed", "share"),
    [
        ({"size_vram": 0}, 0.0),
        ({"size_vram": 7e9}, 1.0),  # rounding
        ({"size": 0}, None),
        ({"size": -5}, None),
        ({"size_vram": -1}, None),
        ({"size": True}, None),
        ({"size": "6591830464"}, None),
        ({"size": 10**400}, None),
        ({"size_vram": float("nan")}, None),
    ],
)
def test_sizes_that_cannot_be_are_not_known(changed: dict[str, Any], share: float | None) -> None:
    assert one(**changed).on_gpu == share


def test_times_that_cannot_be_are_not_known() -> None:
    for odd in ("never", "", 5, None, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "2025-10-17"):
        assert one(expires_at=odd).unloads_at is None
    assert one(expires_at="2317-06-01T00:00:00.5Z").unloads_at is not None  # keep_alive -1


def test_names_are_cleaned() -> None:
    assert one(name="\x1b]0;title\x07m\u202e").name == "m"
    assert one(name=5, model=None).name == ""


def test_the_version() -> None:
    assert read_version(b'{"version":"0.12.3"}') == "0.12.3"
    for other in (b"{}", b'{"version": 3}', b'{"version": ""}', b"<html>", b'"0.12.3"'):
        assert read_version(other) == ""


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(MODEL)), inner, max_size=6),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.sampled_from(list(MODEL)), _JSON), max_size=4))
def test_whatever_the_entries_say_shares_are_shares(models: list[dict[str, Any]]) -> None:
    for model in read_loaded({"models": models}, "ps.json"):
        assert model.on_gpu is None or 0 <= model.on_gpu <= 1
        assert model.context is None or model.context > 0
        assert str(model) == clean(str(model))


@given(st.binary(max_size=60) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_no_body_raises(body: bytes) -> None:
    read_version(body)
    page(body)
    page(b'{"models": [' + body + b"]}")
