"""The engine, request by request: times, order, room, leaving, caches and drafts."""

import math
from typing import Any
from unittest.mock import Mock, call

import msgspec
import pytest

from triage.lab.batching.clocks import Clock
from triage.lab.batching.engine import Engine
from triage.lab.batching.refusal import Reason, Refused
from triage.lab.batching.request import Phase, Request, Segment, Sequence
from triage.lab.batching.settings import EngineSettings
from triage.lab.machine.checkpoints import LLAMA_8B
from triage.lab.machine.devices import L40S
from triage.lab.machine.step_time import Machine

MACHINE = Machine(L40S, 1, LLAMA_8B)
PLAIN = EngineSettings(4, 64, 4096, 16, 256, prefix_caching=False, frontend_s=0.0, frontend_per_token_s=0.0, noise=0.0)
# By hand from the data sheet: 864 GB/s, of which four fifths are reached, and 362 TFLOP/s, of which half are.
READ, WORK = 0.8 * 864e9, 0.5 * 362e12
WEIGHTS_S, KV_TOKEN_S, HOST_S, SEQUENCE_S = 2 * 8.03e9 / READ, 2 * 32 * 8 * 128 * 2 / READ, 1.5e-3, 2.0e-5
PHASES = {0.005: "waiting", 0.015: "prefill waiting", 0.1: "decode prefill waiting", 0.9: "decode waiting"}


def engine_with(machine: Machine = MACHINE, **changes: object) -> tuple[Engine, Mock]:
    """full: running, waiting and used blocks after each run of steps. The witness may listen to requests as well."""
    witness = Mock(full=[])
    engine = Engine(msgspec.structs.replace(PLAIN, **changes), machine, witness, "seed")
    witness.ran.side_effect = lambda _: witness.full.append((engine.running, engine.waiting, engine.used_blocks()))
    return engine, witness


def told(method: Mock) -> list[Any]:
    return [one.args[0] for one in method.call_args_list]


def ask(prompt: int = 32, output: int = 10, limit: int = 1000, **more: object) -> Request:
    return msgspec.structs.replace(Request(prompt, output, limit), **more)


def run(engine: Engine, until: float = 9e9) -> None:
    while engine.next_at <= until:
        engine.proceed()
    engine.settle(until)


def answer(engine: Engine, request: Request) -> Sequence:
    sequence = engine.submit(request, 1000.0 * (engine.steps + 1))  # long after everything else
    run(engine)
    return sequence


def test_a_request_takes_the_time_that_the_data_sheet_says() -> None:
    engine, witness = engine_with()
    sequence = engine.submit(ask(prompt=32, output=10), at=1.0)
    run(engine)
    assert (sequence.scheduled, sequence.first_token) == pytest.approx((1.0, 1.0 + HOST_S + WEIGHTS_S))
    decode_s = sum(HOST_S + SEQUENCE_S + WEIGHTS_S + (32 + step) * KV_TOKEN_S for step in range(9))
    assert sequence.finished == pytest.approx(sequence.first_token + decode_s, abs=1e-9)
    assert (sum(one.steps for one in told(witness.ran)), sequence.phase) == (10, Phase.FINISHED)
    long = answer(engine_with(max_batched_tokens=4096)[0], ask(prompt=4000, output=1))
    pairs = 4 * 32 * 32 * 128 * 4000 * 2000
    assert long.first_token == long.finished == pytest.approx(1000.0 + HOST_S + (2 * 8.03e9 * 4000 + pairs) / WORK)


def test_the_front_end_comes_before_the_queue_nobody_overtakes_in_it_and_a_starved_host_slows_it() -> None:
    engine, _ = engine_with(msgspec.structs.replace(MACHINE, host=0.5), frontend_s=0.25, frontend_per_token_s=0.0005)
    long, short = engine.submit(ask(300, output=500), at=1.0), engine.submit(ask(10, output=500), at=1.1)
    assert (engine.waiting, engine.open_requests) == (0, 2)
    run(engine, until=3.0)
    assert (long.arrived, long.queued, long.scheduled, short.queued) == (1.0, 1.8, 1.8, 1.8)
    late = engine.submit(ask(), at=3.0)
    run(engine)
    assert 0.0 <= late.scheduled - late.queued < 2 * HOST_S + 1.1 * WEIGHTS_S


