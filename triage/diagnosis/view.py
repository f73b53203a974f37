"""Numbers derived from one replica's window, each worked out once."""

from collections.abc import Sequence

from triage.diagnosis.lazy import lazy
from triage.diagnosis.levels import HELD, nothing_inside, stale_gauges
from triage.diagnosis.progress import moved, standing_for
from triage.diagnosis.prompt_mix import computed_prompt, prompt_per_generated, prompt_per_generated_before
from triage.diagnosis.thresholds import FLAT, WEAK_BELOW
from triage.diagnosis.tracks import together
from triage.domain.absence import NOT_EXPORTED, Number, known, value_or
from triage.domain.derived import generated, per_token
from triage.domain.logs import LogReading, ThroughputLine
from triage.domain.quantity import HISTOGRAMS, Quantity
from triage.domain.reading import Role
from triage.domain.situation import Replica
from triage.domain.verdict import Direction, Evidence, Family
from triage.domain.window import Track

# What the only target of an evidence folder is called when its files do not name it.
UNNAMED_TARGET = "default"


class ReplicaView:
    """Lazy: a calm replica costs a few look-ups, so that a thousand of them stay cheap."""

    def __init__(self, replica: Replica, logs: Sequence[LogReading] = ()) -> None:
        self.replica = replica
        self.window = replica.window
        self.logs = logs
        self.name = replica.target.name
        self.model = replica.model
        self.is_frontend = replica.window.last.role is Role.FRONTEND
        self.is_prefill_only = replica.window.last.role is Role.PREFILL

    @property
    def prefix(self) -> str:
        """'name: ' before a sentence about it; nothing where an evidence folder has only one, unnamed target."""
        return "" if self.name == UNNAMED_TARGET else f"{self.name}: "

    # ---- gauges

    def track(self, quantity: Quantity) -> Track | None:
        """A gauge over the window; None where it only shows the last work of an engine that is idle now."""
        return None if quantity in self.stale else self.window.gauges.get(quantity)

    @lazy
    def stale(self) -> frozenset[Quantity]:
        """Gauges that nobody has rewritten since the last work."""
        lingering = self.window.last.lingering
        return stale_gauges(self.window, self.idle, bool(self.moved)) if lingering else lingering

    @lazy
    def running(self) -> Track | None:
        return self.track(Quantity.RUNNING)

    @lazy
    def waiting(self) -> Track | None:
        """Requests that wait for room: those that wait on purpose (adapters, KV transfer, grammar) are not in it."""
        return self.track(Quantity.WAITING_CAPACITY) or self.track(Quantity.WAITING)

    @lazy
    def kv(self) -> Track | None:
        return self.track(Quantity.KV_USAGE)

    @lazy
    def held(self) -> Track | None:
        """Requests that wait for something else than room: an adapter, a grammar, a hand-over between roles."""
        return together([self.track(quantity) for quantity in HELD])

    @lazy
    def queued(self) -> Track | None:
        """All requests that wait inside the engine, whatever for."""
        return together([self.waiting, self.held])

    @lazy
    def always_waiting(self) -> bool:
        """Requests waited in every reading in which there was work, the last one among them."""
        waiting, running = self.queued, self.running
        if waiting is None or waiting.last <= 0:
            return False
        return waiting.zeros <= (running.zeros if running is not None else 0)

    @lazy
    def loaded_readings(self) -> int:
        """Readings with work in them."""
        running = self.running
        return running.n - running.zeros if running is not None else 0

    @lazy
    def flat_batch(self) -> bool:
        """The batch has the same size in every reading, within what a full batch varies by."""
        running = self.running
        return running is not None and running.high > 0 and running.high - running.low <= FLAT * running.high

    @lazy
    def busy(self) -> bool:
        """Work was there in every reading."""
        tracks = (self.running, self.queued, self.track(Quantity.INFLIGHT))
        return any(track is not None and track.low > 0 for track in tracks)

    @lazy
    def inside(self) -> float:
        """Requests in the engine now: by its scheduler's gauges or its front end's, whichever knows of more.

        A scheduler that stopped no longer writes its gauges; the front end still counts.
        """
        running, queued, accepted = self.running, self.queued, self.track(Quantity.INFLIGHT)
        scheduled = (running.last if running else 0.0) + (queued.last if queued else 0.0)
        return max(scheduled, accepted.last if accepted else 0.0)

    @lazy
    def idle(self) -> bool:
        """Nothing ran or waited in any reading."""
        return nothing_inside(self.window)

    # ---- change

    @lazy
    def comparable(self) -> bool:
        """Two readings with time between them and no restart: change can be judged."""
        return not self.window.single and self.window.seconds > 0

    @lazy
    def moved(self) -> bool | None:
        """Whether any progress counter moved; None when no counter is exported that must move with work."""
        return moved(self.window, self.finished) if self.comparable else None

    @lazy
    def standing_for(self) -> float:
        """Seconds at the end of the window in which requests were inside and nothing moved."""
        return standing_for(self.window) if self.comparable and self.inside > 0 else 0.0

    @lazy
    def work_quantity(self) -> Quantity:
        """The counter that a standstill is read from."""
        counters = (Quantity.ENGINE_STEPS, Quantity.GENERATION_TOKENS_LIVE, Quantity.GENERATION_TOKENS)
        return next((quantity for quantity in counters if quantity in self.window.last.values), Quantity.RUNNING)

    @lazy
    def generated(self) -> Number:
        """Generated tokens in the window."""
        return generated(self.window)

    @lazy
    def computed_prompt(self) -> Number:
        """Prompt tokens that were really computed: without prefix-cache hits."""
        return computed_prompt(self.window)

    @lazy
    def prompt_per_generated(self) -> Number:
        """Computed prompt tokens for each generated one; huge when nothing was generated."""
        return prompt_per_generated(self.computed_prompt, self.generated)

    @lazy
    def prompt_per_generated_before(self) -> Number:
        """The same since start, up to the window's first reading; absent with too little to be usual."""
        return prompt_per_generated_before(self.window)

    @lazy
    def answers_without_tokens(self) -> bool:
        """Embedding, reranking and the like: requests have finished here, and not one token was ever generated."""
        last = self.window.last.values
        generated = last.get(Quantity.GENERATION_TOKENS)
        return generated == 0 and Quantity.FINISHED in last and last[Quantity.FINISHED] > 0

    @lazy
    def first_requests(self) -> bool:
        """Nothing had been generated before the window: the first requests of this process pay for its warm-up."""
        first = self.window.first
        before = first.values.get(Quantity.GENERATION_TOKENS)
        answered = first.histograms.get(Quantity.TTFT)
        return before == 0 and (answered is None or answered.count == 0)

    # ---- time per token and to the first token

    @lazy
    def per_token(self) -> Number:
        """Mean seconds between tokens in the window."""
        return per_token(self.window)

    @lazy
    def per_token_n(self) -> int:
        count = self.window.delta(Quantity.ITL)
        return int(count if known(count) else value_or(self.window.delta(Quantity.GENERATION_TOKENS), 0.0))

    @lazy
    def per_token_before(self) -> Number:
        """The same since process start, up to the window's first reading."""
        lifetime = self.window.lifetime_mean(Quantity.ITL)
        if known(lifetime):
            return lifetime
        values = self.window.first.values
        tokens, seconds = values.get(Quantity.GENERATION_TOKENS), values.get(Quantity.GENERATION_SECONDS)
        return seconds / tokens if tokens and seconds else NOT_EXPORTED

    @lazy
    def batch_before(self) -> float | None:
        """Mean tokens per engine step since start, up to the window's first reading: how large the batch was then."""
        values = self.window.first.values
        tokens, steps = values.get(Quantity.GENERATION_TOKENS), values.get(Quantity.ENGINE_STEPS)
        return tokens / steps if tokens and steps else None

    @lazy
    def tokens_per_step(self) -> float:
        """Tokens that one step brings to a request: 1 without speculation."""
        drafts, accepted = self.window.delta(Quantity.DRAFTS), self.window.delta(Quantity.ACCEPTED_TOKENS)
        return 1.0 + accepted / drafts if known(drafts) and known(accepted) and drafts > 0 else 1.0

    @lazy
    def ttft(self) -> Number:
        return self.window.mean(Quantity.TTFT)

    @lazy
    def finished(self) -> Number:
        """Requests that ended in the window; the end-to-end histogram counts them where no counter does."""
        counted = self.window.delta(Quantity.FINISHED)
        return counted if known(counted) else self.window.delta(Quantity.E2E)

    @lazy
    def vanished(self) -> Number:
        """Requests that got a first token, did not finish and do not run any more: their clients left.

        Engines that drop an aborted request without counting it show them only as this difference.
        """
        first, finished, running = self.window.delta(Quantity.TTFT), self.finished, self.running
        if not known(first) or not known(finished) or running is None:
            return NOT_EXPORTED
        return max(first - finished - (running.last - running.first), 0.0)

    # ---- the engine's own log

    @lazy
    def throughput(self) -> tuple[ThroughputLine, ...]:
        return tuple(line for log in self.logs for line in log.throughput)

    @lazy
    def sequence_limit(self) -> Number:
        """Requests that may run at once, where the page or the log's start lines say so."""
        exported = self.track(Quantity.SEQUENCE_LIMIT)
        if exported is not None:
            return exported.last
        limits = [log.sequence_limit for log in self.logs if log.sequence_limit]
        return float(limits[-1]) if limits else NOT_EXPORTED

    # ---- evidence

    def source(self, quantity: Quantity) -> str:
        """'file-or-target series' for a quantity."""
        reading = self.window.last
        live = bool(self.replica.target.url)
        origin = f"{self.name} {reading.source}" if live else reading.source
        return f"{origin} {reading.names.get(quantity, quantity.value)}"

    def evidence(
        self,
        name: str,
        text: str,
        *,
        quantity: Quantity,
        strength: int = 2,
        direction: Direction = Direction.FOR,
        value: Number | None = None,
        unit: str = "",
        threshold: float | None = None,
        n: int | None = None,
    ) -> Evidence:
        """One engine statement. A mean of few observations is a hint whatever was asked for."""
        if n is not None and n < WEAK_BELOW and quantity in HISTOGRAMS:
            strength = min(strength, 1)
        return Evidence(
            id=f"engine.{name}",
            direction=direction,
            strength=strength,
            family=Family.ENGINE,
            text=text,
            value=value if value is not None and known(value) else None,
            unit=unit,
            threshold=threshold,
            n=n if n is not None else self.window.readings,
            source=self.source(quantity),
            age_s=self.replica.age_s,
        )
