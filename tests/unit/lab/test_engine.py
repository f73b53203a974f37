import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from triage.lab.engine import Engine, EngineSettings
from triage.lab.sequence import Phase, Sequence, Step
from triage.lab.workload import Request


class Witness:
    """Keeps what the engine says."""

    def __init__(self) -> None:
        self.order: list[Sequence] = []
        self.steps: list[Step] = []
        self.done: list[Sequence] = []
        self.gone: list[Sequence] = []

    def admitted(self, sequence: Sequence) -> None:
        self.order.append(sequence)

    def first_token(self, sequence: Sequence) -> None:
        assert sequence.emitted == 1

    def finished(self, sequence: Sequence) -> None:
        self.done.append(sequence)

    def aborted(self, sequence: Sequence) -> None:
        self.gone.append(sequence)

    def stepped(self, step: Step) -> None:
        self.steps.append(step)


def ask(prompt: int = 32, output: int = 10, limit: int = 100) -> Request:
    return Request(prompt_tokens=prompt, reasoning_tokens=0, visible_tokens=output, max_tokens=limit)


def run(engine: Engine, until: float = math.inf) -> None:
    while engine.next_at < math.inf and engine.next_at <= until:
        engine.proceed()


def test_one_request_takes_the_time_the_model_says(settings: EngineSettings) -> None:
    witness = Witness()
    engine = Engine(settings, witness, "seed")
    sequence = engine.submit(ask(prompt=32, output=10), at=1.0)
    run(engine)
    assert sequence.scheduled == pytest.approx(1.0)
    assert sequence.first_token == pytest.approx(1.0 + 0.010 + 32 * 0.0001)
    # nine more tokens of a batch of one
    assert sequence.finished == pytest.approx(sequence.first_token + 9 * 0.011)
    assert [step.generated for step in witness.steps] == [1] * 10
    assert sequence.phase is Phase.FINISHED


def test_the_front_end_comes_before_the_queue(settings: EngineSettings) -> None:
    engine = Engine(msgspec.structs.replace(settings, frontend_s=0.5), Witness(), "seed")
    sequence = engine.submit(ask(), at=1.0)
    run(engine)
    assert (sequence.arrived, sequence.queued, sequence.scheduled) == (1.0, 1.5, 1.5)


def test_requests_run_in_order_and_never_above_the_sequence_limit(settings: EngineSettings) -> None:
    witness = Witness()
    engine = Engine(settings, witness, "seed")
    sequences = [engine.submit(ask(prompt=5 + place), at=0.0) for place in range(13)]
    run(engine)
    assert witness.order == sequences
    assert max(step.running for step in witness.steps) == 4
    assert max(step.waiting for step in witness.steps) == 9
    assert len(witness.done) == 13


def test_a_long_prompt_is_read_in_chunks_of_the_token_budget(settings: EngineSettings) -> None:
    witness = Witness()
    engine = Engine(settings, witness, "seed")
    sequence = engine.submit(ask(prompt=150, output=1), at=0.0)
    run(engine)
    assert [step.computed for step in witness.steps] == [64, 64, 22]
    assert [step.prompts_done for step in witness.steps] == [0, 0, 150]
    assert sequence.finished == sequence.first_token


def test_decoding_goes_first_in_the_token_budget(settings: EngineSettings) -> None:
    witness = Witness()
    engine = Engine(settings, witness, "seed")
    engine.submit(ask(prompt=32, output=50), at=0.0)
    run(engine, until=0.1)
    engine.submit(ask(prompt=150, output=1), at=0.1)
    run(engine)
    chunks = [(step.decoded, step.computed) for step in witness.steps if step.computed]
    assert chunks == [(0, 32), (1, 63), (1, 63), (1, 24)]


def test_slowness_acts_on_decode_work_and_not_on_prompts(settings: EngineSettings) -> None:
    engine = Engine(settings, Witness(), "seed")
    engine.slowness = 9.0
    sequence = engine.submit(ask(prompt=32, output=2), at=0.0)
    run(engine)
    assert sequence.first_token == pytest.approx(9 * 0.010 + 32 * 0.0001)
    assert sequence.finished - sequence.first_token == pytest.approx(9 * 0.011)