def test_a_slower_machine_counts_from_the_next_step_on() -> None:
    engine, witness = engine_with()
    sequence = engine.submit(ask(output=200), at=0.0)
    run(engine, until=1.0)
    engine.change(msgspec.structs.replace(MACHINE, bandwidth=0.5), at=1.0)
    under_way = engine.next_at
    run(engine)
    seconds = [next(one.first_s for one in told(witness.ran) if one.started >= at) for at in (0.9, under_way)]
    assert seconds == pytest.approx([HOST_S + WEIGHTS_S, HOST_S + 2 * WEIGHTS_S], rel=0.01)
    assert engine.clocks.times[Clock.GPU] == pytest.approx((sequence.finished - under_way) / 2, rel=0.05)


def test_requests_run_in_order_and_never_above_the_sequence_limit() -> None:
    engine, witness = engine_with()
    sequences = [engine.submit(ask(prompt=5 + place), at=0.0) for place in range(13)]
    run(engine)
    assert witness.admitted.call_args_list == [call(sequence, sequence.scheduled) for sequence in sequences]
    assert [max(column) for column in zip(*witness.full, strict=True)][:2] == [4, 9]
    assert told(witness.finished) == sequences
    assert engine.clocks.times[Clock.WAIT_SEQUENCES] == pytest.approx(sequences[-1].scheduled)


def test_a_lower_sequence_limit_lets_those_who_run_finish() -> None:
    engine, witness = engine_with()
    sequences = [engine.submit(ask(output=50), at=0.0) for _ in range(7)]
    run(engine, until=0.2)
    engine.limit(msgspec.structs.replace(PLAIN, max_num_seqs=1, num_blocks=7), at=0.2)
    run(engine)
    assert told(witness.finished) == sequences
    assert [one.scheduled for one in sequences[5:]] == [one.finished for one in sequences[4:-1]]
    assert (witness.preempted.called, engine.settings.num_blocks) == (False, PLAIN.num_blocks)


@pytest.mark.parametrize(("drafted", "beside"), [(0, [63, 63, 24]), (3, [60, 60, 30])])
def test_a_long_prompt_is_read_in_chunks_of_the_token_budget_behind_decoding(drafted: int, beside: list[int]) -> None:
    engine, witness = engine_with(msgspec.structs.replace(MACHINE, drafted=drafted))
    answer(engine, ask(prompt=150, output=1))
    engine.submit(ask(output=500), at=9e6)
    run(engine, until=9e6 + 0.5)
    engine.submit(ask(prompt=150, output=1), at=9e6 + 0.5)
    run(engine)
    chunks = [(one.decoding, one.computed) for one in told(witness.ran) if one.computed]
    assert chunks == [(0, 64), (0, 64), (0, 22), (0, 32)] + [(1, size) for size in beside]


def test_what_has_no_reserve_waits_until_it_has() -> None:
    """Of ten blocks one request may come to need nine."""
    engine, witness = engine_with(num_blocks=10, reserve=1.0)
    first, small = engine.submit(ask(output=20, limit=100), at=0.0), engine.submit(ask(limit=10), at=0.0)
    run(engine)
    assert small.scheduled == first.finished
    assert (max(used for _, _, used in witness.full), engine.used_blocks()) == (4, 0)
    assert engine.clocks.times[Clock.WAIT_KV] == pytest.approx(first.finished)


def test_without_a_reserve_who_came_last_is_preempted_and_comes_back() -> None:
    """Two grow to five blocks each, and there are six: full when either has 48 tokens."""
    engine, witness = engine_with(num_blocks=6)
    first, second, third = [engine.submit(one, 0.0, witness) for one in (ask(32, 40), ask(32, 40), ask(64, 5))]
    run(engine)
    assert told(witness.preempted)[0] is second
    assert witness.admitted.call_args_list[:3] == [call(first, 0.0), call(second, 0.0), call(second, first.finished)]
    assert (first.counted, second.counted, third.counted, second.to_prefill) == (40, 40, 5, 32 + 17)
    assert (max(used for _, _, used in witness.full), told(witness.first_token)) == (6, [first, second, third])


def reason_of_refusal(engine: Engine, request: Request, at: float = 0.0) -> Reason:
    with pytest.raises(Refused) as refused:
        engine.submit(request, at)
    return refused.value.reason


