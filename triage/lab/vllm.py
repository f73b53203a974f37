"""The metrics page of vLLM's V1 engine, release 0.32, and when each of its series is written.

Gauges and token counters move with every step, time to first token at the first output, inter-token
latency at every later one. Queue, prefill, decode, inference, end-to-end and the request_* families
move only when a request finishes; an aborted request leaves no trace in them.
"""

import math

from triage.lab.engine import EngineSettings
from triage.lab.pages.exposition import LiveHistogram, Page, labels
from triage.lab.sequence import Sequence, Step

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


class VllmMetrics:
    """Observes one engine and writes its page. All series carry engine="0" and the model's name."""

    def __init__(self, model: str, settings: EngineSettings) -> None:
        self._settings = settings
        self._model = model
        self._where = labels(engine="0", model_name=model)
        self._running = 0
        self._waiting = 0
        self._used_blocks = 0
        self._prompt_tokens = 0
        self._generation_tokens = 0
        self._finished = dict.fromkeys(_FINISH_REASONS, 0)
        lengths = length_edges(settings.max_model_len)
        self._ttft = LiveHistogram(_TTFT)
        self._itl = LiveHistogram(_PER_TOKEN)
        self._tpot = LiveHistogram(_PER_TOKEN)
        self._iteration = LiveHistogram(_ITERATION)
        self._times = {name: LiveHistogram(_REQUEST) for name, _ in _TIMES_AT_FINISH}
        self._prompt_length = LiveHistogram(lengths)
        self._output_length = LiveHistogram(lengths)
        self._max_tokens = LiveHistogram(lengths)
        self._choices = LiveHistogram(_SAMPLES)
        self._preemptions = LiveHistogram(_PREEMPTIONS)

    def admitted(self, sequence: Sequence) -> None:
        """Queue time is written at finish, not here."""

    def first_token(self, sequence: Sequence) -> None:
        self._ttft.observe(sequence.first_token - sequence.arrived)

    def aborted(self, sequence: Sequence) -> None:
        """Leaves no trace: finished_reason="abort" stays 0 when a client goes away."""

    def finished(self, sequence: Sequence) -> None:
        decode_s = sequence.finished - sequence.first_token
        times = self._times
        times["e2e_request_latency_seconds"].observe(sequence.finished - sequence.arrived)
        times["request_queue_time_seconds"].observe(sequence.scheduled - sequence.queued)
        times["request_inference_time_seconds"].observe(sequence.finished - sequence.scheduled)
        times["request_prefill_time_seconds"].observe(sequence.first_token - sequence.scheduled)
        times["request_decode_time_seconds"].observe(decode_s)
        self._tpot.observe(decode_s / (sequence.emitted - 1) if sequence.emitted > 1 else 0.0)
        self._prompt_length.observe(sequence.request.prompt_tokens)
        self._output_length.observe(sequence.emitted)
        self._max_tokens.observe(sequence.request.max_tokens)
        self._choices.observe(1)
        self._preemptions.observe(0)
        self._finished[sequence.request.finish_reason] += 1

    def stepped(self, step: Step) -> None:
        self._running = step.running
        self._waiting = step.waiting
        self._used_blocks = step.used_blocks
        self._prompt_tokens += step.prompts_done
        self._generation_tokens += step.generated
        if step.decoded:
            # Every decoding sequence got its previous token at the end of the step before.
            self._itl.observe(step.ended - step.started, step.decoded)
        if step.generated:
            self._iteration.observe(step.prompts_done + step.generated)

    def page(self, started: float) -> str:
        """The page now. started: unix seconds when the process started."""
        page = Page(created=started)
        page.gauge("process_start_time_seconds", "Unix time at which this process began.", [("", started)])
        self._gauges(page)
        self._counters(page)
        self._histograms(page)
        page.gauge("vllm:cache_config_info", "Settings of the KV cache, as labels.", [(self._cache_config(), 1.0)])
        return page.text()

    def _gauges(self, page: Page) -> None:
        here = self._where
        page.gauge("vllm:num_requests_running", "Requests in the current batch.", [(here, self._running)])
        page.gauge("vllm:num_requests_waiting", "Requests not yet scheduled.", [(here, self._waiting)])
        page.gauge(
            "vllm:num_requests_waiting_by_reason",
            "Waiting requests, split by what they wait for.",
            [
                (self._with(reason="capacity"), self._waiting),
                (self._with(reason="deferred"), 0),
            ],
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
        used = self._used_blocks / self._settings.num_blocks
        page.gauge("vllm:kv_cache_usage_perc", "Share of KV cache blocks in use, 0 to 1.", [(here, used)])

    def _counters(self, page: Page) -> None:
        def plain(name: str, about: str, value: float = 0.0) -> None:
            page.counter(f"vllm:{name}", about, [(self._where, value)])

        def split(name: str, about: str, label: str, values: dict[str, float]) -> None:
            page.counter(f"vllm:{name}", about, [(self._with(**{label: key}), value) for key, value in values.items()])

        # The simulated engine runs with --no-enable-prefix-caching: nothing is looked up, nothing is hit.
        plain("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.")
        plain("prefix_cache_hits", "Prompt tokens found in the prefix cache.")
        plain("external_prefix_cache_queries", "Prompt tokens looked up in a cache shared between instances.")
        plain("external_prefix_cache_hits", "Prompt tokens found in a cache shared between instances.")
        plain("mm_cache_queries", "Items looked up in the multi-modal cache.")
        plain("mm_cache_hits", "Items found in the multi-modal cache.")
        plain("num_preemptions", "Times a running request was put back to make room.")
        plain("prompt_tokens", "Prompt tokens of requests that reached their first token.", self._prompt_tokens)
        split(
            "prompt_tokens_by_source",
            "Prompt tokens by where their KV came from.",
            "source",
            {"local_compute": self._prompt_tokens, "local_cache_hit": 0.0, "external_kv_transfer": 0.0},
        )
        plain("prompt_tokens_cached", "Prompt tokens that were not computed.")
        split(
            "prompt_tokens_cached_by_source",
            "Prompt tokens that were not computed, by cache tier.",
            "source",
            dict.fromkeys(("device", "host", "p2p", "disk", "external_unspecified"), 0.0),
        )
        plain("generation_tokens", "Tokens generated.", self._generation_tokens)
        split("request_success", "Finished requests, by reason.", "finished_reason", {**self._finished})
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
        one("request_prefill_kv_computed_tokens", "Prompt tokens computed per finished request.", self._prompt_length)

    def _with(self, **more: str) -> str:
        return labels(engine="0", model_name=self._model, **more)

    def _cache_config(self) -> str:
        settings = self._settings
        return labels(
            block_size=str(settings.block_size),
            cache_dtype="auto",
            enable_prefix_caching="False",
            engine="0",
            gpu_memory_utilization="0.92",
            kv_cache_size_tokens=str(settings.num_blocks * settings.block_size),
            num_cpu_blocks="None",
            num_gpu_blocks=str(settings.num_blocks),
            num_gpu_blocks_override="None",
            sliding_window="None",
        )
