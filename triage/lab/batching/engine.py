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

from triage.lab.batching.admission import schedule
from triage.lab.batching.batch import Batch, back_from_away
from triage.lab.batching.causes import Causes
from triage.lab.batching.clocks import Clock, Clocks
from triage.lab.batching.refusal import Reason, Refused
from triage.lab.batching.request import Listener, Observer, Phase, Request, Run, Sequence
from triage.lab.batching.settings import EngineSettings
from triage.lab.batching.steps import Steps
from triage.lab.machine.step_time import Machine

# A run of steps ends here at the latest; longer ones save nothing.
_LONGEST_RUN = 4096


class Engine:
    """Drive it with `submit`, `settle` and `proceed`; `next_at` says when something happens that others may notice.

    The caller keeps time: moments handed in never go back, and `proceed` is called for each `next_at` in turn.
    """

    def __init__(self, settings: EngineSettings, machine: Machine, observer: Observer, seed: str) -> None:
        self.clocks = Clocks()
        self.dead = False
        self._batch = Batch(settings, observer)
        self.kv = self._batch.kv
        self._observer = observer
        self._rng = random.Random(seed)  # noqa: S311 - a reproducible model, no secret
        self._incoming: deque[Sequence] = deque()  # in the front end
        self._events: list[tuple[int, int, Sequence]] = []  # at which step a sequence ends or becomes visible
        self._serial = count()
        self._plan: Steps | None = None
        self._halted_at: float | None = None
        self._causes = Causes(machine)
        self._set_machine(machine)

    # ---- what others see

    @property
    def settings(self) -> EngineSettings:
        return self._batch.settings

    @property
    def next_at(self) -> float:
        """Virtual time of the next event, or infinity when idle or halted."""
        if self._halted_at is not None or self.dead:
            return math.inf
        if self._plan is not None:
            return self._plan.over_at
        return self._incoming[0].queued if self._incoming else math.inf

    @property
    def steps(self) -> int:
        return self._batch.steps

    @property
    def running(self) -> int:
        return self._batch.running

    @property
    def decoding(self) -> int:
        return len(self._batch.decoding)

    @property
    def waiting(self) -> int:
        return len(self._batch.waiting)

    @property
    def open_requests(self) -> int:
        return len(self._incoming) + len(self._batch.waiting) + self._batch.running

    @property
    def halted(self) -> bool:
        return self._halted_at is not None

    def used_blocks(self) -> int:
        """Blocks in use, exact as of the last finished step."""
        self._batch.grow()
        return self.kv.used

    def emitted(self, sequence: Sequence) -> int:
        """Output tokens of a sequence by now."""
        return self._batch.emitted(sequence)

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
        if settings.max_queued and self.waiting + len(self._incoming) >= settings.max_queued:
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
            plan.end_after(plan.over_by(queued) + 1)
        return sequence

    def abort(self, sequence: Sequence, at: float) -> None:
        """The client has gone. What the sequence held is free at once; its listener hears nothing more."""
        if sequence.ended:
            return
        self.settle(at)
        if sequence in self._incoming:
            self._incoming.remove(sequence)
        else:
            self._batch.leave(sequence)
        sequence.phase = Phase.ABORTED
        sequence.finished = at
        self._observer.aborted(sequence)
        self._end_steps()

    def change(self, machine: Machine, at: float) -> None:
        """The machine's condition changes with the next step. Its KV cache keeps the size it started with."""
        self.settle(at)
        self._batch.count_again()
        self._events.clear()
        self._set_machine(machine)
        for sequence in self._batch.decoding:
            self._expect(sequence)
        self._end_steps()

    def limit(self, settings: EngineSettings, at: float) -> None:
        """Other limits from now on; block size and number of blocks stay as they were at the start."""
        self.settle(at)
        fixed = {"block_size": self.settings.block_size, "num_blocks": self.settings.num_blocks}
        self._batch.settings = msgspec.structs.replace(settings, **fixed)
        self.kv.keeps = settings.prefix_caching
        self._end_steps()

    def halt(self, at: float) -> None:
        """The scheduler stops; the front end goes on taking requests. The step under way is lost."""
        if self._halted_at is None and not self.dead:
            self.settle(at)
            for sequence in self._batch.prefilling:
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
        inside = (self._incoming, self._batch.waiting, self._batch.prefilling, self._batch.decoding)
        lost = [sequence for group in inside for sequence in group]
        for sequence in lost:
            sequence.counted = self.emitted(sequence)
            sequence.phase = Phase.LOST
            sequence.finished = at
        self.dead = True
        self._plan = None
        for group in (*inside, self._events):
            group.clear()
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
        if plan is not None and plan.waits_for is None and self.waiting and self.running >= self.settings.max_num_seqs:
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
            self._batch.waiting.append(sequence)

    def _begin(self, at: float) -> None:
        batch, costs = self._batch, self._costs
        self._take_in(at)
        batch.make_room_for_a_step(at)
        chunks, blocked = schedule(batch, self.machine.drafted, self.clocks, self._observer, at)
        decoding, context = len(batch.decoding), batch.context
        if not chunks and not decoding:
            self._plan = None
            return
        noise = self._rng.lognormvariate(0.0, self.settings.noise) if self.settings.noise else 1.0
        floor = costs.floor_s(decoding, context)
        tokens, pairs, steps, more = 0, 0.0, 1, 0.0
        for sequence, chunk in chunks:
            tokens += chunk
            pairs += chunk * (sequence.prefilled + 0.5 * chunk)
        plain = costs.step_s(decoding, context, tokens, pairs)
        if not chunks:
            after = context + decoding * batch.per_step
            grown = costs.step_s(decoding, after, 0, 0.0)
            more = max((grown - plain) * noise, costs.floor_s(decoding, after) - floor, 0.0)
            steps = min(max(self._events[0][0] - batch.steps, 1) if self._events else 1, _LONGEST_RUN)
            steps = batch.steps_with_room(steps)
            if self._incoming and self._could_admit():
                # Somebody is about to come out of the front end: the run ends at the first boundary behind that.
                due = self._incoming[0].queued - at
                steps = min(steps, max(1, math.ceil(due / (plain * noise))))
        causes = self._causes.of_step(self.machine, costs, decoding, context, tokens, pairs, plain)
        self._plan = Steps(at, steps, max(plain * noise, floor), more, chunks, causes)
        self._plan.computed = tokens
        self._plan.waits_for = blocked

    def _account(self, plan: Steps, over: int) -> None:
        """Steps up to the plan's `over`-th are done."""
        batch, more = self._batch, over - plan.done
        started, ended = plan.end_of(plan.done), plan.end_of(over)
        decoding = len(batch.decoding)
        batch.steps += more
        generated = decoding * more
        if decoding and self.machine.drafted:
            generated = sum([batch.emitted(sequence) for sequence in batch.decoding]) - batch.tokens
        batch.tokens += generated
        batch.context += generated
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

    def _end(self, plan: Steps, at: float) -> None:
        for sequence, chunk in plan.chunks:
            if sequence.phase is not Phase.PREFILL:
                continue  # aborted or put back while the step ran
            sequence.prefilled += chunk
            if sequence.prefilled < sequence.to_prefill:
                continue
            self._batch.prefilling.remove(sequence)
            self._decode(sequence, at)
        while self._events and self._events[0][0] <= self.steps:
            _, _, sequence = heapq.heappop(self._events)
            if sequence.phase is not Phase.DECODE:
                continue
            self._show(sequence, at)
            if sequence in self._batch.decoding:  # and was not aborted by whoever saw its first visible token
                self._expect_or_finish(sequence, at)

    def _decode(self, sequence: Sequence, at: float) -> None:
        """Its prompt is computed: the step brought a token."""
        self._batch.begin_decoding(sequence)
        if math.isnan(sequence.first_token):
            sequence.first_token = at
            sequence.at_first = self.clocks.look()
        back_from_away(sequence, at)
        self._observer.prefilled(sequence, at)
        if sequence.first_token == at and sequence.listener is not None:
            sequence.listener.first_token(sequence, at)
        self._show(sequence, at)
        if sequence in self._batch.decoding:  # nobody who was told has left
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
        steps = math.ceil((target - sequence.counted) / self._batch.per_step)
        # Rounding may leave it a token short: never the same step again.
        due = max(sequence.counted_at + steps, self.steps + 1)
        heapq.heappush(self._events, (due, next(self._serial), sequence))

    def _expect_or_finish(self, sequence: Sequence, at: float) -> None:
        if self.emitted(sequence) < sequence.goal:
            self._expect(sequence)
            return
        sequence.counted = self._batch.leave_decoding(sequence)
        sequence.phase = Phase.FINISHED
        sequence.finished = at
        self._batch.keep(sequence)
        self._observer.finished(sequence)
        if sequence.listener is not None:
            sequence.listener.ended(sequence, at)

    # ---- small things

    def _could_admit(self) -> bool:
        return not self._batch.waiting and self.running < self.settings.max_num_seqs

    def _end_steps(self) -> None:
        """With the step that is under way."""
        if self._plan is not None:
            self._plan.end_after(self._plan.done + 1)

    def _set_machine(self, machine: Machine) -> None:
        self.machine = machine
        self._costs = machine.costs()
        self._batch.per_step = machine.tokens_per_step