def test_what_can_never_fit_a_full_queue_and_a_dead_engine_are_refused() -> None:
    engine, small = engine_with(max_queued=2, max_num_seqs=1, frontend_s=0.01)[0], engine_with(num_blocks=4)[0]
    for one, prompt in ((engine, 4096), (small, 64)):
        assert (reason_of_refusal(one, ask(prompt)), one.open_requests) == (Reason.CONTEXT, 0)
    fits = answer(small, ask(prompt=63, output=50))
    assert (fits.request.max_tokens, fits.counted, fits.request.finish_reason) == (1, 1, "length")
    for _ in range(2):
        engine.submit(ask(), at=0.0)
    assert reason_of_refusal(engine, ask()) is Reason.QUEUE_FULL
    run(engine, until=0.02)
    engine.submit(ask(), at=0.02)
    engine.die(0.02)
    assert reason_of_refusal(engine, ask(), at=0.02) is Reason.DEAD


@pytest.mark.parametrize("moment", PHASES)
def test_an_abort_frees_everything_in_every_phase(moment: float) -> None:
    engine, witness = engine_with(frontend_s=0.01)
    sequences = [engine.submit(ask(prompt=100, output=80), 0.0, witness) for _ in range(6)]
    run(engine, until=moment)
    assert {sequence.phase.value for sequence in sequences} == set(PHASES[moment].split())
    witness.reset_mock()
    for sequence in 2 * sequences:
        engine.abort(sequence, moment)
    assert (engine.open_requests, engine.used_blocks(), engine.kv.available) == (0, 0, PLAIN.num_blocks)
    run(engine)
    heard = (witness.first_token.called, witness.ended.called, witness.finished.called)
    assert (told(witness.aborted), *heard) == (sequences, False, False, False)
    assert answer(engine, ask(prompt=200)).phase is Phase.FINISHED


@pytest.mark.parametrize("output", [10, 1])
def test_who_hears_of_a_first_token_may_leave_and_take_others_along(output: int) -> None:
    engine, witness = engine_with()
    sequences = [engine.submit(ask(20, output), 0.0, witness) for _ in range(3)]
    witness.first_token.side_effect = lambda _, at: list(map(engine.abort, sequences[:2], (at, at)))
    run(engine)
    assert [sequence.phase for sequence in sequences] == [Phase.ABORTED, Phase.ABORTED, Phase.FINISHED]
    assert told(witness.first_token) == [sequences[0], sequences[2]]
    assert engine.used_blocks() == 0


@pytest.mark.parametrize("moment", [0.01, 0.5])
def test_a_halted_engine_takes_requests_and_goes_on_where_its_last_step_ended(moment: float) -> None:
    (plain, _), (halted, _) = engine_with(), engine_with()
    whole, late = plain.submit(ask(output=100), 0.0), halted.submit(ask(output=100), 0.0)
    run(plain)
    run(halted, until=moment)
    halted.halt(moment)
    emitted, used = halted.emitted(late), halted.used_blocks()
    other = halted.submit(ask(), moment + 1.0)
    halted.settle(moment + 4.0)
    assert (halted.next_at, halted.emitted(late), halted.waiting) == (math.inf, emitted, 1)
    halted.resume(moment + 5.0)
    assert halted.used_blocks() == used + 2
    run(halted)
    assert 5.0 < late.finished - whole.finished < 5.1
    assert (late.counted, other.counted, halted.clocks.times[Clock.HALTED]) == pytest.approx((100, 10, 5.0))


def test_a_dying_engine_tells_whoever_listens() -> None:
    engine, witness = engine_with(frontend_s=0.01)
    sequences = [engine.submit(ask(output=80), 0.0, witness) for _ in range(6)]
    run(engine, until=1.0)
    sequences.append(engine.submit(ask(), 1.0, witness))
    assert set(engine.die(1.0)) == set(told(witness.ended)) == set(sequences)
    assert {(sequence.phase, sequence.finished) for sequence in sequences} == {(Phase.LOST, 1.0)}
    assert [sequence.counted > 30 for sequence in sequences] == [True] * 4 + [False] * 3
    assert (engine.next_at, engine.open_requests) == (math.inf, 0)


def behind(*parts: tuple[str, int], prompt: int = 100, keep: str = "") -> Request:
    return ask(prompt, 20, prefix=tuple([Segment(*part) for part in parts]), keep=keep)


