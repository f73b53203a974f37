"""Requests, refusals, model lists and counts as people keep them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.situation.bodies import read_counts, read_error, read_models, read_request

CHAT = {"model": "m", "messages": [{"role": "user", "content": "secret"}]}
FUNCTION = {"type": "function", "function": {"name": "get_pods"}}


@pytest.mark.parametrize(
    ("more", "offers", "tools", "limit"),
    [
        ({}, False, (), None),
        ({"tools": [FUNCTION]}, True, ("get_pods",), None),
        ({"tools": [FUNCTION], "tool_choice": "none"}, False, ("get_pods",), None),
        ({"tools": [FUNCTION], "tool_choice": {"type": "none"}}, False, ("get_pods",), None),
        ({"tools": [{"name": "f", "input_schema": {}}], "max_tokens": 5}, True, ("f",), 5),  # Anthropic
        ({"functions": [{"name": "f"}], "max_completion_tokens": 7}, True, ("f",), 7),
        ({"tools": "[28 tools, 24,118 bytes]"}, True, (), None),
        ({"tools": []}, False, (), None),
        ({"options": {"num_predict": 80}}, False, (), 80),  # Ollama
        ({"options": {"num_predict": -1}}, False, (), None),
        ({"tools": [None, 3, {"function": 4}]}, True, (), None),
    ],
)
def test_what_a_request_asked_for(
    more: dict[str, Any], offers: bool, tools: tuple[str, ...], limit: int | None
) -> None:
    request = read_request(CHAT | more, "request.json")
    assert request is not None
    assert (request.offers_tools, request.tools, request.max_tokens) == (offers, tools, limit)
    assert "secret" not in repr(request)


@pytest.mark.parametrize("data", [{}, [], "x", None, [{"turn": 1, "prompt_tokens": 3}], {"model": "m"}])
def test_other_things_are_no_request(data: Any) -> None:
    assert read_request(data, "request.json") is None


@pytest.mark.parametrize(
    ("data", "name", "status", "message"),
    [
        ({"error": "server busy"}, "response-503.json", 503, "server busy"),
        ({"error": {"message": "too long", "type": "BadRequestError", "code": 400}}, "response.json", 400, "too long"),
        ({"object": "error", "message": "too long", "code": 400}, "response-x.json", 400, "too long"),
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            "r.json",
            None,
            "Overloaded",
        ),
        ({"error": {"message": "m", "code": "429"}}, "response.json", 429, "m"),
        ({"detail": [{"msg": "field required"}]}, "response-422.json", 422, "field required"),
        ({"detail": "Not Found"}, "response.json", None, "Not Found"),
        ({"error": {"code": 503}}, "response.json", None, None),
        ({"error": "x"}, "response-1503.json", None, "x"),  # not a status
    ],
)
def test_why_there_is_no_answer(data: Any, name: str, status: int | None, message: str | None) -> None:
    error = read_error(data, name)
    assert (error and error.status, error and error.message) == (status, message)


@pytest.mark.parametrize("data", [{}, [], "x", {"choices": []}, {"detail": "x", "a": 1, "b": 2}, {"id": 1}])
def test_other_things_are_no_error(data: Any) -> None:
    assert read_error(data, "response.json") is None


def test_model_lists() -> None:
    vllm = {"object": "list", "data": [{"id": "a", "max_model_len": 6048}]}
    llama = {"models": [{"name": "a"}], "data": [{"id": "a", "meta": {"n_ctx": 4096, "n_ctx_train": 131072}}]}
    ollama = {"models": [{"name": "a:latest", "size": 1}]}
    assert [(m.name, m.context) for m in read_models(vllm, "models.json")] == [("a", 6048)]
    assert [(m.name, m.context) for m in read_models(llama, "models.json")] == [("a", 4096)]
    assert [(m.name, m.context) for m in read_models(ollama, "models.json")] == [("a:latest", None)]


@pytest.mark.parametrize("data", [{"data": []}, {"data": None}, {"data": [{"id": 3}]}, 5, {}])
def test_a_list_of_no_model_is_not_read(data: Any) -> None:
    with pytest.raises(ValueError, match="model"):
        read_models(data, "models.json")


def test_counts_by_finish_reason() -> None:
    counts = read_counts(
        {"completions_total": 100, "empty_answers": {"stop": 3, "finish_stop_late": 2, "length": "9", "?": 1}}, "c.json"
    )[0]
    assert (counts.total, counts.empty) == (100.0, {"stop": 5.0, "length": 9.0, "": 1.0})


@pytest.mark.parametrize("data", [[], {}, {"empty": 3}, {"empty": {"stop": "many"}}])
def test_other_counts_are_not_read(data: Any) -> None:
    with pytest.raises(ValueError, match="count"):
        read_counts(data, "counts.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "code", "detail", "data", "models", "id", "tools", "messages", "empty", "meta"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_refused(data: Any) -> None:
    read_request(data, "request.json")
    read_error(data, "response-400.json")
    for reader in (read_models, read_counts):
        try:
            reader(data, "x.json")
        except ValueError:
            continue
