"""A real vLLM page of 50 KB whose values move from step to step."""

from functools import lru_cache

from tests.data import RECORDINGS

MODEL = "bench-model"
_RECORDED = RECORDINGS / "vllm" / "vllm-0.32.0-queueing.prom"
_RECORDED_MODEL = "tiny-qwen3"
_MOVING = (" counter", " histogram", " summary")


@lru_cache(maxsize=64)
def page(step: int, model: str = MODEL) -> bytes:
    """The recording after `step` more rounds of the same work.

    Counters and histograms are the recorded ones times 100 + step: they only rise, and buckets fit their counts.
    Gauges stay.
    """
    lines = []
    moving = False
    for line in _RECORDED.read_text(encoding="utf-8").replace(_RECORDED_MODEL, model).split("\n"):
        if line.startswith("#"):
            moving = line.endswith(_MOVING)
        elif moving and line:
            series, _, value = line.rpartition(" ")
            line = f"{series} {float(value) * (100 + step)}"
        lines.append(line)
    return "\n".join(lines).encode()
