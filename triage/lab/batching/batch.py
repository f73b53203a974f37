"""The sequences inside one engine, in their order, and the KV blocks that they hold."""

import math
from collections import deque
from itertools import count

from triage.lab.batching.kv_cache import KvCache
from triage.lab.batching.request import Observer, Phase, Sequence
from triage.lab.batching.settings import EngineSettings


class Batch:
    """waiting: the queue, head first. prefilling: prompts under way, who came first goes first. decoding: the others.

    steps: finished so far. per_step: tokens that a step brings to each decoding sequence. context: tokens in the KV
    of decoding sequences; tokens: of output that they have brought. due: blocks that their next token takes.
    Owned blocks are exact as of `grow`.
    """

    def __init__(self, settings: EngineSettings, observer: Observer) -> None:
        self.settings = settings
        self.kv = KvCache(settings.num_blocks, settings.block_size, settings.prefix_caching)
        self.waiting: deque[Sequence] = deque()
        self.prefilling: list[Sequence] = []
        self.decoding: dict[Sequence, None] = {}
        self.steps = 0
        self.per_step = 1.0
        self.context = 0
        self.tokens = 0
        self.due = 0
        self._observer = observer
        self._grown_at = 0
        self._serial = count()

    @property
    def running(self) -> int:
        return len(self.prefilling) + len(self.decoding)

    def emitted(self, sequence: Sequence) -> int:
        """Output tokens of a sequence by now."""
        if sequence.phase is not Phase.DECODE:
            return sequence.counted
        return min(sequence.counted + int((self.steps - sequence.counted_at) * self.per_step), sequence.goal)

    # ---- coming and going

    def begin_decoding(self, sequence: Sequence) -> None:
        """Its prompt is computed, and brought a token."""
        self._share_prefix(sequence)
        sequence.phase = Phase.DECODE
        sequence.counted += 1
        sequence.counted_at = self.steps
        self.decoding[sequence] = None
        self.context += sequence.stored
        self.tokens += sequence.counted

    def leave_decoding(self, sequence: Sequence) -> int:
        """Out of decoding, with its KV counted; tokens that it has emitted."""
        emitted = self.emitted(sequence)
        self._own(sequence, emitted)
        del self.decoding[sequence]
        sequence.stored += emitted - sequence.counted
        self.context -= sequence.stored
        self.tokens -= emitted
        return emitted

    def leave(self, sequence: Sequence) -> None:
        """Its client has gone, and it is no longer in the front end."""
        if sequence.phase is Phase.WAITING:
            self.waiting.remove(sequence)
            return
        if sequence.phase is Phase.PREFILL:
            self.prefilling.remove(sequence)
            # Of the chunk under way nothing is kept.
            sequence.stored = sequence.prefilled
        else:
            sequence.counted = self.leave_decoding(sequence)
        self.keep(sequence)

    def put_back(self, sequence: Sequence, at: float) -> None:
        """Preempted: its blocks are free, and what it had is computed again when there is room."""
        if sequence.phase is Phase.PREFILL:
            self.prefilling.remove(sequence)
        else:
            sequence.counted = self.leave_decoding(sequence)
        self.kv.give_back(sequence.blocks)
        self.kv.unpin(sequence.held)
        sequence.held = []
        sequence.blocks = sequence.stored = sequence.shared = sequence.prefilled = 0
        sequence.to_prefill = sequence.request.prompt_tokens + sequence.counted
        sequence.preemptions += 1
        sequence.away_since = at
        sequence.phase = Phase.WAITING
        self.waiting.appendleft(sequence)
        self._observer.preempted(sequence)

    def count_again(self) -> None:
        """Count everybody's tokens up to now: from here on steps bring another number."""
        self.grow()
        for sequence in self.decoding:
            emitted = self.emitted(sequence)
            sequence.stored += emitted - sequence.counted
            sequence.counted = emitted
            sequence.counted_at = self.steps

    # ---- blocks

    @property
    def free(self) -> int:
        """Blocks that prompts may take: those that decoding sequences need in this step are not among them."""
        return self.kv.available - self.due

    def settle_due(self) -> None:
        """Before prompts are given room."""
        self.grow()
        self.due = self._needed(1)

    def keep(self, sequence: Sequence) -> None:
        """What it owned stays in the cache until the room is needed."""
        kv, request = self.kv, sequence.request
        kv.unpin(sequence.held)
        others = sum([segment.tokens for segment in request.prefix if segment.key != request.keep])
        kv.store(request.keep or f"#{next(self._serial)}", max(sequence.stored - others, 0), sequence.blocks)
        sequence.blocks = 0
        sequence.held = []

    def store(self, sequence: Sequence, tokens: int) -> None:
        """So many more prompt tokens of it are computed in this step."""
        sequence.stored += tokens
        self._own(sequence, sequence.counted)

    def grow(self) -> None:
        """Owned blocks become exact as of the last finished step."""
        if self._grown_at == self.steps:
            return
        # `_own` of `emitted`, written out: it is a third of the engine's time otherwise.
        kv, steps, per_step, size = self.kv, self.steps, self.per_step, self.settings.block_size
        for sequence in self.decoding:
            more = int((steps - sequence.counted_at) * per_step)
            left = sequence.goal - sequence.counted
            stored = sequence.stored + (more if more < left else left)
            blocks = -((sequence.shared - stored) // size)
            if blocks > sequence.blocks:
                kv.take(blocks - sequence.blocks)
                sequence.blocks = blocks
        self._grown_at = steps

    def steps_with_room(self, steps: int) -> int:
        """As many of these steps as the free blocks are enough for, and one at least."""
        if self._surely_room(steps):
            return steps
        self.grow()
        if self._needed(steps) <= self.kv.available:
            return steps
        low, high = 1, steps
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._needed(middle) <= self.kv.available else (low, middle)
        return low

    def make_room_for_a_step(self, at: float) -> None:
        """Who came last goes first when the next token of everybody does not fit."""
        if self._surely_room(1):
            return
        self.grow()
        while self._needed(1) > self.kv.available and self.running > 1:
            self.put_back(self.prefilling[-1] if self.prefilling else next(reversed(self.decoding)), at)

    def room_for(self, sequence: Sequence, chunk: int, at: float) -> int:
        """The chunk, or 0 when it has to wait: those who came later make room for it first."""
        kv = self.kv
        while kv.blocks_for(sequence.stored + chunk - sequence.shared) - sequence.blocks > self.free:
            last = self.prefilling[-1]
            if last is sequence:
                return 0
            self.put_back(last, at)
        return chunk

    def promised(self) -> int:
        """Blocks that the reserve holds for those who run already."""
        promised = 0
        for sequence in (*self.decoding, *self.prefilling):
            left = sequence.request.max_tokens - self.emitted(sequence)
            tokens = sequence.to_prefill - sequence.prefilled if sequence.phase is Phase.PREFILL else 0
            promised += self.kv.blocks_for(int(self.settings.reserve * max(left, 0)) + tokens)
        return promised

    def _share_prefix(self, sequence: Sequence) -> None:
        """Computed parts that others may have in common with it become entries of the cache."""
        kv, size = self.kv, self.settings.block_size
        if not kv.keeps:
            return
        for segment in sequence.request.prefix:
            if segment.key == sequence.request.keep or segment.key in sequence.held:
                continue
            blocks = min(segment.tokens // size, sequence.blocks)
            if blocks < segment.tokens // size or not blocks:
                break
            kv.store(segment.key, blocks * size, blocks)
            kv.pin_one(segment.key, blocks)
            sequence.held.append(segment.key)
            sequence.blocks -= blocks
            sequence.shared += blocks * size

    def _own(self, sequence: Sequence, emitted: int) -> None:
        """Own the blocks for all it has stored; so many tokens of it are out."""
        stored = sequence.stored + emitted - sequence.counted
        more = self.kv.blocks_for(stored - sequence.shared) - sequence.blocks
        if more > 0:
            sequence.blocks += more
            self.kv.take(more)

    def _needed(self, steps: int) -> int:
        """Blocks that so many more steps take. Owned blocks must be exact."""
        needed = 0
        ahead = self.steps + steps
        for sequence in self.decoding:
            tokens = min(int((ahead - sequence.counted_at) * self.per_step), sequence.goal - sequence.counted)
            needed += self.kv.blocks_for(sequence.stored + tokens - sequence.shared) - sequence.blocks
        return needed

    def _surely_room(self, steps: int) -> bool:
        """Every sequence starts at most so many blocks in these steps, and there are as many."""
        ahead = self.steps - self._grown_at + steps
        each = int(ahead * self.per_step) // self.settings.block_size + 2
        return len(self.decoding) * each <= self.kv.available


def back_from_away(sequence: Sequence, at: float) -> None:
    """A preempted sequence is where it had been."""
    if not math.isnan(sequence.away_since):
        sequence.away_s += at - sequence.away_since
        sequence.away_since = math.nan
