"""One engine with continuous batching, in virtual time.

Requests pass a front end, wait in one FIFO queue, and run up to `max_num_seqs` at a time. A step brings a token to
every decoding sequence (several with accepted drafts) and, within the token budget, computes chunks of prompts.
Between two events steps are alike: their times grow evenly with the context, so that a whole run of them is one sum.
"""

import heapq
import math
import random
from collections import deque
from itertools import count

import msgspec

from triage.lab.batching.clocks import Clock, Clocks
from triage.lab.batching.kv_cache import KvCache
from triage.lab.batching.refusal import Reason, Refused
from triage.lab.batching.request import Listener, Observer, Phase, Request, Run, Sequence
from triage.lab.batching.settings import EngineSettings
from triage.lab.machine.step_time import Machine

# A run of steps ends here at the latest; longer ones save nothing.
_LONGEST_RUN = 4096


class _Plan:
    """Steps under way: the i-th takes first_s + i × more_s. done: those that are over and accounted for."""

    __slots__ = ("chunks", "computed", "done", "first_s", "more_s", "parts", "started", "steps", "waits_for")

    def __init__(
        self,
        started: float,
        steps: int,
        first_s: float,
        more_s: float,
        chunks: list[tuple[Sequence, int]],
        parts: tuple[tuple[Clock, float], ...],
    ) -> None:
        self.started = started
        self.steps = steps
        self.first_s = first_s
        self.more_s = more_s
        self.chunks = chunks
        self.parts = parts
        self.waits_for: Clock | None = None
        self.done = 0
        self.computed = 0

    def end_of(self, steps: int) -> float:
        """When so many steps are over."""
        return self.started + steps * self.first_s + self.more_s * (steps * (steps - 1) * 0.5)

    def over_by(self, at: float) -> int:
        """Steps that are over at a moment."""
        spent = at - self.started
        if spent <= 0:
            return 0
        a, b = self.first_s, self.more_s
        if b <= 0:
            steps = int(spent / a)
        else:
            half = a - 0.5 * b
            steps = int((math.sqrt(half * half + 2 * b * spent) - half) / b)
        steps = min(steps, self.steps)
        # The square root is off by less than a step.
        while steps < self.steps and self.end_of(steps + 1) <= at:
            steps += 1
        while steps > 0 and self.end_of(steps) > at:
            steps -= 1
        return steps


