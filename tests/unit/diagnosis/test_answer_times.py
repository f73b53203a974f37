"""Answers with the server's own times, without any metrics: what is said of them, how surely, and what is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.domain.limits import Limits
from triage.domain.reading import LoadedModel
from triage.domain.situation import ContainerCpu, Situation
from triage.domain.stream import Completeness, ServerTimes, StreamReading
from triage.domain.verdict import Confidence, Diagnosis, Kind, Verdict
from triage.situation.folder import load_folder

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)


def answer(
    *, load: float = 0.1, queue: float = 0.0, prompt: float = 0.2, decode: float = 2.0, tokens: int = 100,
    model: str = "m:8b", total: bool = True, name: str = "response.json",
) -> StreamReading:  # fmt: skip
    """A whole answer; what is not named is quick."""
    whole = load + queue + prompt + decode
    return StreamReading(
        source=name,
        target="t",
        model=model,
        protocol="ollama",
        completeness=Completeness.COMPLETE,
        timed=False,
        visible_chars=200,
        chunks=1,
        events=1,
        completion_tokens=tokens,
        finish_reason="stop",
        whole=True,
        server=ServerTimes(prompt, decode, tokens, load, whole if total else None),
    )


def judged(*answers: StreamReading, **more: Any) -> Diagnosis:
    return diagnose(situation(streams=answers, **more))


def named(kind: Kind, *answers: StreamReading, **more: Any) -> Verdict | None:
    return next((v for v in judged(*answers, **more).verdicts if v.kind is kind), None)


def test_a_load_that_outlasts_the_answer_is_a_cold_start() -> None:
    verdict = judged(answer(load=41.0)).verdicts[0]
    assert (verdict.kind, verdict.detail, verdict.confidence) == (Kind.COLD_START, "model-load", Confidence.LIKELY)
    assert verdict.scope.model == "m:8b"
    assert verdict.share is not None
    assert verdict.share.value == pytest.approx(41 / 43.2)
    assert "41.0 s of 43.2 s" in verdict.summary
    assert not any(v.kind is Kind.HEALTHY for v in judged(answer(load=41.0)).verdicts)


def test_a_load_that_others_outlast_is_only_possible() -> None:
    for odd in (answer(load=5.0, decode=30.0, tokens=900), answer(load=2.0, queue=1.0, prompt=0.5)):
        verdict = named(Kind.COLD_START, odd)
        assert verdict is not None
        assert verdict.confidence is Confidence.POSSIBLE


def test_one_late_answer_of_many_is_within_the_percentile() -> None:
    verdict = named(Kind.COLD_START, answer(load=41.0), *[answer() for _ in range(30)])
    assert verdict is not None
    assert verdict.confidence is Confidence.POSSIBLE
    assert "1 of 31 answers" in verdict.summary
    often = named(Kind.COLD_START, answer(load=41.0), *[answer() for _ in range(6)])
    assert often is not None
    assert often.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    ("kind", "slow"),
    [
        (Kind.QUEUEING, {"queue": 12.0}),
        (Kind.SLOW_PREFILL, {"prompt": 9.0}),
        (Kind.SLOW_DECODE, {"decode": 40.0}),
    ],
)
def test_one_answer_is_possible_and_three_that_agree_are_likely(kind: Kind, slow: dict[str, float]) -> None:
    single = named(kind, answer(**slow))  # type: ignore[arg-type]
    assert single is not None
    assert (single.confidence, single.share and single.share.of) == (
        Confidence.POSSIBLE,
        "the answer's time at the server",
    )
    assert "a single answer" in single.summary
    assert all(v.kind is not Kind.HEALTHY for v in judged(answer(**slow)).verdicts)  # type: ignore[arg-type]
    two = named(kind, answer(**slow), answer(**slow))  # type: ignore[arg-type]
    assert two is not None
    assert two.confidence is Confidence.POSSIBLE
    three = judged(*[answer(**slow)] * 3).verdicts[0]  # type: ignore[arg-type]
    assert (three.kind, three.confidence) == (kind, Confidence.LIKELY)
    most_well = named(kind, *[answer(**slow)] * 3, *[answer()] * 4)  # type: ignore[arg-type]
    assert most_well is not None
    assert most_well.confidence is Confidence.POSSIBLE


def test_slow_tokens_of_a_model_that_is_partly_on_the_cpu() -> None:
    half = LoadedModel("ps.json", "m:8b", 0.4)
    verdict = judged(answer(decode=40.0), loaded_models=(half,)).verdicts[0]
    assert (verdict.kind, verdict.detail, verdict.confidence) == (
        Kind.SLOW_DECODE,
        "cpu-offload",
        Confidence.LIKELY,
    )
    assert "40 % of m:8b is in GPU memory" in verdict.summary
    # Another model's share explains nothing, a whole one neither; a name without a tag is its latest.
    for other in (LoadedModel("ps.json", "other", 0.4), LoadedModel("ps.json", "m:8b", 1.0)):
        unexplained = named(Kind.SLOW_DECODE, answer(decode=40.0), loaded_models=(other,))
        assert unexplained is not None
        assert (unexplained.detail, unexplained.confidence) == (None, Confidence.POSSIBLE)
    latest = named(Kind.SLOW_DECODE, answer(decode=40.0, model="m"), loaded_models=(LoadedModel("p", "m:latest", 0.0),))
    assert latest is not None
    assert "nothing of m:latest" in latest.summary


def test_partly_on_the_cpu_and_quick_is_no_slow_decode() -> None:
    half = LoadedModel("ps.json", "m:8b", 0.4)
    assert named(Kind.SLOW_DECODE, answer(), loaded_models=(half,)) is None


def test_a_starved_container_is_the_other_witness() -> None:
    starved = ContainerCpu("container.json", "ollama", limit_cores=2, throttled_periods=80, periods=100)
    verdict = judged(answer(decode=40.0), containers=(starved,)).verdicts[0]
    assert (verdict.kind, verdict.detail, verdict.confidence) == (
        Kind.SLOW_DECODE,
        "cpu-starvation",
        Confidence.LIKELY,
    )


def test_long_answers_and_few_tokens_are_not_slow() -> None:
    assert named(Kind.SLOW_DECODE, answer(decode=90.0, tokens=3000)) is None
    assert named(Kind.SLOW_DECODE, answer(decode=0.9, tokens=3)) is None
    assert named(Kind.SLOW_DECODE, answer(decode=0.0, tokens=0)) is None


def test_quick_answers_are_calm_and_declared_limits_count() -> None:
    assert judged(answer()).verdicts[0].kind is Kind.HEALTHY
    strict = Limits(first_visible_p95_s=0.25, declared=frozenset({"first_visible_p95_s"}))
    assert named(Kind.SLOW_PREFILL, answer(), limits=strict) is not None


def test_without_a_total_nothing_is_said_of_waiting() -> None:
    """llama.cpp's timings."""
    assert judged(answer(total=False)).verdicts[0].kind is Kind.HEALTHY
    verdict = named(Kind.SLOW_PREFILL, answer(total=False, load=0.0, prompt=9.0))
    assert verdict is not None
    assert "the rest" not in verdict.evidence[0].text
    assert named(Kind.QUEUEING, answer(total=False, load=0.0, prompt=9.0)) is None


