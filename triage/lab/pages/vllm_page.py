"""The metrics page of vLLM's V1 engine, release 0.32, and when each of its series is written.

Gauges and token counters move with every step, time to first token at the first output, inter-token
latency at every later one. Queue, prefill, decode, inference, end-to-end and the request_* families
move only when a request finishes; an aborted request leaves no trace in them. While no step ends,
gauges keep what the last one left.
"""

import math

from triage.lab.batching.engine import Engine
from triage.lab.batching.request import Run, Sequence
from triage.lab.batching.settings import EngineSettings
from triage.lab.machine.step_time import Machine
from triage.lab.pages.exposition import LiveHistogram, Page, labels, processor_seconds

_TTFT = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_PER_TOKEN = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
_REQUEST = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
_ITERATION = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)
_SAMPLES = (1.0, 2.0, 5.0, 10.0, 20.0)
_PREEMPTIONS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)

_FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")
_TIMES_AT_FINISH = (
    ("e2e_request_latency_seconds", "Seconds from arrival to the last token."),
    ("request_queue_time_seconds", "Seconds a request waited before it was first scheduled."),
    ("request_inference_time_seconds", "Seconds from first scheduling to the last token."),
    ("request_prefill_time_seconds", "Seconds from first scheduling to the first token."),
    ("request_decode_time_seconds", "Seconds from the first to the last token."),
)


def length_edges(max_model_len: int) -> tuple[float, ...]:
    """Edges of the token-count families: 1, 2, 5, 10, ... up to the context limit."""
    return tuple(
        [
            float(step * 10**power)
            for power in range(1 + int(math.log10(max_model_len)))
            for step in (1, 2, 5)
            if step * 10**power <= max_model_len
        ]
    )