class Engine:
    """Drive it with `submit`, `settle` and `proceed`; `next_at` says when something happens that others may notice.

    The caller keeps time: moments handed in never go back, and `proceed` is called for each `next_at` in turn.
    """

    def __init__(self, settings: EngineSettings, machine: Machine, observer: Observer, seed: str) -> None:
        self.settings = settings
        self.kv = KvCache(settings.num_blocks, settings.block_size, settings.prefix_caching)
        self.clocks = Clocks()
        self.steps = 0
        self.dead = False
        self._observer = observer
        self._rng = random.Random(seed)  # noqa: S311 - a reproducible model, no secret
        self._incoming: deque[Sequence] = deque()  # in the front end
        self._waiting: deque[Sequence] = deque()
        self._prefilling: list[Sequence] = []
        self._decoding: dict[Sequence, None] = {}
        self._events: list[tuple[int, int, Sequence]] = []  # at which step a sequence ends or becomes visible
        self._serial = count()
        self._context = 0  # tokens in the KV of decoding sequences
        self._emitted = 0  # output tokens of decoding sequences
        self._grown_at = 0  # step at which owned blocks were last exact
        self._now = 0.0  # when the step that is being scheduled begins
        self._plan: _Plan | None = None
        self._halted_at: float | None = None
        self._good_machine = machine
        self._good = machine.costs()
        self._set_machine(machine)

    # ---- what others see

    @property
    def next_at(self) -> float:
        """Virtual time of the next event, or infinity when idle or halted."""
        if self._halted_at is not None or self.dead:
            return math.inf
        if self._plan is not None:
            return self._plan.end_of(self._plan.steps)
        return self._incoming[0].queued if self._incoming else math.inf

    @property
    def running(self) -> int:
        return len(self._prefilling) + len(self._decoding)

    @property
    def decoding(self) -> int:
        return len(self._decoding)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def open_requests(self) -> int:
        return len(self._incoming) + len(self._waiting) + self.running

    @property
    def halted(self) -> bool:
        return self._halted_at is not None

    def used_blocks(self) -> int:
        """Blocks in use, exact as of the last finished step."""
        self._grow()
        return self.kv.used

    def emitted(self, sequence: Sequence) -> int:
        """Output tokens of a sequence by now."""
        if sequence.phase is not Phase.DECODE:
            return sequence.counted
        return min(sequence.counted + int((self.steps - sequence.counted_at) * self._per_step), sequence.goal)

    # ---- what others do

    def submit(self, request: Request, at: float, listener: Listener | None = None) -> Sequence:
        """A request arrives at the front end. Refused when it can never fit, the queue is full, or the engine is dead.

        The answer's limit does not count against the context: it is cut to what is left, as the engines do.
        """
        settings = self.settings
        if self.dead:
            raise Refused(Reason.DEAD, "the engine is dead")
        room = min(settings.max_model_len, settings.num_blocks * settings.block_size) - request.prompt_tokens
        if room < 1:
            raise Refused(
                Reason.CONTEXT,
                f"the context of {settings.max_model_len} tokens does not hold {request.prompt_tokens} prompt tokens",
            )
        if settings.max_queued and len(self._waiting) + len(self._incoming) >= settings.max_queued:
            raise Refused(Reason.QUEUE_FULL, f"{settings.max_queued} requests wait already")
        self.settle(at)
        if request.max_tokens > room:
            request = msgspec.structs.replace(request, max_tokens=room)
        queued = at + (settings.frontend_s + settings.frontend_per_token_s * request.prompt_tokens) / self.machine.host
        # One front end, one queue: nobody overtakes.
        queued = max(queued, self._incoming[-1].queued if self._incoming else queued)
        sequence = Sequence(request, at, queued, listener)
        self._incoming.append(sequence)
        self._observer.queued(sequence)
        plan = self._plan
        if plan is not None and self._could_admit():
            self._cut_plan(plan, max(plan.done + 1, plan.over_by(queued) + 1))
        return sequence

    def abort(self, sequence: Sequence, at: float) -> None:
        """The client has gone. What the sequence held is free at once; its listener hears nothing more."""
        if sequence.ended:
            return
        self.settle(at)
        self._leave(sequence)
        sequence.phase = Phase.ABORTED
        sequence.finished = at
        self._observer.aborted(sequence)
        plan = self._plan
        if plan is not None:
            self._cut_plan(plan, plan.done + 1)

    def change(self, machine: Machine, at: float) -> None:
        """The machine's condition changes with the next step. Its KV cache keeps the size it started with."""
        self.settle(at)
        self._rebase()
        self._set_machine(machine)
        for sequence in self._decoding:
            self._expect(sequence)
        if self._plan is not None:
            self._cut_plan(self._plan, self._plan.done + 1)

    def limit(self, settings: EngineSettings, at: float) -> None:
        """Other limits from now on; block size and number of blocks stay as they were at the start."""
        self.settle(at)
        fixed = {"block_size": self.settings.block_size, "num_blocks": self.settings.num_blocks}
        self.settings = msgspec.structs.replace(settings, **fixed)
        self.kv.keeps = settings.prefix_caching
        if self._plan is not None:
            self._cut_plan(self._plan, self._plan.done + 1)

    def halt(self, at: float) -> None:
        """The scheduler stops; the front end goes on taking requests. The step under way is lost."""
        if self._halted_at is None and not self.dead:
            self.settle(at)
            for sequence in self._prefilling:
                sequence.stored = sequence.prefilled
            self._plan = None
            self._observer.halted()
            self._halted_at = at

    def resume(self, at: float) -> None:
        if self._halted_at is not None:
            self.settle(at)
            self._halted_at = None
            self._begin(at)

    def die(self, at: float) -> list[Sequence]:
        """The process ends, and with it all requests inside: these, and their listeners are told."""
        self.settle(at)
        if not self.halted:
            self._observer.halted()
        lost = [*self._incoming, *self._waiting, *self._prefilling, *self._decoding]
        for sequence in lost:
            sequence.counted = self.emitted(sequence)
            sequence.phase = Phase.LOST
            sequence.finished = at
        self.dead = True
        self._plan = None
        self._incoming.clear()
        self._waiting.clear()
        self._prefilling.clear()
        self._decoding.clear()
        self._events.clear()
        for sequence in lost:
            if sequence.listener is not None:
                sequence.listener.ended(sequence, at)
        return lost

    def settle(self, at: float) -> None:
        """Account for everything up to a moment before the next event: reading the engine then is exact."""
        if self._halted_at is not None:
            self.clocks.run(Clock.HALTED, max(at - self._halted_at, 0.0))
            self._halted_at = max(at, self._halted_at)
            self._take_in(at)
            return
        plan = self._plan
        if plan is not None:
            over = min(plan.over_by(at), plan.steps - 1)
            if over > plan.done:
                self._account(plan, over)
        self._take_in(at)
        if plan is not None and plan.waits_for is None and self._waiting and self.running >= self.settings.max_num_seqs:
            plan.waits_for = Clock.WAIT_SEQUENCES

    def proceed(self) -> None:
        """Do what is due at `next_at`: end the steps under way, start the next ones if there is work."""
        at = self.next_at
        plan = self._plan
        if plan is not None:
            self._account(plan, plan.steps)
            self._plan = None
            self._end(plan, at)
        if self._halted_at is None and not self.dead:
            self._begin(at)

    # ---- one run of steps

    def _take_in(self, at: float) -> None:
        """Who has come out of the front end waits now."""
        while self._incoming and self._incoming[0].queued <= at:
            sequence = self._incoming.popleft()
            sequence.at_queued = self.clocks.look()
            self._waiting.append(sequence)

    def _begin(self, at: float) -> None:
        self._now = at
        self._take_in(at)
        self._make_room_for_a_step()
        chunks, blocked = self._schedule(at)
        decoding = len(self._decoding)
        if not chunks and not decoding:
            self._plan = None
            return
        costs = self._costs
        context = self._context
        noise = self._rng.lognormvariate(0.0, self.settings.noise) if self.settings.noise else 1.0
        if chunks:
            tokens, pairs = 0, 0.0
            for sequence, chunk in chunks:
                tokens += chunk
                pairs += chunk * (sequence.prefilled + 0.5 * chunk)
            plain = costs.step_s(decoding, context, tokens, pairs)
            first = max(plain * noise, costs.floor_s(decoding, context))
            plan = _Plan(at, 1, first, 0.0, chunks, self._causes(decoding, context, tokens, pairs, plain))
            plan.computed = tokens
        else:
            plain = costs.step_s(decoding, context, 0, 0.0)
            grown = costs.step_s(decoding, context + decoding * self._per_step, 0, 0.0)
            steps = min(max(self._events[0][0] - self.steps, 1) if self._events else 1, _LONGEST_RUN)
            steps = self._steps_with_room(steps)
            if self._incoming and self._could_admit():
                # Somebody is about to come out of the front end: the run ends at the first boundary behind that.
                due = self._incoming[0].queued - at
                steps = min(steps, max(1, math.ceil(due / (plain * noise))))
            causes = self._causes(decoding, context, 0, 0.0, plain)
            floor, ahead = (
                costs.floor_s(decoding, context),
                costs.floor_s(decoding, context + decoding * self._per_step),
            )
            first = max(plain * noise, floor)
            plan = _Plan(at, steps, first, max((grown - plain) * noise, ahead - floor, 0.0), chunks, causes)
        plan.waits_for = blocked
        self._plan = plan

    def _schedule(self, at: float) -> tuple[list[tuple[Sequence, int]], Clock | None]:
        """Chunks of the next step, and what the head of the queue waits for if it has to."""
        settings, kv = self.settings, self.kv
        if self._prefilling or (self._waiting and self.running < settings.max_num_seqs):
            self._grow()
        budget = settings.max_batched_tokens - len(self._decoding) * (1 + self.machine.drafted)
        chunks: list[tuple[Sequence, int]] = []
        for sequence in tuple(self._prefilling):
            if sequence.phase is not Phase.PREFILL:
                continue  # put back for one that came before it
            chunk = min(budget, sequence.to_prefill - sequence.prefilled)
            if chunk <= 0:
                continue
            chunk = self._room_for(sequence, chunk)
            if chunk > 0:
                self._store(sequence, chunk)
                chunks.append((sequence, chunk))
                budget -= chunk
        while self._waiting:
            if len(self._prefilling) + len(self._decoding) >= settings.max_num_seqs:
                return chunks, Clock.WAIT_SEQUENCES
            if budget <= 0:
                return chunks, Clock.WAIT_BUDGET
            sequence = self._waiting[0]
            # At least one token is computed, or there would be nothing to sample from.
            hit = min(kv.found(sequence.request.prefix), self._whole(sequence.to_prefill - 1)) if kv.keeps else 0
            chunk = min(budget, sequence.to_prefill - hit)
            reserved = int(settings.reserve * (sequence.request.max_tokens - sequence.counted))
            held = kv.pin(sequence.request.prefix, hit)
            # Without a reserve the blocks of the first chunk do; what more it needs is asked for when it is due.
            needed = sequence.to_prefill - hit + reserved if settings.reserve else chunk
            promised = self._promised() if settings.reserve else 0
            if kv.blocks_for(needed) + promised > kv.available:
                kv.unpin(held)
                return chunks, Clock.WAIT_KV
            self._waiting.popleft()
            self._admit(sequence, at, hit, held)
            self._store(sequence, chunk)
            chunks.append((sequence, chunk))
            budget -= chunk
        return chunks, None

    def _admit(self, sequence: Sequence, at: float, hit: int, held: list[str]) -> None:
        sequence.phase = Phase.PREFILL
        sequence.held = held
        sequence.prefilled = sequence.stored = sequence.shared = hit
        if math.isnan(sequence.scheduled):
            sequence.scheduled = at
            sequence.cached = hit
            sequence.at_scheduled = self.clocks.look()
        self._prefilling.append(sequence)
        self._observer.admitted(sequence, at)

    def _account(self, plan: _Plan, over: int) -> None:
        """Steps up to the plan's `over`-th are done."""
        more = over - plan.done
        started, ended = plan.end_of(plan.done), plan.end_of(over)
        decoding = len(self._decoding)
        self.steps += more
        generated = decoding * more
        if decoding and self.machine.drafted:
            generated = sum([self.emitted(sequence) for sequence in self._decoding]) - self._emitted
        self._emitted += generated
        self._context += generated
        for clock, part in plan.parts:
            self.clocks.run(clock, part * (ended - started))
        if plan.waits_for is not None:
            self.clocks.run(plan.waits_for, ended - started)
        drafts = decoding * more if self.machine.drafted else 0
        self._observer.ran(
            Run(
                started=started,
                ended=ended,
                steps=more,
                first_s=plan.first_s + plan.done * plan.more_s,
                last_s=plan.first_s + (over - 1) * plan.more_s,
                decoding=decoding,
                generated=generated,
                computed=plan.computed,
                drafts=drafts,
                drafted=drafts * self.machine.drafted,
                accepted=max(generated - decoding * more, 0) if drafts else 0,
            )
        )
        plan.done = over

    def _end(self, plan: _Plan, at: float) -> None:
        for sequence, chunk in plan.chunks:
            if sequence.phase is not Phase.PREFILL:
                continue  # aborted or put back while the step ran
            sequence.prefilled += chunk
            if sequence.prefilled < sequence.to_prefill:
                continue
            self._prefilling.remove(sequence)
            self._decode(sequence, at)
        while self._events and self._events[0][0] <= self.steps:
            _, _, sequence = heapq.heappop(self._events)
            if sequence.phase is not Phase.DECODE:
                continue
            self._show(sequence, at)
            if sequence in self._decoding:  # and was not aborted by whoever saw its first visible token
                self._expect_or_finish(sequence, at)

    def _decode(self, sequence: Sequence, at: float) -> None:
        """Its prompt is computed: the step brought a token."""
        self._share_prefix(sequence)
        sequence.phase = Phase.DECODE
        sequence.counted += 1
        sequence.counted_at = self.steps
        self._decoding[sequence] = None
        self._context += sequence.stored
        self._emitted += sequence.counted
        if math.isnan(sequence.first_token):
            sequence.first_token = at
            sequence.at_first = self.clocks.look()
        if not math.isnan(sequence.away_since):
            sequence.away_s += at - sequence.away_since
            sequence.away_since = math.nan
        self._observer.prefilled(sequence, at)
        if sequence.first_token == at and sequence.listener is not None:
            sequence.listener.first_token(sequence, at)
        self._show(sequence, at)
        if sequence in self._decoding:  # nobody who was told has left
            self._expect_or_finish(sequence, at)

    def _show(self, sequence: Sequence, at: float) -> None:
        """Tell of the first token behind the reasoning, once."""
        if sequence.ended or not math.isnan(sequence.first_visible):
            return
        if self.emitted(sequence) > sequence.request.reasoning_tokens:
            sequence.first_visible = at
            if sequence.listener is not None:
                sequence.listener.first_visible(sequence, at)

    def _expect(self, sequence: Sequence) -> None:
        """Note at which step it ends, or shows its first visible token."""
        hidden = sequence.request.reasoning_tokens
        target = hidden + 1 if math.isnan(sequence.first_visible) and hidden < sequence.goal else sequence.goal
        steps = math.ceil((target - sequence.counted) / self._per_step)
        # Rounding may leave it a token short: never the same step again.
        due = max(sequence.counted_at + steps, self.steps + 1)
        heapq.heappush(self._events, (due, next(self._serial), sequence))

    def _expect_or_finish(self, sequence: Sequence, at: float) -> None:
        if self.emitted(sequence) < sequence.goal:
            self._expect(sequence)
        else:
            self._finish(sequence, at)

    def _finish(self, sequence: Sequence, at: float) -> None:
        emitted = self._leave_batch(sequence)
        sequence.counted = emitted
        sequence.phase = Phase.FINISHED
        sequence.finished = at
        self._keep(sequence)
        self._observer.finished(sequence)
        if sequence.listener is not None:
            sequence.listener.ended(sequence, at)

    # ---- leaving, and coming back

    def _leave_batch(self, sequence: Sequence) -> int:
        """Out of decoding, with its KV counted; tokens that it has emitted."""
        emitted = self.emitted(sequence)
        self._own(sequence, emitted)
        del self._decoding[sequence]
        sequence.stored += emitted - sequence.counted
        self._context -= sequence.stored
        self._emitted -= emitted
        return emitted

    def _leave(self, sequence: Sequence) -> None:
        if sequence.phase is Phase.WAITING:
            (self._waiting if sequence in self._waiting else self._incoming).remove(sequence)
            return
        if sequence.phase is Phase.PREFILL:
            self._prefilling.remove(sequence)
            # Of the chunk under way nothing is kept.
            sequence.stored = sequence.prefilled
        else:
            sequence.counted = self._leave_batch(sequence)
        self._keep(sequence)

    def _put_back(self, sequence: Sequence) -> None:
        """Preempted: its blocks are free, and what it had is computed again when there is room."""
        if sequence.phase is Phase.PREFILL:
            self._prefilling.remove(sequence)
        else:
            sequence.counted = self._leave_batch(sequence)
        self.kv.give_back(sequence.blocks)
        self.kv.unpin(sequence.held)
        sequence.held = []
        sequence.blocks = sequence.stored = sequence.shared = sequence.prefilled = 0
        sequence.to_prefill = sequence.request.prompt_tokens + sequence.counted
        sequence.preemptions += 1
        sequence.away_since = self._now
        sequence.phase = Phase.WAITING
        self._waiting.appendleft(sequence)
        self._observer.preempted(sequence)

    # ---- KV blocks

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
            kv.pin_one(segment.key)
            sequence.held.append(segment.key)
            sequence.blocks -= blocks
            sequence.shared += blocks * size

    def _keep(self, sequence: Sequence) -> None:
        """What it owned stays in the cache until the room is needed."""
        kv, request = self.kv, sequence.request
        kv.unpin(sequence.held)
        others = sum([segment.tokens for segment in request.prefix if segment.key != request.keep])
        kv.store(request.keep or f"#{next(self._serial)}", max(sequence.stored - others, 0), sequence.blocks)
        sequence.blocks = 0
        sequence.held = []

    def _own(self, sequence: Sequence, emitted: int) -> None:
        """Own the blocks for all it has stored; so many tokens of it are out."""
        stored = sequence.stored + emitted - sequence.counted
        more = self.kv.blocks_for(stored - sequence.shared) - sequence.blocks
        if more > 0:
            sequence.blocks += more
            self.kv.take(more)

    def _grow(self) -> None:
        """Owned blocks become exact as of the last finished step."""
        if self._grown_at != self.steps:
            for sequence in self._decoding:
                self._own(sequence, self.emitted(sequence))
            self._grown_at = self.steps

    def _store(self, sequence: Sequence, tokens: int) -> None:
        sequence.stored += tokens
        self._own(sequence, sequence.counted)

    def _needed(self, steps: int) -> int:
        """Blocks that so many more steps take. Owned blocks must be exact."""
        needed = 0
        ahead = self.steps + steps
        for sequence in self._decoding:
            tokens = min(int((ahead - sequence.counted_at) * self._per_step), sequence.goal - sequence.counted)
            needed += self.kv.blocks_for(sequence.stored + tokens - sequence.shared) - sequence.blocks
        return needed

    def _surely_room(self, steps: int) -> bool:
        """Every sequence starts at most so many blocks in these steps, and there are as many."""
        ahead = self.steps - self._grown_at + steps
        each = int(ahead * self._per_step) // self.settings.block_size + 2
        return len(self._decoding) * each <= self.kv.available

    def _steps_with_room(self, steps: int) -> int:
        """As many of these steps as the free blocks are enough for, and one at least."""
        if self._surely_room(steps):
            return steps
        self._grow()
        if self._needed(steps) <= self.kv.available:
            return steps
        low, high = 1, steps
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._needed(middle) <= self.kv.available else (low, middle)
        return low

    def _make_room_for_a_step(self) -> None:
        """Who came last goes first when the next token of everybody does not fit."""
        if self._surely_room(1):
            return
        self._grow()
        while self._needed(1) > self.kv.available and self.running > 1:
            self._put_back(self._last_come())

    def _last_come(self) -> Sequence:
        return self._prefilling[-1] if self._prefilling else next(reversed(self._decoding))

    def _room_for(self, sequence: Sequence, chunk: int) -> int:
        """The chunk, or 0 when it has to wait: those who came later make room for it first."""
        kv = self.kv
        while kv.blocks_for(sequence.stored + chunk - sequence.shared) - sequence.blocks > kv.available:
            last = self._prefilling[-1]
            if last is sequence:
                return 0
            self._put_back(last)
        return chunk

    def _promised(self) -> int:
        """Blocks that the reserve holds for those who run already."""
        promised = 0
        for sequence in (*self._decoding, *self._prefilling):
            left = sequence.request.max_tokens - self.emitted(sequence)
            tokens = sequence.to_prefill - sequence.prefilled if sequence.phase is Phase.PREFILL else 0
            promised += self.kv.blocks_for(int(self.settings.reserve * max(left, 0)) + tokens)
        return promised

    # ---- small things

    def _could_admit(self) -> bool:
        return not self._waiting and self.running < self.settings.max_num_seqs

    def _whole(self, tokens: int) -> int:
        return tokens - tokens % self.settings.block_size

    def _cut_plan(self, plan: _Plan, steps: int) -> None:
        plan.steps = min(plan.steps, max(steps, plan.done + 1))

    def _rebase(self) -> None:
        """Count everybody's tokens up to now: from here on steps bring another number."""
        self._grow()
        for sequence in self._decoding:
            emitted = self.emitted(sequence)
            sequence.stored += emitted - sequence.counted
            sequence.counted = emitted
            sequence.counted_at = self.steps
        self._events.clear()

    def _set_machine(self, machine: Machine) -> None:
        self.machine = machine
        self._costs = machine.costs()
        self._per_step = machine.tokens_per_step

    def _causes(
        self, decoding: int, context: float, tokens: int, pairs: float, plain: float
    ) -> tuple[tuple[Clock, float], ...]:
        """Parts of a step that would not be there on a good machine, or without the prompts in it."""
        good = self._good
        parts: list[tuple[Clock, float]] = []
        if self.machine is not self._good_machine:
            costs = self._costs
            host = costs.base_s + costs.sequence_s * decoding - good.base_s - good.sequence_s * decoding
            nominal = good.step_s(decoding, context, tokens, pairs)
            parts.append((Clock.HOST, max(host, 0.0) / plain))
            parts.append((Clock.GPU, max(plain - nominal - max(host, 0.0), 0.0) / plain))
            if self.machine.drafted:
                lost = 1.0 - self._per_step / self._good_machine.tokens_per_step
                parts.append((Clock.DRAFTS, max(lost, 0.0)))
        if decoding and tokens:
            without = good.step_s(decoding, context, 0, 0.0)
            parts.append((Clock.PROMPTS, max(good.step_s(decoding, context, tokens, pairs) - without, 0.0) / plain))
        return tuple(parts)
