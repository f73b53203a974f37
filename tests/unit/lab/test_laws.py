"""Laws that hold for every engine that batches continuously, whatever is asked of it."""

import itertools
from collections.abc import Sequence as Many

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.lab.batching.engine import Engine
from triage.lab.batching.request import Phase, Request, Run, Segment, Sequence
from triage.lab.batching.settings import EngineSettings
from triage.lab.machine.checkpoints import LLAMA_8B, QWEN3_30B_A3B
from triage.lab.machine.devices import H100_SXM, L40S
from triage.lab.machine.step_time import Machine

SMALL = EngineSettings(
    max_num_seqs=4, max_batched_tokens=256, max_model_len=2048, block_size=16, num_blocks=200, noise=0.05
)
MACHINES = (
    Machine(L40S, 1, LLAMA_8B),
    Machine(L40S, 1, LLAMA_8B, drafted=3, acceptance=0.6),
    Machine(H100_SXM, 1, QWEN3_30B_A3B),
)


class Notes:
    """Hears everything and adds it up."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.firsts = 0
        self.again = 0

    def queued(self, sequence: Sequence) -> None: ...
    def admitted(self, sequence: Sequence, at: float) -> None: ...
    def halted(self) -> None: ...
    def finished(self, sequence: Sequence) -> None: ...
    def aborted(self, sequence: Sequence) -> None: ...

    def preempted(self, sequence: Sequence) -> None:
        self.again += 1

    def ran(self, run: Run) -> None:
        self.runs.append(run)

    def prefilled(self, sequence: Sequence, at: float) -> None:
        self.firsts += 1


class Asked(msgspec.Struct, frozen=True):
    """after: seconds since the one before. leaves: seconds after which the client goes, or None.

    talk: whose history the first half of the prompt is.
    """

    after: float
    prompt: int
    answer: int
    leaves: float | None
    talk: int

    @property
    def request(self) -> Request:
        key, history = f"talk-{self.talk}", self.prompt // 2
        prefix = (Segment(key, history),) if history else ()
        return Request(self.prompt, self.answer, 10_000, prefix=prefix, keep=key)


ASKED = st.builds(
    Asked,
    after=st.floats(0.0, 2.0),
    prompt=st.integers(1, 1500),
    answer=st.integers(1, 500),
    leaves=st.none() | st.floats(0.001, 5.0),
    talk=st.integers(0, 2),
)
ALL_ASKED = st.lists(ASKED, min_size=1, max_size=12)
MACHINE = st.sampled_from(MACHINES)


class Played:
    """An engine that has seen it all, and what was seen of it on the way. held: ∫ open requests dt."""

    def __init__(self, machine: Machine, settings: EngineSettings, asked: Many[Asked]) -> None:
        self.notes = Notes()
        self.engine = Engine(settings, machine, self.notes, "laws")
        self.sequences: list[Sequence] = []
        self.held = 0.0
        self.used: list[int] = []
        self._now = 0.0
        due = list(itertools.accumulate([one.after for one in asked]))
        deeds = [(at, 0, place) for place, at in enumerate(due)]
        deeds += [(due[place] + one.leaves, 1, place) for place, one in enumerate(asked) if one.leaves is not None]
        for at, deed, place in sorted(deeds):
            self._play_until(at)
            if deed == 0:
                self.sequences.append(self.engine.submit(asked[place].request, at))
            else:
                self.engine.abort(self.sequences[place], at)
            self._look()
        while (at := self.engine.next_at) < float("inf"):
            self._play_until(at)

    def _play_until(self, until: float) -> None:
        while self.engine.next_at <= until:
            at = self.engine.next_at
            self._pass_to(at)
            self.engine.proceed()
            self._look()
        self._pass_to(until)
        self.engine.settle(until)

    def _pass_to(self, at: float) -> None:
        self.held += self.engine.open_requests * (at - self._now)
        self._now = at

    def _look(self) -> None:
        kv = self.engine.kv
        self.used.append(self.engine.used_blocks())
        assert kv.owned >= 0
        assert 0 <= kv.pinned <= kv.kept
        assert kv.owned + kv.kept <= kv.total


@given(MACHINE, ALL_ASKED)
def test_everything_ends_and_littles_law_holds(machine: Machine, asked: list[Asked]) -> None:
    """Mean number inside times duration is the sum of the times inside."""
    played = Played(machine, SMALL, asked)
    assert all(sequence.ended for sequence in played.sequences)
    inside = sum(sequence.finished - sequence.arrived for sequence in played.sequences)
    assert played.held == pytest.approx(inside, rel=1e-9, abs=1e-9)


@given(MACHINE, ALL_ASKED)
def test_tokens_are_conserved(machine: Machine, asked: list[Asked]) -> None:
    """What the engine says it generated is what its requests got, finished or not; computed prompts likewise."""
    played = Played(machine, SMALL, asked)
    made = sum(run.generated for run in played.notes.runs) + played.notes.firsts
    assert made == sum(played.engine.emitted(sequence) for sequence in played.sequences)
    for sequence in played.sequences:
        if sequence.phase is Phase.FINISHED:
            assert played.engine.emitted(sequence) == sequence.goal
    if not played.notes.again and all(one.leaves is None for one in asked):
        computed = sum(run.computed for run in played.notes.runs)
        assert computed == sum(one.request.prompt_tokens - one.cached for one in played.sequences)


@given(MACHINE, ALL_ASKED, st.booleans())
def test_kv_blocks_are_never_leaked(machine: Machine, asked: list[Asked], caches: bool) -> None:
    settings = msgspec.structs.replace(SMALL, prefix_caching=caches)
    played = Played(machine, settings, asked)
    kv = played.engine.kv
    assert (kv.owned, kv.pinned, kv.used) == (0, 0, 0)
    assert max(played.used) <= settings.num_blocks


def test_the_laws_are_tried_on_engines_that_preempt_and_hit_their_caches() -> None:
    """Four long answers at once need 4 × 60 of 200 blocks; a talk's second question finds what the first one left."""
    crowded = Played(MACHINES[0], SMALL, [Asked(0.0, 700, 250, None, talk) for talk in range(4)])
    assert crowded.notes.again
    talking = Played(MACHINES[0], SMALL, [Asked(20.0, 700, 10, None, 0) for _ in range(2)])
    assert [sequence.cached for sequence in talking.sequences] == [0, 336]


@given(MACHINE, st.integers(0, 12), st.integers(1, 1500), st.integers(1, 200))
def test_first_tokens_never_come_sooner_behind_a_longer_queue(
    machine: Machine, ahead: int, prompt: int, answer: int
) -> None:
    quiet = msgspec.structs.replace(SMALL, noise=0.0, prefix_caching=False)

    def wait(others: int) -> float:
        played = Played(machine, quiet, [Asked(0.0, prompt, answer, None, 0) for _ in range(others + 1)])
        return played.sequences[-1].first_token - played.sequences[-1].arrived

    assert wait(ahead + 1) >= wait(ahead) - 1e-9


@given(st.sampled_from(MACHINES[:2]), ALL_ASKED)
def test_no_decode_step_is_shorter_than_reading_the_weights_takes(machine: Machine, asked: list[Asked]) -> None:
    """A dense model's weights are read whole in every step; the data sheet's bandwidth is never exceeded."""
    floor = machine.checkpoint.size / (machine.device.bandwidth * machine.count)
    for run in Played(machine, SMALL, asked).notes.runs:
        if run.decoding:
            assert min(run.first_s, run.last_s) >= floor
