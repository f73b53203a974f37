"""The metrics page of SGLang, release 0.5.23, and when each of its series is written.

Gauges are refreshed with every prefill batch and every 40th decode iteration only, and hold what
that batch knew: a prefill report counts the running requests without the ones it brings in. Token
counters of finished requests stand beside `realtime_tokens`, which moves with those reports. Queue
time is written when a request is scheduled. Many series do not exist before their first use, and
being a page of several processes it has neither `process_start_time_seconds` nor `_created`.

The simulated scheduler mixes prompt chunks into decode steps (--enable-mixed-chunk), so one step
can be a prefill batch and a decode iteration at once.
"""

import math
from collections.abc import Callable

from triage.lab.batching.engine import Engine
from triage.lab.batching.request import Run, Sequence
from triage.lab.batching.settings import EngineSettings
from triage.lab.machine.step_time import Machine
from triage.lab.pages.exposition import LiveHistogram, Page, labels, processor_seconds

_DECODE_LOG_INTERVAL = 40
# A non-streaming answer reaches the front end in pieces of so many tokens; only then does it have a first token.
_FORCED_STREAM_INTERVAL = 50

_TTFT = (*(0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0, 400.0),)
_E2E = (*_TTFT, 600.0, 1200.0, 1800.0, 2400.0)
_PER_TOKEN = (
    *(0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1),
    *(0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0),
)
_QUEUE = (
    *(0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 15.0, 20.0, 30.0),
    *(40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0, 900.0),
    *(1000.0, 1200.0, 1400.0, 1600.0, 1800.0, 2000.0, 2500.0, 3000.0),
)
_LENGTH = (
    *(100.0, 300.0, 500.0, 700.0, 1e3, 1.5e3, 2e3, 3e3, 4e3, 5e3, 6e3, 7e3, 8e3, 9e3, 1e4, 1.25e4, 1.5e4),
    *(1.75e4, 2e4, 2.25e4, 2.5e4, 2.75e4, 3e4, 3.5e4, 4e4, 6e4, 8e4, 1e5, 2e5, 3e5, 4e5, 6e5, 8e5, 1e6, 1.1e6),
)
_DISAGGREGATION_QUEUES = (
    "prefill_bootstrap",
    "prefill_inflight",
    "decode_prealloc",
    "decode_transfer",
    "decode_host_receive",
)


def stage_edges() -> tuple[float, ...]:
    """Edges of the per-stage latencies: a millisecond, and 1.62 times more each of 29 times."""
    return tuple([0.001 * 1.62**power for power in range(30)])


