"""The log of SGLang 0.5.23: its start, a line for each report of its scheduler, and how it ends."""

import time
from collections import deque
from collections.abc import Sequence

from triage.lab.batching.settings import EngineSettings
from triage.lab.machine.step_time import Machine
from triage.lab.pages.forms import StartTimes
from triage.lab.pages.sglang_page import SglangPage

_GB = 1e9
# Reports that wait for the next look; a busy scheduler writes some dozens a second.
_MOST_WAITING = 200


class SglangLog:
    """Hears the page's reports, and keeps their lines until it is asked."""

    every_s = 2.0

    def __init__(self, page: SglangPage, settings: EngineSettings, machine: Machine, zero: float) -> None:
        self._page = page
        self._settings = settings
        self._machine = machine
        self._zero = zero
        self._lines: deque[str] = deque(maxlen=_MOST_WAITING)
        page.on_prefill = self._prefill
        page.on_decode = self._decode
        page.on_retract = self._retract

    def start(self, at: float, times: StartTimes) -> list[tuple[float, Sequence[str]]]:
        """Lines and when they are written."""
        settings, checkpoint = self._settings, self._machine.checkpoint
        tokens = settings.num_blocks * settings.block_size
        lines: list[tuple[float, Sequence[str]]] = []

        def say(due: float, *texts: str) -> None:
            lines.append((due, [self._line(due, text) for text in texts]))

        size = checkpoint.size / self._machine.count / _GB
        room = self._machine.device.memory / _GB - 1.5
        limits = (
            f"'context_length': {settings.max_model_len}, 'max_running_requests': {settings.max_num_seqs}, "
            f"'chunked_prefill_size': {settings.max_batched_tokens}, 'tp_size': {self._machine.count}"
        )
        say(at + 1.0, f"server_args={{'model_path': '{checkpoint.name}', {limits}}}")
        begun = at + times.launch
        for part in (25, 50, 75, 100) if times.download else ():
            due = begun + times.download * part / 100
            lines.append((due, [f"model-00001-of-00004.safetensors: {part:3d}%|{'█' * (part // 10):10}|"]))
        begun += times.download
        say(begun, f"Load weight begin. avail mem={room:.2f} GB")
        say(
            at + times.loaded,
            f"Load weight end. elapsed={times.weights:.2f} s, avail mem={room - size:.2f} GB, mem usage={size:.2f} GB.",
        )
        say(at + times.loaded + 0.2, f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}")
        say(at + times.loaded + 0.2, "Memory pool end. avail mem=4.61 GB")
        captured = at + times.loaded + times.compile
        say(captured, "Capture cuda graph begin. This can take up to several minutes. avail mem=4.61 GB")
        took = f"Capture cuda graph end. Time elapsed: {times.graphs:.2f} s. mem usage=0.60 GB. avail mem=4.01 GB."
        say(captured + times.graphs - 0.4, took)
        ready = at + times.whole
        say(
            ready - 0.3,
            f"max_total_num_tokens={tokens}, chunked_prefill_size={settings.max_batched_tokens}, "
            f"max_running_requests={settings.max_num_seqs}, context_len={settings.max_model_len}",
        )
        say(ready - 0.1, "INFO:     Application startup complete.")
        say(ready, "The server is fired up and ready to roll!")
        return lines

    def report(self, at: float) -> list[str]:  # noqa: ARG002 - its lines have their own times
        lines = list(self._lines)
        self._lines.clear()
        return lines

    def out_of_memory(self, at: float) -> list[str]:
        whole = self._machine.device.memory / 2.0**30
        words = (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.17 GiB. GPU 0 has a total capacity of "
            f"{whole:.2f} GiB of which 311.06 MiB is free."
        )
        return self._fatal(at, words)

    def device_lost(self, at: float) -> list[str]:
        return self._fatal(at, "torch.AcceleratorError: CUDA error: unspecified launch failure")

    def worker_died(self, at: float) -> list[str]:
        return [
            *self.report(at),
            self._line(at, "Subprocess scheduler_0 (pid=118) crashed with exit code -9."),
            self._line(at, "Received sigquit from a child process. It usually means the child failed."),
        ]

    def _fatal(self, at: float, words: str) -> list[str]:
        return [
            *self.report(at),
            self._line(at, f"Scheduler hit an exception: Traceback (most recent call last):\n{words}"),
            self._line(at, "Received sigquit from a child process. It usually means the child failed."),
        ]

    def _prefill(self, at: float, computed: int, cached: int, speed: float) -> None:
        page = self._page
        self._lines.append(
            self._line(
                at,
                f"Prefill batch, #new-seq: {page.new_sequences}, #new-token: {computed}, "
                f"#cached-token: {cached}, token usage: {page.usage():.2f}, #running-req: {page.running}, "
                f"#queue-req: {page.queued_now}, #pending-token: 0, cuda graph: False, "
                f"input throughput (token/s): {speed:.2f}",
            )
        )

    def _decode(self, at: float) -> None:
        page = self._page
        self._lines.append(
            self._line(
                at,
                f"Decode batch, #running-req: {page.running}, #token: {page.used_tokens()}, "
                f"token usage: {page.usage():.2f}, cuda graph: True, "
                f"gen throughput (token/s): {page.throughput:.2f}, #queue-req: {page.queued_now}",
            )
        )

    def _retract(self, at: float, gained: int) -> None:
        self._lines.append(
            self._line(
                at,
                "KV cache pool is full. Retract requests. #retracted_reqs: 1, "
                f"#new_tokens_gained: {gained}, #new_token_ratio: {self._settings.reserve:.4f} -> 1.0000",
            )
        )

    def _line(self, at: float, text: str) -> str:
        return f"[{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(self._zero + at))}] {text}"
