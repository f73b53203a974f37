"""Token usage of single requests: the shapes it is logged in, and what is none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.dialects.logs import read_log
from triage.dialects.logs.usage import read_usage, reuse_of
from triage.domain.prompts import Reuse


@pytest.mark.parametrize(
    ("record", "reuse"),
    [
        ({"client": "a", "prompt_tokens": 100, "cached_tokens": 48}, Reuse("a", 100, 48)),
        (
            {"user": "u", "usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 3}}},
            Reuse("u", 9, 3),
        ),
        (
            {"usage": {"input_tokens": 10, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 10}},
            Reuse("", 100, 80),
        ),
        ({"turn": 2, "prompt_tokens": 9, "cached_tokens": 0}, Reuse("", 9, 0, 2)),
        ({"prompt_tokens": 9}, None),
        ({"prompt_tokens": 9, "cached_tokens": 10}, None),
        ({"prompt_tokens": 9, "cached_tokens": None}, None),
        ({"prompt_tokens": 9, "prompt_tokens_details": None, "cached_tokens": 4}, Reuse("", 9, 4)),
        ({"prompt_tokens": True, "cached_tokens": True}, None),
        ({"prompt_tokens": -5, "cached_tokens": -9}, None),
        (["prompt_tokens", "cached_tokens"], None),
        (None, None),
    ],
)
def test_records(record: object, reuse: Reuse | None) -> None:
    assert reuse_of(record) == reuse


def test_a_log_of_usage_gives_its_requests_in_order() -> None:
    lines = [json.dumps({"client": "a", "prompt_tokens": n + 10, "cached_tokens": n}) for n in range(3)]
    reading = read_log("\n".join(lines), "usage.log", "usage")
    assert [reuse.cached for reuse in reading.reuse] == [0, 1, 2]


def test_the_newest_two_thousand_are_kept() -> None:
    text = "\n".join(json.dumps({"prompt_tokens": n + 10, "cached_tokens": n}) for n in range(5000))
    found = read_usage(text)
    assert (len(found), found[-1].cached) == (2000, 4999)


def test_senders_are_cleaned() -> None:
    (reuse,) = read_usage(json.dumps({"client": "a\x1b[31m\u202eb", "prompt_tokens": 2, "cached_tokens": 1}))
    assert reuse.track == "ab"


@given(st.text(max_size=300))
def test_nothing_raises(text: str) -> None:
    read_usage(text)
    read_usage('{"cached_tokens": ' + text)


@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text(max_size=5),
        lambda x: st.dictionaries(
            st.sampled_from(["usage", "prompt_tokens", "cached_tokens", "prompt_tokens_details", "turn", "client"]), x
        ),
    )
)
def test_any_record_gives_numbers_that_fit_or_nothing(record: object) -> None:
    reuse = reuse_of(record)
    assert reuse is None or 0 <= reuse.cached <= reuse.prompt
