"""One engine with continuous batching, in virtual time.

The model: requests pass a front end, wait in one FIFO queue, and run up to `max_num_seqs` at a
time. A step computes one token for every decoding sequence and, within the token budget, chunks of
the prompts of the others. It takes (base + per sequence × decoding) × slowness + per prompt token
× tokens, with a few per cent of noise. Everything an engine exports follows from that.

A sequence is admitted only when its longest possible answer fits the KV cache next to those of all
others, so nothing is ever preempted.
"""

import math
import random
from collections import deque

import msgspec

from triage.lab.sequence import Listener, Observer, Phase, Sequence, Step
from triage.lab.workload import Request


class EngineSettings(msgspec.Struct, frozen=True):
    """Start-up limits and speed of one engine. Times in seconds, sizes in tokens.

    max_batched_tokens: tokens one step may compute; at least max_num_seqs. frontend_s: from HTTP
    arrival to the engine's queue (tokenisation, hand-over). noise: sigma of a step's log duration.
    """

    max_num_seqs: int
    max_batched_tokens: int
    max_model_len: int
    block_size: int
    num_blocks: int
    step_base_s: float
    step_per_sequence_s: float
    prefill_per_token_s: float
    frontend_s: float = 0.004
    noise: float = 0.04


class Engine:
    """Drive it with `submit` and `proceed`; `next_at` says when the next thing happens."""

    def __init__(self, settings: EngineSettings, observer: Observer, seed: str) -> None:
        self.settings = settings
        self.slowness = 1.0
        self._observer = observer
        self._rng = random.Random(seed)  # noqa: S311 - a reproducible model, no secret
        self._incoming: deque[Sequence] = deque()  # in the front end
        self._waiting: deque[Sequence] = deque()
        self._prefilling: list[Sequence] = []
        self._decoding: list[Sequence] = []
        self._chunks: list[tuple[Sequence, int]] = []
        self._step_started = 0.0
        self._step_ends: float | None = None
        self._used_blocks = 0
        self._promised_blocks = 0

    @property
    def next_at(self) -> float:
        """Virtual time of the next event, or infinity when idle."""
        if self._step_ends is not None:
            return self._step_ends
        return self._incoming[0].queued if self._incoming else math.inf

    @property
    def open_requests(self) -> int:
        return len(self._incoming) + len(self._waiting) + len(self._prefilling) + len(self._decoding)

    def submit(
        self, request: Request, at: float, on_token: Listener | None = None, on_end: Listener | None = None
    ) -> Sequence:
        """A request arrives at the front end. `at` must not go back between calls.

        ValueError when its longest answer exceeds the context limit or the whole KV cache.
        """
        longest = request.prompt_tokens + request.max_tokens
        if longest > self.settings.max_model_len or self._worst(request) > self.settings.num_blocks:
            raise ValueError(f"{longest} tokens do not fit a context of {self.settings.max_model_len}")
        sequence = Sequence(request, at, at + self.settings.frontend_s, on_token, on_end)
        self._incoming.append(sequence)
        return sequence

    def abort(self, sequence: Sequence) -> None:
        """The client has gone. What the sequence held is free at once; its listeners hear nothing more."""
        if sequence.ended:
            return
        if sequence.phase is Phase.WAITING:
            (self._incoming if sequence in self._incoming else self._waiting).remove(sequence)
        else:
            (self._prefilling if sequence.phase is Phase.PREFILL else self._decoding).remove(sequence)
            self._release(sequence)
        sequence.phase = Phase.ABORTED
        self._observer.aborted(sequence)

    def proceed(self) -> None:
        """Do what is due at `next_at`: end the step under way, start the next one if there is work."""
        at = self.next_at
        if self._step_ends is not None:
            self._end_step(at)
        self._begin_step(at)

    def _begin_step(self, at: float) -> None:
        settings = self.settings
        while self._incoming and self._incoming[0].queued <= at:
            self._waiting.append(self._incoming.popleft())
        budget = settings.max_batched_tokens - len(self._decoding)
        self._chunks = []
        for sequence in self._prefilling:
            budget -= self._chunk(sequence, budget)
        while (
            self._waiting
            and budget > 0
            and len(self._prefilling) + len(self._decoding) < settings.max_num_seqs
            and self._promised_blocks + self._worst(self._waiting[0].request) <= settings.num_blocks
        ):
            sequence = self._waiting.popleft()
            sequence.phase = Phase.PREFILL
            sequence.scheduled = at
            self._promised_blocks += self._worst(sequence.request)
            self._prefilling.append(sequence)
            self._observer.admitted(sequence)
            budget -= self._chunk(sequence, budget)
        if not self._chunks and not self._decoding:
            self._step_ends = None
            return
        decode_s = (settings.step_base_s + settings.step_per_sequence_s * len(self._decoding)) * self.slowness
        prefill_s = settings.prefill_per_token_s * sum([tokens for _, tokens in self._chunks])
        self._step_started = at
        self._step_ends = at + (decode_s + prefill_s) * self._rng.lognormvariate(0.0, settings.noise)

    def _chunk(self, sequence: Sequence, budget: int) -> int:
        tokens = min(budget, sequence.request.prompt_tokens - sequence.prefilled)
        if tokens > 0:
            self._chunks.append((sequence, tokens))
            self._grow(sequence, tokens)
        return max(tokens, 0)

    def _end_step(self, at: float) -> None:
        decoded = len(self._decoding)
        finished: list[Sequence] = []
        for sequence in self._decoding:
            sequence.emitted += 1
            if sequence.room:
                sequence.room -= 1
            else:
                self._grow(sequence, 1)
            if sequence.on_token is not None:
                sequence.on_token(sequence)
            if sequence.emitted == sequence.goal:
                finished.append(sequence)
        firsts = 0
        computed = 0
        prompts_done = 0
        for sequence, tokens in self._chunks:
            if sequence.phase is not Phase.PREFILL:
                continue  # aborted while the step ran
            computed += tokens
            sequence.prefilled += tokens
            if sequence.prefilled < sequence.request.prompt_tokens:
                continue
            firsts += 1
            prompts_done += sequence.prefilled
            self._prefilling.remove(sequence)
            self._decoding.append(sequence)
            sequence.phase = Phase.DECODE
            sequence.first_token = at
            sequence.emitted = 1
            self._grow(sequence, 1)
            self._observer.first_token(sequence)
            if sequence.on_token is not None:
                sequence.on_token(sequence)
            if sequence.emitted == sequence.goal:
                finished.append(sequence)
        for sequence in finished:
            sequence.phase = Phase.FINISHED
            sequence.finished = at
            self._decoding.remove(sequence)
            self._release(sequence)
            self._observer.finished(sequence)
        self._observer.stepped(
            Step(
                started=self._step_started,
                ended=at,
                decoded=decoded,
                generated=decoded + firsts,
                computed=computed,
                prompts_done=prompts_done,
                running=len(self._prefilling) + len(self._decoding),
                waiting=len(self._waiting),
                used_blocks=self._used_blocks,
            )
        )
        for sequence in finished:
            if sequence.on_end is not None:
                sequence.on_end(sequence)

    def _worst(self, request: Request) -> int:
        return -(-(request.prompt_tokens + request.max_tokens) // self.settings.block_size)

    def _grow(self, sequence: Sequence, tokens: int) -> None:
        missing = tokens - sequence.room
        blocks = -(-missing // self.settings.block_size) if missing > 0 else 0
        sequence.blocks += blocks
        sequence.room += blocks * self.settings.block_size - tokens
        self._used_blocks += blocks

    def _release(self, sequence: Sequence) -> None:
        self._used_blocks -= sequence.blocks
        self._promised_blocks -= self._worst(sequence.request)
        sequence.blocks = 0