def test_prompts_hit_what_earlier_ones_left_in_whole_blocks_but_for_the_last_token() -> None:
    engine, witness = engine_with(prefix_caching=True)
    assert [answer(engine, behind(("template", 70))).cached for _ in range(2)] == [0, 64]
    assert [answer(engine, behind(("whole", 64), prompt=64)).cached for _ in range(2)] == [0, 48]
    # 100 tokens and 19 of the answer: the KV of the last one is never computed.
    turns = behind(keep="talk"), behind(("talk", 120), prompt=150, keep="talk")
    assert [answer(engine, turn).cached for turn in turns] == [0, 112]
    assert told(witness.ran)[-2].computed == 150 - 112
    # A part is found only behind those before it.
    asked = [behind((name, 48), ("part", 32)) for name in ("old", "old", "new")]
    assert [answer(engine, one).cached for one in asked] == [0, 80, 0]
    assert [answer(one, behind(("template", 70))).cached for one in 2 * [engine_with()[0]]] == [0, 0]


def test_of_a_prompt_that_was_aborted_only_what_was_computed_is_found() -> None:
    engine, _ = engine_with(prefix_caching=True)
    sequence = engine.submit(behind(prompt=150, keep="talk"), at=0.0)
    run(engine, until=0.03)
    engine.abort(sequence, at=0.03)
    assert engine.kv.found((Segment("talk", 150),)) == 64


def test_room_is_made_by_evicting_what_was_used_least_lately_and_never_what_is_in_use() -> None:
    """Each talk leaves 8 blocks of 20 behind; then somebody needs 15. Later on a talk's first 5 are in use."""
    engine, witness = engine_with(prefix_caching=True, num_blocks=20)
    for name in "ab":
        answer(engine, behind(prompt=100, keep=name))
    answer(engine, ask(230))
    assert [engine.kv.found((Segment(name, 119),)) for name in "ab"] == [0, 5 * 16]
    reading = engine.submit(behind(("b", 80)), at=9e6)
    others = [engine.submit(ask(size, 2), at=9e6 + 0.1 * place) for place, size in enumerate((40, 150, 230))]
    run(engine, until=9e6 + 0.4)
    assert [one.ended for one in (*others, reading)] == [True, True, False, False]
    assert engine.kv.found((Segment("b", 80),)) == 80
    run(engine)
    assert (reading.cached, reading.preemptions, max(used for _, _, used in witness.full)) == (80, 0, 20)


def test_two_requests_of_one_talk_at_once_hold_no_more_than_there_is() -> None:
    engine, witness = engine_with(prefix_caching=True, num_blocks=20)
    answer(engine, ask(16, 10, keep="talk"))
    talk = behind(("talk", 16), prompt=140, keep="talk")
    both = [engine.submit(msgspec.structs.replace(talk, visible_tokens=tokens), at=9e6) for tokens in (10, 150)]
    run(engine)
    assert ([one.ended for one in both], max(used for _, _, used in witness.full) <= 20) == ([True, True], True)


@pytest.mark.parametrize(("acceptance", "steps"), [(0.0, 99), (0.5, 53), (1.0, 25)])
def test_accepted_drafts_save_steps(acceptance: float, steps: int) -> None:
    """Of three drafted tokens a half, a quarter and an eighth are accepted on top of each step's own."""
    engine, witness = engine_with(msgspec.structs.replace(MACHINE, drafted=3, acceptance=acceptance))
    assert answer(engine, ask(output=100)).counted == 100
    runs = [one for one in told(witness.ran) if one.decoding]
    sums = [sum(getattr(one, name) for one in runs) for name in ("steps", "drafts", "drafted", "accepted")]
    assert sums == [steps, steps, 3 * steps, 99 - steps]


def test_drafts_that_are_accepted_no_more_leave_the_tokens_before_as_they_were() -> None:
    engine, witness = engine_with(msgspec.structs.replace(MACHINE, drafted=3, acceptance=1.0))
    sequence = engine.submit(ask(output=200), at=0.0)
    run(engine, until=0.5)
    before = engine.emitted(sequence)
    engine.change(msgspec.structs.replace(engine.machine, acceptance=0.0), at=0.5)
    run(engine)
    sums = [sum(getattr(one, name) for one in told(witness.ran)) for name in ("steps", "generated")]
    assert (*sums, sequence.counted, before > 50) == (1 + (before - 1) // 4 + 200 - before, 199, 200, True)


def test_reasoning_comes_before_what_is_visible() -> None:
    engine, _ = engine_with()
    seen, cut = answer(engine, ask(reasoning_tokens=20)), answer(engine, ask(limit=8, reasoning_tokens=20))
    share = (seen.first_visible - seen.first_token) / (seen.finished - seen.first_token)
    assert (round(share, 2), cut.counted, math.isnan(cut.first_visible)) == (0.69, 8, True)
