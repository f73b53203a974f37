"""The server's own times in answers: what is left out, what contradicts itself, what is made up."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import RECORDINGS
from triage.dialects.streams.capture import read_capture, read_response
from triage.dialects.streams.durations import llamacpp_times, ollama_times
from triage.domain.stream import ServerTimes

S = 1_000_000_000
FULL: dict[str, Any] = {
    "total_duration": 20 * S,
    "load_duration": 11 * S,
    "prompt_eval_count": 400,
    "prompt_eval_duration": 2 * S,
    "eval_count": 60,
    "eval_duration": 6 * S,
}


def times(**changed: Any) -> ServerTimes | None:
    return ollama_times(FULL | changed)


def without(*keys: str) -> ServerTimes | None:
    return ollama_times({key: value for key, value in FULL.items() if key not in keys})


def test_phases_and_what_remains_of_the_total() -> None:
    found = times()
    assert found is not None
    assert found == ServerTimes(2.0, 6.0, 60, 11.0, 20.0)
    assert (found.queue_s, found.before_s, found.whole_s) == pytest.approx((1.0, 14.0, 20.0))
    assert found.per_token_s == pytest.approx(0.1)


def test_a_field_that_is_left_out_is_zero() -> None:
    warm = without("load_duration")
    assert warm is not None
    assert (warm.load_s, warm.queue_s) == (0.0, pytest.approx(12.0))
    cached = without("prompt_eval_duration", "prompt_eval_count")
    assert cached is not None
    assert (cached.prompt_s, cached.queue_s) == (0.0, pytest.approx(3.0))
    silent = without("eval_count", "eval_duration")
    assert silent is not None
    assert (silent.decode_tokens, silent.per_token_s) == (0, None)
    assert without("total_duration") is None  # an answer that was cut, or another server's


@pytest.mark.parametrize("key", ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"])
@pytest.mark.parametrize(
    "odd", [-1, float("nan"), math.inf, -math.inf, 10**400, 8 * 86400 * S, "5", None, True, [], {}]
)
def test_a_number_that_cannot_be_takes_all_of_them_along(key: str, odd: Any) -> None:
    assert times(**{key: odd}) is None


def test_phases_that_exceed_the_whole_contradict_it() -> None:
    assert times(total_duration=10 * S) is None
    rounded = times(total_duration=19 * S - 30_000_000)  # two processes measured it
    assert rounded is not None
    assert rounded.queue_s == 0.0
    assert times(total_duration=0) is None


def test_llamacpp_tells_neither_a_total_nor_a_wait() -> None:
    found = llamacpp_times({"timings": {"prompt_ms": 500.0, "predicted_ms": 2000.0, "predicted_n": 20}})
    assert found == ServerTimes(0.5, 2.0, 20)
    assert found is not None
    assert (found.queue_s, found.before_s, found.whole_s) == (None, 0.5, 2.5)
    for odd in (None, [], {}, {"prompt_ms": -1, "predicted_ms": 1, "predicted_n": 1}, {"prompt_ms": 1}):
        assert llamacpp_times({"timings": odd}) is None
    assert llamacpp_times({}) is None


def test_the_last_object_of_a_stream_and_a_whole_body_carry_them() -> None:
    lines = [{"model": "m", "message": {"content": "Hi"}, "done": False}, {"message": {}, "done": True} | FULL]
    streamed = read_capture("\n".join(map(json.dumps, lines)), "response.sse", "t")
    assert streamed.server == times()
    whole = read_response({"model": "m", "response": "Hi", "done": True, "done_reason": "stop"} | FULL, "r.json", "t")
    assert whole is not None
    assert whole.server == times()
    unfinished = read_capture(json.dumps({"message": {"content": "Hi"}, "done": False} | FULL), "response.sse", "t")
    assert unfinished.server is None


@pytest.mark.parametrize("name", ["completion", "completions"])
def test_recorded_llamacpp_streams(name: str) -> None:
    text = (RECORDINGS / f"llama-cpp/stream-{name}.sse").read_text()
    found = read_capture(text, "s.sse", "t").server
    assert found is not None
    assert (found.decode_tokens, found.total_s) == (20, None)
    assert 0 < found.decode_s < 1


_NUMBER = st.integers() | st.floats() | st.integers(0, 10**12) | st.none() | st.text(max_size=3)


@given(st.dictionaries(st.sampled_from(list(FULL)), _NUMBER))
def test_shares_of_the_whole_are_shares(payload: dict[str, Any]) -> None:
    found = ollama_times(payload)
    if found is not None:
        assert found.queue_s is not None
        parts = (found.load_s, found.prompt_s, found.decode_s, found.queue_s)
        assert all(math.isfinite(part) and 0 <= part <= found.whole_s for part in parts)
        assert found.whole_s > 0
        assert sum(parts) == pytest.approx(found.whole_s)


@given(st.dictionaries(st.sampled_from(["prompt_ms", "predicted_ms", "predicted_n", "prompt_n"]), _NUMBER))
def test_no_timings_raise(timings: dict[str, Any]) -> None:
    found = llamacpp_times({"timings": timings})
    assert found is None or found.whole_s > 0