class VllmPage:
    """Observes one engine and writes its page. All series carry engine="0" and the model's name.

    engine: set by whoever builds both; read when the page is written.
    """

    engine: Engine

    def __init__(self, machine: Machine, settings: EngineSettings) -> None:
        self._settings = settings
        self._model = machine.checkpoint.name
        self._drafted = machine.drafted
        self._where = labels(engine="0", model_name=self._model)
        self._gauges_now: tuple[int, int, float] | None = None
        self._last_end = 0.0
        self._queries = 0
        self._hits = 0
        self.prompt_tokens = 0
        self._cached_tokens = 0
        self.generation_tokens = 0
        self._preempted = 0
        self._drafts = 0
        self.drafted_tokens = 0
        self.accepted_tokens = 0
        self._accepted_at = [0.0] * machine.drafted
        self._finished = dict.fromkeys(_FINISH_REASONS, 0)
        lengths = length_edges(settings.max_model_len)
        self._ttft = LiveHistogram(_TTFT)
        self._itl = LiveHistogram(_PER_TOKEN)
        self._tpot = LiveHistogram(_PER_TOKEN)
        self._iteration = LiveHistogram(_ITERATION)
        self._iteration_open: int | None = None
        self._times = {name: LiveHistogram(_REQUEST) for name, _ in _TIMES_AT_FINISH}
        self._prompt_length = LiveHistogram(lengths)
        self._computed_length = LiveHistogram(lengths)
        self._output_length = LiveHistogram(lengths)
        self._max_tokens = LiveHistogram(lengths)
        self._choices = LiveHistogram(_SAMPLES)
        self._preemptions = LiveHistogram(_PREEMPTIONS)

    # ---- what the engine tells

    def queued(self, sequence: Sequence) -> None:
        """Nothing moves before a step has seen the request."""

    def admitted(self, sequence: Sequence, at: float) -> None:  # noqa: ARG002 - queue time is written at finish
        if self._settings.prefix_caching and not sequence.preemptions:
            self._queries += sequence.request.prompt_tokens
            self._hits += sequence.cached

    def preempted(self, sequence: Sequence) -> None:  # noqa: ARG002 - only the number counts
        self._preempted += 1

    def halted(self) -> None:
        self._gauges_now = self._look()

    def ran(self, run: Run) -> None:
        self._close_iteration()
        self._gauges_now = None
        self.generation_tokens += run.generated
        if run.decoding:
            # Between two steps nothing is lost, unless the scheduler stood still: that is the first one's gap.
            gap = max(run.started - self._last_end, 0.0)
            if gap > 0.0:
                self._itl.observe(gap + run.first_s, run.decoding)
            if run.steps > 1 or not gap:
                second = run.first_s + (run.last_s - run.first_s) / (run.steps - 1) if run.steps > 1 else run.first_s
                self._itl.observe_even(
                    second if gap else run.first_s, run.last_s, run.steps - (1 if gap else 0), run.decoding
                )
        self._last_end = run.ended
        if run.drafts:
            self._drafts += run.drafts
            self.drafted_tokens += run.drafted
            self.accepted_tokens += run.accepted
            self._spread_over_positions(run.accepted)
        if run.computed:
            self._iteration_open = run.generated
        elif run.generated:
            each = run.generated / run.steps
            self._iteration.observe_even(each, each, run.steps, 1)

    def prefilled(self, sequence: Sequence, at: float) -> None:
        self.generation_tokens += 1
        prompt = 0
        if sequence.first_token == at:
            prompt = sequence.request.prompt_tokens
            self._ttft.observe(at - sequence.arrived)
            self.prompt_tokens += prompt
            self._cached_tokens += sequence.cached
        if self._iteration_open is not None:
            self._iteration_open += prompt + 1

    def aborted(self, sequence: Sequence) -> None:
        """Leaves no trace: finished_reason="abort" stays 0 when a client goes away."""

    def finished(self, sequence: Sequence) -> None:
        decode_s = sequence.finished - sequence.first_token
        times, emitted, prompt = self._times, sequence.counted, sequence.request.prompt_tokens
        times["e2e_request_latency_seconds"].observe(sequence.finished - sequence.arrived)
        times["request_queue_time_seconds"].observe(sequence.scheduled - sequence.queued)
        times["request_inference_time_seconds"].observe(sequence.finished - sequence.scheduled)
        times["request_prefill_time_seconds"].observe(sequence.first_token - sequence.scheduled)
        times["request_decode_time_seconds"].observe(decode_s)
        self._tpot.observe(decode_s / (emitted - 1) if emitted > 1 else 0.0)
        self._prompt_length.observe(prompt)
        self._computed_length.observe(prompt - sequence.cached)
        self._output_length.observe(emitted)
        self._max_tokens.observe(sequence.request.max_tokens)
        self._choices.observe(1)
        self._preemptions.observe(sequence.preemptions)
        # That a text is a tool call is found by the server in front of the engine.
        self._finished["length" if sequence.request.finish_reason == "length" else "stop"] += 1

    # ---- the page

    def text(self, started: float, now: float) -> str:
        """The page now. started, now: unix seconds."""
        self._close_iteration()
        page = Page(created=started)
        page.gauge("process_start_time_seconds", "Unix time at which this process began.", [("", started)])
        page.counter(
            "process_cpu_seconds",
            "User and system CPU time of this process.",
            [("", processor_seconds(now - started, self.generation_tokens))],
            births=False,
        )
        self._gauges(page)
        self._counters(page)
        self._histograms(page)
        page.gauge("vllm:cache_config_info", "Settings of the KV cache, as labels.", [(self._cache_config(), 1.0)])
        return page.text()

    def gauges(self) -> tuple[int, int, float]:
        """Running, waiting, and the share of KV blocks in use, as of the last step."""
        return self._gauges_now if self._gauges_now is not None else self._look()

    def hit_rate(self) -> float:
        """Of prompt tokens since the start, 0 to 1."""
        return self._hits / self._queries if self._queries else 0.0

    def _look(self) -> tuple[int, int, float]:
        engine = self.engine
        return engine.running, engine.waiting, engine.used_blocks() / self._settings.num_blocks

    def _close_iteration(self) -> None:
        if self._iteration_open:
            self._iteration.observe(self._iteration_open)
        self._iteration_open = None

    def _spread_over_positions(self, accepted: int) -> None:
        """A token at a place is accepted only behind accepted ones: a, a², a³ …"""
        chance = self.engine.machine.acceptance
        weights = [chance ** (place + 1) for place in range(self._drafted)]
        whole = sum(weights)
        for place, weight in enumerate(weights):
            self._accepted_at[place] += accepted * weight / whole if whole else 0.0

    def _gauges(self, page: Page) -> None:
        here = self._where
        running, waiting, used = self.gauges()
        page.gauge("vllm:num_requests_running", "Requests in the current batch.", [(here, running)])
        page.gauge("vllm:num_requests_waiting", "Requests not yet scheduled.", [(here, waiting)])
        page.gauge(
            "vllm:num_requests_waiting_by_reason",
            "Waiting requests, split by what they wait for.",
            [(self._with(reason="capacity"), waiting), (self._with(reason="deferred"), 0)],
        )
        page.gauge(
            "vllm:engine_sleep_state",
            "1 for the state the engine is in: awake, or asleep at level 1 or 2.",
            [
                (self._with(sleep_state="awake"), 1),
                (self._with(sleep_state="weights_offloaded"), 0),
                (self._with(sleep_state="discard_all"), 0),
            ],
        )
        page.gauge("vllm:kv_cache_usage_perc", "Share of KV cache blocks in use, 0 to 1.", [(here, used)])

    def _counters(self, page: Page) -> None:
        def plain(name: str, about: str, value: float = 0.0) -> None:
            page.counter(f"vllm:{name}", about, [(self._where, value)])

        def split(name: str, about: str, label: str, values: dict[str, float]) -> None:
            page.counter(f"vllm:{name}", about, [(self._with(**{label: key}), value) for key, value in values.items()])

        plain("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", self._queries)
        plain("prefix_cache_hits", "Prompt tokens found in the prefix cache.", self._hits)
        plain("external_prefix_cache_queries", "Prompt tokens looked up in a cache shared between instances.")
        plain("external_prefix_cache_hits", "Prompt tokens found in a cache shared between instances.")
        plain("mm_cache_queries", "Items looked up in the multi-modal cache.")
        plain("mm_cache_hits", "Items found in the multi-modal cache.")
        plain("num_preemptions", "Times a running request was put back to make room.", self._preempted)
        plain("prompt_tokens", "Prompt tokens of requests that reached their first token.", self.prompt_tokens)
        computed, cached = self.prompt_tokens - self._cached_tokens, self._cached_tokens
        split(
            "prompt_tokens_by_source",
            "Prompt tokens by where their KV came from.",
            "source",
            {"local_compute": computed, "local_cache_hit": cached, "external_kv_transfer": 0.0},
        )
        plain("prompt_tokens_cached", "Prompt tokens that were not computed.", cached)
        split(
            "prompt_tokens_cached_by_source",
            "Prompt tokens that were not computed, by cache tier.",
            "source",
            {"device": cached, **dict.fromkeys(("host", "p2p", "disk", "external_unspecified"), 0.0)},
        )
        plain("generation_tokens", "Tokens generated.", self.generation_tokens)
        split("request_success", "Finished requests, by reason.", "finished_reason", {**self._finished})
        if self._drafted:
            plain("spec_decode_num_drafts", "Times a sequence was drafted for.", self._drafts)
            plain("spec_decode_num_draft_tokens", "Tokens drafted.", self.drafted_tokens)
            plain("spec_decode_num_accepted_tokens", "Drafted tokens accepted.", self.accepted_tokens)
            split(
                "spec_decode_num_accepted_tokens_per_pos",
                "Drafted tokens accepted, by place in the draft.",
                "position",
                {str(place): float(round(value)) for place, value in enumerate(self._accepted_at)},
            )
        page.counter(
            "vllm:admission_rejections",
            "Requests refused at the door, by the limit that refused them.",
            [
                (labels(model_name=self._model, reason=reason), 0.0)
                for reason in ("max_num_queued_reqs", "max_num_queued_tokens")
            ],
        )

    def _histograms(self, page: Page) -> None:
        def one(name: str, about: str, histogram: LiveHistogram) -> None:
            page.histogram(f"vllm:{name}", about, [(self._where, histogram)])

        one("request_prompt_tokens", "Prompt tokens per finished request.", self._prompt_length)
        one("request_generation_tokens", "Generated tokens per finished request.", self._output_length)
        one("iteration_tokens_total", "Tokens per engine step.", self._iteration)
        one("request_max_num_generation_tokens", "Longest answer per finished request, in tokens.", self._output_length)
        one("request_params_n", "Answers asked for per request.", self._choices)
        one("request_params_max_tokens", "The max_tokens that requests asked for.", self._max_tokens)
        one("time_to_first_token_seconds", "Seconds from arrival to the first token of any kind.", self._ttft)
        one("inter_token_latency_seconds", "Seconds between two outputs of one request.", self._itl)
        one("request_time_per_output_token_seconds", "Mean seconds per token after the first, per request.", self._tpot)
        for name, about in _TIMES_AT_FINISH:
            one(name, about, self._times[name])
        one("request_num_preemptions", "Preemptions per finished request.", self._preemptions)
        one("request_prefill_kv_computed_tokens", "Prompt tokens computed per finished request.", self._computed_length)

    def _with(self, **more: str) -> str:
        return labels(engine="0", model_name=self._model, **more)

    def _cache_config(self) -> str:
        settings = self._settings
        # One block more than can be used: the engine keeps it empty (its usage is a share of the others).
        blocks = settings.num_blocks + 1
        return labels(
            block_size=str(settings.block_size),
            cache_dtype="auto",
            enable_prefix_caching=str(settings.prefix_caching),
            engine="0",
            gpu_memory_utilization="0.9",
            kv_cache_size_tokens=str(blocks * settings.block_size),
            num_cpu_blocks="None",
            num_gpu_blocks=str(blocks),
            num_gpu_blocks_override="None",
            sliding_window="None",
        )
