"""The log of vLLM 0.32: its start, a line of throughput every ten seconds of work, and how it ends."""

import time
from collections.abc import Sequence

from triage.lab.batching.settings import EngineSettings
from triage.lab.machine.step_time import Machine
from triage.lab.pages.forms import StartTimes
from triage.lab.pages.vllm_page import VllmPage

_SHARDS = 4
_GIB = 2.0**30


class VllmLog:
    """Reads the page's counters for its regular lines."""

    every_s = 10.0

    def __init__(self, page: VllmPage, settings: EngineSettings, machine: Machine, zero: float) -> None:
        self._page = page
        self._settings = settings
        self._machine = machine
        self._zero = zero
        self._last = (0.0, 0, 0, 0, 0)
        self._was_quiet = False

    def start(self, at: float, times: StartTimes) -> list[tuple[float, Sequence[str]]]:
        """Lines and when they are written. A download and a load tell of their progress."""
        settings, model = self._settings, self._machine.checkpoint.name
        size = self._machine.checkpoint.size
        lines: list[tuple[float, Sequence[str]]] = []

        def say(due: float, part: str, place: str, *texts: str) -> None:
            lines.append((due, [self._line(due, part, place, text) for text in texts]))

        arguments = (
            f"{{'model': '{model}', 'max_model_len': {settings.max_model_len}, "
            f"'max_num_batched_tokens': {settings.max_batched_tokens}, 'max_num_seqs': {settings.max_num_seqs}, "
            f"'tensor_parallel_size': {self._machine.count}}}"
        )
        say(at + 1.0, "APIServer", "api_utils.py:347", f"  version 0.32.0, model {model}")
        say(at + 1.0, "APIServer", "api_utils.py:286", f"non-default args: {arguments}")
        say(
            at + 0.9 * times.launch,
            "EngineCore",
            "core.py:133",
            f"Initializing a V1 LLM engine (v0.32.0) with config: model='{model}', dtype=torch.bfloat16",
        )
        begun = at + times.launch
        for shard in range(1, _SHARDS + 1) if times.download else ():
            part = shard * 100 // _SHARDS
            due = begun + times.download * shard / _SHARDS
            lines.append((due, [f"Fetching {_SHARDS} files: {part:3d}%|{_bar(part)}| {shard}/{_SHARDS}"]))
        begun += times.download
        say(begun, "Worker", "gpu_model_runner.py:5021", f"Starting to load model {model}...")
        for shard in range(1, _SHARDS + 1):
            part = shard * 100 // _SHARDS
            due = begun + times.weights * shard / _SHARDS
            lines.append(
                (
                    due,
                    [
                        f"Loading safetensors checkpoint shards: {part:3d}% Completed | {shard}/{_SHARDS} "
                        f"[00:{int(times.weights * shard / _SHARDS):02d}]"
                    ],
                )
            )
        loaded = at + times.loaded
        took, gib = times.weights, size / self._machine.count / _GIB
        say(loaded, "Worker", "default_loader.py:384", f"Loading weights took {took:.2f} seconds")
        say(
            loaded,
            "Worker",
            "gpu_model_runner.py:5078",
            f"Model loading took {gib:.2f} GiB memory and {took:.6f} seconds",
        )
        compiled = loaded + times.compile
        tokens = settings.num_blocks * settings.block_size
        say(compiled, "Worker", "monitor.py:53", f"torch.compile took {times.compile:.2f} s in total")
        say(compiled, "EngineCore", "kv_cache_utils.py:2327", f"GPU KV cache size: {tokens:,} tokens")
        ready = at + times.whole
        say(
            ready - 0.2,
            "Worker",
            "gpu_model_runner.py:6215",
            f"Graph capturing finished in {times.graphs:.0f} secs, took 0.60 GiB",
        )
        rest = times.compile + times.graphs
        say(
            ready - 0.1,
            "EngineCore",
            "core.py:402",
            f"init engine (profile, create kv cache, warmup model) took {rest:.2f} s",
        )
        lines.append((ready, ["INFO:     Application startup complete."]))
        return lines

    def report(self, at: float) -> list[str]:
        """Throughput since the last look; silent once it has been nothing for two looks."""
        page = self._page
        before, prompt, generated, drafted, accepted = self._last
        now = (at, page.prompt_tokens, page.generation_tokens, page.drafted_tokens, page.accepted_tokens)
        self._last = now
        seconds = max(at - before, 1e-9)
        quiet = now[1:3] == (prompt, generated)
        if quiet and self._was_quiet:
            return []
        self._was_quiet = quiet
        running, waiting, used = page.gauges()
        lines = [
            self._line(
                at,
                "APIServer",
                "loggers.py:335",
                f"Engine 000: Avg prompt throughput: {(now[1] - prompt) / seconds:.1f} tokens/s, "
                f"Avg generation throughput: {(now[2] - generated) / seconds:.1f} tokens/s, "
                f"Running: {running} reqs, Waiting: {waiting} reqs, "
                f"GPU KV cache usage: {100 * used:.1f}%, Prefix cache hit rate: {100 * page.hit_rate():.1f}%",
            )
        ]
        if now[3] > drafted:
            took, tried = now[4] - accepted, now[3] - drafted
            drafts = tried / self._machine.drafted
            lines.append(
                self._line(
                    at,
                    "APIServer",
                    "metrics.py:101",
                    f"SpecDecoding metrics: Mean acceptance length: {1 + took / drafts:.2f}, "
                    f"Accepted throughput: {took / seconds:.2f} tokens/s, "
                    f"Drafted throughput: {tried / seconds:.2f} tokens/s, Accepted: {took} tokens, "
                    f"Drafted: {tried} tokens, Avg Draft acceptance rate: {100 * took / tried:.1f}%",
                )
            )
        return lines

    def out_of_memory(self, at: float) -> list[str]:
        whole = self._machine.device.memory / _GIB
        words = (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.17 GiB. GPU 0 has a total capacity of "
            f"{whole:.2f} GiB of which 311.06 MiB is free."
        )
        return self._fatal(at, words)

    def device_lost(self, at: float) -> list[str]:
        return self._fatal(at, "torch.AcceleratorError: CUDA error: unspecified launch failure")

    def worker_died(self, at: float) -> list[str]:
        died = "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor."
        return [
            self._line(at, "EngineCore", "multiproc_executor.py:315", died, "ERROR"),
            *self._fatal(at, "RuntimeError: cancelled"),
        ]

    def _fatal(self, at: float, words: str) -> list[str]:
        died = (
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. "
            "See stack trace (above) for the root cause."
        )
        return [
            self._line(at, "EngineCore", "core.py:1512", "EngineCore encountered a fatal error.", "ERROR"),
            self._line(at, "EngineCore", "core.py:1512", words, "ERROR"),
            self._line(at, "APIServer", "async_llm.py:906", died, "ERROR"),
        ]

    def _line(self, at: float, part: str, place: str, text: str, level: str = "INFO") -> str:
        clock = time.strftime("%m-%d %H:%M:%S", time.gmtime(self._zero + at))
        return f"({part} pid={_PIDS[part]}) {level} {clock} [{place}] {text}"


_PIDS = {"APIServer": 7, "EngineCore": 118, "Worker": 131}


def _bar(percent: int) -> str:
    return "█" * (percent // 10) + " " * (10 - percent // 10)