def test_an_engine_whose_page_was_read_tells_more_than_single_answers() -> None:
    slow = answer(queue=12.0, model="m")
    assert diagnose(situation(serving(model="m"), streams=(slow,))).verdicts[0].kind is not Kind.QUEUEING
    kinds = {v.kind for v in diagnose(situation(serving(model="m"), streams=(slow, slow, slow))).verdicts}
    assert Kind.QUEUEING not in kinds
    # Of another model that page says nothing.
    kinds = {v.kind for v in diagnose(situation(serving(model="other"), streams=(slow, slow, slow))).verdicts}
    assert Kind.QUEUEING in kinds


def test_two_models_are_told_apart() -> None:
    slow = [answer(load=41.0, model="big"), answer(decode=40.0, model="small"), answer(model="quick")]
    said = {(v.kind, v.scope.model) for v in judged(*slow).verdicts}
    assert {(Kind.COLD_START, "big"), (Kind.SLOW_DECODE, "small")} <= said
    assert all(model != "quick" for _, model in said)


def test_a_load_beside_other_models_may_be_a_wait_for_their_memory() -> None:
    verdict = named(Kind.COLD_START, answer(load=41.0, model="big"), answer(model="small"))
    assert verdict is not None
    assert verdict.confidence is Confidence.POSSIBLE
    assert "makes room" in verdict.summary