class SglangPage:
    """Observes one engine and writes its page.

    engine: set by whoever builds both. on_prefill, on_decode, on_retract: called with each report, for the log.
    """

    engine: Engine

    def __init__(self, machine: Machine, settings: EngineSettings) -> None:
        self._settings = settings
        model = machine.checkpoint.name
        ranks = {"engine_type": "unified", "model_name": model, "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": "0"}
        self._ranks = ranks
        self._scheduler = labels(**ranks)
        self._front = labels(engine_type="unified", model_name=model)
        self._by_streaming = {
            flag: labels(engine_type="unified", is_streaming=str(flag).lower(), model_name=model)
            for flag in (False, True)
        }
        self._model_of_ranks = model
        # gauges, as of the last report
        self.running = 0
        self.queued_now = 0
        self.throughput = 0.0
        self._used_when_halted: int | None = None
        self._hit_rate = 0.0
        # what the next reports will say
        self._decode_iterations = 0
        self._decode_tokens = 0
        self._reported_at = 0.0
        self._cached = 0
        self.new_sequences = 0
        # counters
        self._idle_since = 0.0
        self._idle_s = 0.0
        self._busy_s = 0.0
        self._realtime: dict[str, int] = {}
        self._passes: dict[str, int] = {}
        self._aborted = 0
        self._cached_total = 0
        self._retracted = (0, 0, 0)
        self._just_retracted = 0
        self._requests: dict[bool, int] = {}
        self._prompt_tokens: dict[bool, int] = {}
        self._generation_tokens: dict[bool, int] = {}
        # histograms
        self._queue_time = LiveHistogram(_QUEUE)
        self._prefill_time = LiveHistogram(stage_edges())
        self._ttft: dict[bool, LiveHistogram] = {}
        self._e2e: dict[bool, LiveHistogram] = {}
        self._tpot: dict[bool, LiveHistogram] = {}
        self._itl = LiveHistogram(_PER_TOKEN)
        self._prompt_length = LiveHistogram(_LENGTH)
        self._computed_length = LiveHistogram(_LENGTH)
        self._output_length = LiveHistogram(_LENGTH)
        self._held_back: list[Sequence] = []
        self.on_prefill: Callable[[float, int, int, float], None] = _nothing
        self.on_decode: Callable[[float], None] = _nothing
        self.on_retract: Callable[[float, int], None] = _nothing

    # ---- what the engine tells

    def queued(self, sequence: Sequence) -> None:
        """Nothing moves before the scheduler reports."""

    def admitted(self, sequence: Sequence, at: float) -> None:
        self._cached += sequence.prefilled
        self.new_sequences += 1
        if not sequence.preemptions:
            self._queue_time.observe(at - sequence.queued)

    def preempted(self, sequence: Sequence) -> None:
        number, prompts, outputs = self._retracted
        self._retracted = (number + 1, prompts + sequence.request.prompt_tokens, outputs + sequence.counted)
        self._just_retracted += 1
        self.on_retract(self._last_end, sequence.counted)

    def halted(self) -> None:
        self._used_when_halted = self._used()

    def prefilled(self, sequence: Sequence, at: float) -> None:
        if sequence.first_token != at:
            return
        self._prefill_time.observe(at - sequence.scheduled)
        if sequence.request.streaming:
            self._reached_front_end(sequence, at)
        else:
            self._held_back.append(sequence)

    def aborted(self, sequence: Sequence) -> None:
        self._aborted += 1
        self._quiet(sequence.finished)

    def finished(self, sequence: Sequence) -> None:
        streaming, emitted = sequence.request.streaming, sequence.counted
        prompt = sequence.request.prompt_tokens
        if sequence in self._held_back:
            self._held_back.remove(sequence)
            self._reached_front_end(sequence, sequence.finished)
        self._requests[streaming] = self._requests.get(streaming, 0) + 1
        self._prompt_tokens[streaming] = self._prompt_tokens.get(streaming, 0) + prompt
        self._generation_tokens[streaming] = self._generation_tokens.get(streaming, 0) + emitted
        self._cached_total += sequence.cached
        self._prompt_length.observe(prompt)
        self._computed_length.observe(prompt - sequence.cached)
        self._output_length.observe(emitted)
        self._e2e.setdefault(streaming, LiveHistogram(_E2E)).observe(sequence.finished - sequence.arrived)
        if emitted > 1:
            tpot = (sequence.finished - sequence.first_token) / (emitted - 1)
            self._tpot.setdefault(streaming, LiveHistogram(_PER_TOKEN)).observe(tpot)
        self._quiet(sequence.finished)

    def ran(self, run: Run) -> None:
        self._used_when_halted = None
        self._idle_s += run.started - self._idle_since
        self._busy_s += run.ended - run.started
        self._idle_since = run.ended
        self._release_held_back(run.ended)
        if run.computed:
            self._count(self._passes, "prefill_none", run.steps)
            self._count(self._realtime, "prefill_compute", run.computed)
            self._count(self._realtime, "prefill_cache", self._cached)
            self._hit_rate = self._cached / (self._cached + run.computed)
            self.running, self.queued_now = run.decoding, self.engine.waiting
            self.on_prefill(run.ended, run.computed, self._cached, run.computed / max(run.ended - run.started, 1e-9))
            self._cached = self.new_sequences = 0
        if run.decoding:
            # Each output with its tokens: the gap is shared among them.
            each = run.generated / (run.decoding * run.steps)
            times = round(run.decoding * each)
            self._itl.observe_even(run.first_s / each, run.last_s / each, run.steps, times)
            self._count(self._passes, "decode_none", run.steps)
            before = self._decode_iterations // _DECODE_LOG_INTERVAL
            self._decode_iterations += run.steps
            self._decode_tokens += run.generated
            if self._decode_iterations // _DECODE_LOG_INTERVAL > before:
                self._report_decode(run.ended)

    def _report_decode(self, at: float) -> None:
        self.throughput = self._decode_tokens / max(at - self._reported_at, 1e-9)
        self._count(self._realtime, "decode", self._decode_tokens)
        self._decode_tokens = 0
        self._reported_at = at
        self._just_retracted = 0
        self.running, self.queued_now = self.engine.running, self.engine.waiting
        self.on_decode(at)

    def _quiet(self, at: float) -> None:
        """Without any work the scheduler reports once more and goes to sleep."""
        if not self.engine.open_requests:
            self.running = self.queued_now = 0
            self.throughput = 0.0
            self._count(self._realtime, "decode", self._decode_tokens)
            self._decode_tokens = 0
            self._reported_at = at

    @property
    def _last_end(self) -> float:
        return self._idle_since

    def _release_held_back(self, at: float) -> None:
        still = []
        for sequence in self._held_back:
            if sequence.ended:
                continue
            if self.engine.emitted(sequence) >= _FORCED_STREAM_INTERVAL:
                self._reached_front_end(sequence, at)
            else:
                still.append(sequence)
        self._held_back = still

    def _reached_front_end(self, sequence: Sequence, at: float) -> None:
        self._ttft.setdefault(sequence.request.streaming, LiveHistogram(_TTFT)).observe(at - sequence.arrived)

    @staticmethod
    def _count(counter: dict[str, int], mode: str, more: int) -> None:
        if more:
            counter[mode] = counter.get(mode, 0) + more

    # ---- the page

    def usage(self) -> float:
        """Share of KV tokens in use, 0 to 1."""
        return self._used() / (self._settings.num_blocks * self._settings.block_size)

    def used_tokens(self) -> int:
        return self._used()

    def text(self, started: float, now: float) -> str:
        """The page now (unix seconds, as is started). SGLang's says nothing of when its processes started."""
        page = Page(created=None)
        tokens = self._realtime.get("decode", 0)
        page.counter(
            "sglang:process_cpu_seconds",
            "CPU time of the processes around the scheduler.",
            [
                (labels(component="tokenizer"), processor_seconds(now - started, tokens)),
                (labels(component="detokenizer"), round(0.07 + 3.0e-5 * tokens, 2)),
            ],
        )
        self._counters(page)
        self._histograms(page)
        self._gauges(page)
        return page.text()

    def _used(self) -> int:
        if self._used_when_halted is not None:
            return self._used_when_halted
        return self.engine.used_blocks() * self._settings.block_size

    def _counters(self, page: Page) -> None:
        def by_mode(name: str, about: str, values: dict[str, int]) -> None:
            samples = [(labels(mode=mode, **self._ranks), float(value)) for mode, value in values.items()]
            page.counter(f"sglang:{name}", about, samples)

        def by_streaming(name: str, about: str, values: dict[bool, int]) -> None:
            samples = [(self._by_streaming[flag], float(value)) for flag, value in values.items()]
            page.counter(f"sglang:{name}", about, samples)

        def once_used(name: str, about: str, where: str, value: float) -> None:
            if value:
                page.counter(f"sglang:{name}", about, [(where, value)])

        page.counter(
            "sglang:scheduler_idle_seconds",
            "Seconds without running or queued work.",
            [(self._scheduler, self._idle_s)],
        )
        # The scheduler polls while it has work: its thread is busy for as long as its steps take.
        page.counter(
            "sglang:scheduler_process_cpu_seconds",
            "Processor seconds of the scheduler.",
            [(self._scheduler, self._busy_s)],
        )
        by_mode("cuda_graph_passes", "Forward passes, by kind of batch and graph use.", self._passes)
        by_mode("realtime_tokens", "Tokens processed, as of the last report.", self._realtime)
        by_streaming("prompt_tokens", "Prompt tokens of finished requests.", self._prompt_tokens)
        by_streaming("generation_tokens", "Generated tokens of finished requests.", self._generation_tokens)
        by_streaming("num_requests", "Finished requests.", self._requests)
        device = labels(cache_source="device", engine_type="unified", model_name=self._model_of_ranks)
        once_used("cached_tokens", "Prompt tokens of finished requests that were cached.", device, self._cached_total)
        once_used("num_aborted_requests", "Aborted requests.", self._front, self._aborted)
        number, prompts, outputs = self._retracted
        once_used("num_retracted_requests", "Requests put back to make room.", self._scheduler, number)
        once_used("num_retracted_input_tokens", "Their prompt tokens.", self._scheduler, prompts)
        once_used("num_retracted_output_tokens", "Their generated tokens.", self._scheduler, outputs)

    def _histograms(self, page: Page) -> None:
        def by_streaming(name: str, about: str, series: dict[bool, LiveHistogram]) -> None:
            page.histogram(f"sglang:{name}", about, [(self._by_streaming[flag], one) for flag, one in series.items()])

        def one(name: str, about: str, where: str, histogram: LiveHistogram) -> None:
            if any(histogram.counts):
                page.histogram(f"sglang:{name}", about, [(where, histogram)])

        one(
            "per_stage_req_latency_seconds",
            "Seconds a request spent in a stage.",
            labels(stage="prefill_forward", **self._ranks),
            self._prefill_time,
        )
        one("queue_time_seconds", "Seconds a request waited to be scheduled.", self._scheduler, self._queue_time)
        by_streaming("time_to_first_token_seconds", "Seconds from arrival to the first output.", self._ttft)
        by_streaming("e2e_request_latency_seconds", "Seconds from arrival to the last output.", self._e2e)
        by_streaming(
            "request_time_per_output_token_seconds", "Mean seconds per token after the first, per request.", self._tpot
        )
        one("prompt_tokens_histogram", "Prompt tokens per finished request.", self._front, self._prompt_length)
        one(
            "uncached_prompt_tokens_histogram",
            "Prompt tokens computed per finished request.",
            self._front,
            self._computed_length,
        )
        one("generation_tokens_histogram", "Generated tokens per finished request.", self._front, self._output_length)
        one("inter_token_latency_seconds", "Seconds per token after the first.", self._front, self._itl)

    def _gauges(self, page: Page) -> None:
        def plain(name: str, about: str, value: float) -> None:
            page.gauge(f"sglang:{name}", about, [(self._scheduler, value)])

        settings = self._settings
        capacity, used = settings.num_blocks * settings.block_size, self._used()
        usage = used / capacity
        kept = min(self.engine.kv.kept * settings.block_size, capacity - used)
        plain("max_total_num_tokens", "Size of the KV cache in tokens.", capacity)
        plain("page_size", "Tokens per KV cache page.", settings.block_size)
        plain("num_pages", "KV cache pages.", settings.num_blocks)
        plain("context_len", "Longest context in tokens.", settings.max_model_len)
        plain("num_running_reqs", "Running requests, as of the last report.", self.running)
        plain("num_queue_reqs", "Queued requests, as of the last report.", self.queued_now)
        plain("num_grammar_queue_reqs", "Requests waiting for a grammar.", 0)
        plain("gen_throughput", "Tokens per second between the last two decode reports.", self.throughput)
        plain("cache_hit_rate", "Prefix cache hits of the last prefill batch.", self._hit_rate)
        # Rounded to two digits, unlike full_token_usage.
        plain("token_usage", "Share of the fullest KV pool in use, 0 to 1.", round(usage, 2))
        plain("full_token_usage", "Share of the full-attention KV pool in use, 0 to 1.", usage)
        plain("num_used_tokens", "KV cache tokens in use.", used)
        plain("kv_available_tokens", "Free KV cache tokens.", capacity - used - kept)
        plain("kv_evictable_tokens", "KV cache tokens kept for reuse.", kept)
        plain("kv_used_tokens", "KV cache tokens held by requests.", used)
        plain("spec_accept_length", "Tokens per speculative step; 0 without speculation.", 0.0)
        plain("spec_accept_rate", "Accepted share of drafted tokens; 0 without speculation.", 0.0)
        plain("new_token_ratio", "Part of an answer's limit that admission reserves room for.", settings.reserve)
        for queue in _DISAGGREGATION_QUEUES:
            plain(f"num_{queue}_queue_reqs", f"Requests in the {queue.replace('_', ' ')} queue.", 0)
        plain("utilization", "Not computed by this release: always 0.", 0.0)
        plain("fwd_occupancy", "Share of time in forward passes; NaN while the timer is off.", math.nan)
        plain("is_cuda_graph", "1 when the last batch ran as a graph.", 0.0)
        per_process = labels(pid="1", **self._ranks)
        page.gauge(
            "sglang:num_retracted_reqs",
            "Requests retracted since the last report.",
            [(per_process, self._just_retracted)],
        )
        page.gauge("sglang:num_paused_reqs", "Requests paused since the last report.", [(per_process, 0.0)])


def _nothing(*_: object) -> None:
    """Nobody writes a log."""