def test_what_does_not_fit_the_kv_cache_waits_until_it_does(settings: EngineSettings) -> None:
    # 10 blocks of 16: one request may grow to 132 tokens, 9 blocks; two do not fit together.
    witness = Witness()
    engine = Engine(msgspec.structs.replace(settings, num_blocks=10), witness, "seed")
    first, second = [engine.submit(ask(prompt=32, output=20, limit=100), at=0.0) for _ in range(2)]
    run(engine)
    assert second.scheduled == pytest.approx(first.finished)
    assert max(step.running for step in witness.steps) == 1
    assert max(step.used_blocks for step in witness.steps) == 4  # 52 tokens
    assert witness.steps[-1].used_blocks == 0


def test_a_request_that_can_never_fit_is_refused(settings: EngineSettings) -> None:
    engine = Engine(settings, Witness(), "seed")
    with pytest.raises(ValueError, match="4097"):
        engine.submit(ask(prompt=4000, limit=97), at=0.0)
    small = Engine(msgspec.structs.replace(settings, num_blocks=4), Witness(), "seed")
    with pytest.raises(ValueError):
        small.submit(ask(prompt=32, limit=100), at=0.0)
    assert engine.open_requests == small.open_requests == 0


@pytest.mark.parametrize("moment", [0.0, 0.005, 0.05])
def test_an_abort_frees_everything_in_every_phase(settings: EngineSettings, moment: float) -> None:
    witness = Witness()
    engine = Engine(msgspec.structs.replace(settings, frontend_s=0.001), witness, "seed")
    heard: list[Sequence] = []
    sequences = [engine.submit(ask(output=80), 0.0, heard.append, heard.append) for _ in range(6)]
    run(engine, until=moment)
    for sequence in sequences:
        engine.abort(sequence)
        engine.abort(sequence)
    assert engine.open_requests == 0
    heard.clear()
    run(engine)
    assert not heard
    assert not witness.done
    assert witness.gone == sequences
    assert all(step.used_blocks == 0 and step.generated == 0 for step in witness.steps[-1:] if moment)
    # the whole cache is free again
    again = engine.submit(ask(prompt=32, output=10), at=1.0)
    run(engine)
    assert again.ended


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(0.0, 2.0),  # arrival
            st.integers(1, 200),  # prompt
            st.integers(1, 60),  # answer
            st.integers(1, 80),  # limit
            st.one_of(st.none(), st.floats(0.0, 3.0)),  # when the client leaves
        ),
        max_size=25,
    ),
    st.sampled_from([1, 16]),
)
def test_nothing_is_lost_and_nothing_is_kept(
    requests: list[tuple[float, int, int, int, float | None]], block_size: int
) -> None:
    settings = EngineSettings(
        max_num_seqs=3,
        max_batched_tokens=32,
        max_model_len=512,
        block_size=block_size,
        num_blocks=600 // block_size,
        step_base_s=0.01,
        step_per_sequence_s=0.001,
        prefill_per_token_s=0.0001,
    )
    witness = Witness()
    engine = Engine(settings, witness, "seed")
    leaving: list[tuple[float, Sequence]] = []
    sequences = []
    for at, prompt, answer, limit, leaves in sorted(requests, key=lambda one: one[0]):
        run(engine, until=at)
        for when, sequence in leaving:
            if when <= at:
                engine.abort(sequence)
        sequence = engine.submit(ask(prompt, answer, limit), at)
        sequences.append(sequence)
        if leaves is not None:
            leaving.append((leaves, sequence))
    run(engine)
    assert engine.open_requests == 0
    assert {id(one) for one in sequences} == {id(one) for one in (*witness.done, *witness.gone)}
    assert all(one.emitted == min(one.request.visible_tokens, one.request.max_tokens) for one in witness.done)
    assert all(one.queued <= one.scheduled < one.first_token <= one.finished for one in witness.done)
    assert all(step.running <= 3 and 0 <= step.used_blocks <= settings.num_blocks for step in witness.steps)
    assert all(step.decoded + step.computed <= 32 for step in witness.steps)
    if witness.steps:
        assert witness.steps[-1].used_blocks == 0