BODY = {
    "model": "m:8b", "message": {"role": "assistant", "content": "Four pods are ready."}, "done": True,
    "done_reason": "stop", "total_duration": 41_400_000_000, "load_duration": 41_000_000_000,
    "prompt_eval_count": 30, "prompt_eval_duration": 200_000_000, "eval_count": 9, "eval_duration": 200_000_000,
}  # fmt: skip


def folder(path: Path, files: dict[str, str]) -> Situation:
    for name, text in files.items():
        (path / name).write_text(text)
    return load_folder(path)


def test_a_folder_with_one_answer_and_a_process_list(tmp_path: Path) -> None:
    ps = {"models": [{"name": "m:8b", "size": 10, "size_vram": 10, "expires_at": "2026-01-15T10:05:00Z"}]}
    found = folder(tmp_path, {"response.json": json.dumps(BODY), "ps.json": json.dumps(ps)})
    verdict = diagnose(found).verdicts[0]
    assert (verdict.kind, verdict.detail, verdict.confidence) == (Kind.COLD_START, "model-load", Confidence.LIKELY)


def test_a_streamed_answer_that_was_saved_as_json(tmp_path: Path) -> None:
    part = {"model": "m:8b", "message": {"role": "assistant", "content": "Four "}, "done": False}
    found = folder(tmp_path, {"response.json": "\n".join(map(json.dumps, [part, BODY]))})
    (stream,) = found.streams
    assert (stream.completeness, stream.events) == (Completeness.COMPLETE, 2)
    assert diagnose(found).verdicts[0].kind is Kind.COLD_START
    assert not [seen for seen in found.not_seen if seen.expected]


def test_lines_of_something_else_are_still_not_json(tmp_path: Path) -> None:
    found = folder(tmp_path, {"response.json": '{"a": 1}\n{"b": 2}', "response-b.json": "no"})
    assert {seen.source for seen in found.not_seen if seen.expected} == {"response.json", "response-b.json"}


def test_numbers_of_hundreds_of_digits_cost_only_themselves(tmp_path: Path) -> None:
    huge = json.dumps(BODY).replace("41400000000", "4" * 400)
    ps = json.dumps({"models": [{"name": "m:8b", "size": 1, "size_vram": 1}]}).replace(
        '"size": 1', f'"size": {"9" * 400}'
    )
    probes = json.dumps([{"method": "GET", "path": "/", "total_s": 1}]).replace(": 1}", f": {'9' * 400}}}")
    found = folder(tmp_path, {"response.json": huge, "ps.json": ps, "probes.json": probes})
    assert found.streams[0].server is None
    assert found.loaded_models[0].on_gpu is None
    assert found.probes[0].total_s is None
    assert diagnose(found).verdicts


_SECONDS = st.sampled_from([0.0, 0.05, 1.0, 2.9, 3.1, 20.0, 600.0]) | st.floats(0, 1000)


@given(
    st.lists(
        st.builds(
            answer, load=_SECONDS, queue=_SECONDS, prompt=_SECONDS, decode=_SECONDS.filter(bool),
            tokens=st.integers(0, 5000), model=st.sampled_from(["", "a", "b"]), total=st.booleans(),
        ),
        max_size=6,
    )
)  # fmt: skip
def test_nothing_is_sure_that_no_limit_bears_out(answers: list[StreamReading]) -> None:
    limits = Limits()
    for verdict in judged(*answers).verdicts:
        own = [s for s in answers if s.server is not None and s.model == (verdict.scope.model or "")]
        if verdict.kind is Kind.HEALTHY:
            assert all(s.server is None or s.server.before_s <= limits.first_visible_p95_s for s in answers)
        elif verdict.confidence in SURE:
            assert verdict.share is not None
            assert 0 <= verdict.share.low <= verdict.share.value <= verdict.share.high <= 1
            least = 1 if verdict.kind is Kind.COLD_START else 3
            late = [s for s in own if s.server is not None and s.server.before_s > limits.first_visible_p95_s]
            slow = [s for s in own if s.server is not None and (s.server.per_token_s or 0) > 0.1]
            assert len(slow if verdict.kind is Kind.SLOW_DECODE else late) >= least
