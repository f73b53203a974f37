"""The engines' own periodic reports, and llama.cpp's timing of each request."""

import re

from triage.domain.logs import ThroughputLine

# Any of these in a line makes it worth parsing.
NEEDLES = (
    "Avg prompt throughput:",
    "SpecDecoding metrics:",
    "Decode batch",
    "Prefill batch",
    "eval time =",
    "draft acceptance",
    "num_scheduled_requests:",
)
_NUMBER = r"(\d{1,12}(?:\.\d{1,6})?)"

# vLLM 0.3 to 0.33: fields came, went and changed their order, so each is looked up by its name. V0 has two
# KV lines (GPU, then CPU): the first counts. "External prefix cache hit rate" is another cache.
_VLLM_FIELD = re.compile(
    r"(Avg prompt throughput|Avg generation throughput|Running|Waiting|Pending|KV cache usage|Prefix cache hit rate)"
    rf": {_NUMBER}"
)
_VLLM_RANK = re.compile(r"\bEngine (\d{1,4}):")
_VLLM_DRAFT = re.compile(rf"(Mean acceptance length|Avg Draft acceptance rate): {_NUMBER}")

# SGLang 0.4 to 0.5.23; "full token usage" of hybrid models comes before their window's.
_SGLANG_FIELD = re.compile(
    r"(#running-req|#queue-req|#token|#new-token|#cached-token|token usage|accept len|accept rate"
    rf"|gen throughput \(token/s\)|input throughput \(token/s\)): {_NUMBER}"
)
_SGLANG_RANK = re.compile(r"^\[[\d: -]{19}((?: (?:DP|TP|PP|EP|CP)\d{1,4})+)\]")

_LLAMACPP_SLOT = re.compile(r"\bid +(\d{1,5}) \|")
_LLAMACPP_EVAL = re.compile(
    rf"(prompt )?eval time = +{_NUMBER} ms / +(\d{{1,12}}) (?:tokens|runs) .{{1,60}}?{_NUMBER} tokens per second"
)
_LLAMACPP_DRAFT = re.compile(rf"draft acceptance(?: rate)? = +{_NUMBER}(?: .{{0,60}}mean len = +{_NUMBER})?")

_TRTLLM_STEP = re.compile(rf"host_step_time = {_NUMBER}ms")
_TRTLLM_FIELD = re.compile(r"(num_scheduled_requests|'num_ctx_tokens'|'num_generation_tokens'): (\d{1,9})")
_TRTLLM_RANK = re.compile(r"\[RANK (\d{1,4})\]")


def read_throughput(line: str, number: int, at: float | None) -> ThroughputLine | None:
    """One cleaned line; None when it is no report."""
    if "Avg prompt throughput:" in line:
        return _vllm(line, number, at)
    if "SpecDecoding metrics:" in line:
        return _vllm_draft(line, number, at)
    if "Decode batch" in line or "Prefill batch" in line:
        return _sglang(line, number, at)
    if "num_scheduled_requests:" in line:
        return _trtllm(line, number, at)
    return _llamacpp(line, number, at)


def proves_progress(report: ThroughputLine) -> bool:
    """The report is of tokens made or prompts read."""
    return bool(report.generation_speed or report.prompt_speed or report.batch_tokens)


def _fields(pattern: re.Pattern[str], line: str) -> dict[str, float]:
    """Named numbers of the line; of one that occurs twice the first."""
    fields: dict[str, float] = {}
    for name, value in pattern.findall(line):
        fields.setdefault(name, float(value))
    return fields


def _share(percent: float | None) -> float | None:
    return None if percent is None else round(percent / 100, 6)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _vllm(line: str, number: int, at: float | None) -> ThroughputLine | None:
    fields = _fields(_VLLM_FIELD, line)
    if "Avg generation throughput" not in fields:
        return None
    rank = _VLLM_RANK.search(line)
    return ThroughputLine(
        line=number,
        rank=rank[1] if rank else "",
        at=at,
        prompt_speed=fields.get("Avg prompt throughput"),
        generation_speed=fields["Avg generation throughput"],
        running=_whole(fields.get("Running")),
        waiting=_whole(fields.get("Waiting", fields.get("Pending"))),
        kv_usage=_share(fields.get("KV cache usage")),
        hit_rate=_share(fields.get("Prefix cache hit rate")),
    )


def _vllm_draft(line: str, number: int, at: float | None) -> ThroughputLine | None:
    fields = _fields(_VLLM_DRAFT, line)
    length, rate = fields.get("Mean acceptance length"), _share(fields.get("Avg Draft acceptance rate"))
    return ThroughputLine(number, at=at, accept_length=length, accept_rate=rate) if fields else None


def _sglang(line: str, number: int, at: float | None) -> ThroughputLine | None:
    fields = _fields(_SGLANG_FIELD, line)
    if "#running-req" not in fields:
        return None
    rank = _SGLANG_RANK.match(line)
    new, cached = fields.get("#new-token"), fields.get("#cached-token")
    return ThroughputLine(
        line=number,
        rank=rank[1].strip() if rank else "",
        at=at,
        prompt_speed=fields.get("input throughput (token/s)"),
        generation_speed=fields.get("gen throughput (token/s)"),
        running=_whole(fields["#running-req"]),
        waiting=_whole(fields.get("#queue-req")),
        kv_usage=fields.get("token usage"),
        hit_rate=cached / (new + cached) if new is not None and cached is not None and new + cached else None,
        accept_length=fields.get("accept len"),
        accept_rate=fields.get("accept rate"),
        batch_tokens=_whole(fields.get("#token", new)),
    )


def _llamacpp(line: str, number: int, at: float | None) -> ThroughputLine | None:
    """Of one finished request, on its slot: speeds of different slots add up while they overlap."""
    slot = _LLAMACPP_SLOT.search(line)
    rank = f"slot {slot[1]}" if slot else ""
    if timing := _LLAMACPP_EVAL.search(line):
        prompt, milliseconds, tokens, speed = timing.groups()
        # One token takes no time between tokens: "0.00 tokens per second" is no speed.
        measured = float(speed) if float(milliseconds) > 0 else None
        if prompt:
            return ThroughputLine(number, rank, at, prompt_speed=measured, batch_tokens=int(tokens))
        return ThroughputLine(number, rank, at, generation_speed=measured, batch_tokens=int(tokens))
    if draft := _LLAMACPP_DRAFT.search(line):
        length = float(draft[2]) if draft[2] else None
        return ThroughputLine(number, rank, at, accept_rate=float(draft[1]), accept_length=length)
    return None


def _trtllm(line: str, number: int, at: float | None) -> ThroughputLine | None:
    """One iteration of the PyTorch backend (print_iter_log)."""
    fields, step = _fields(_TRTLLM_FIELD, line), _TRTLLM_STEP.search(line)
    if step is None or "num_scheduled_requests" not in fields:
        return None
    seconds = float(step[1]) / 1000
    rank = _TRTLLM_RANK.search(line)
    prompt, generated = fields.get("'num_ctx_tokens'"), fields.get("'num_generation_tokens'")
    return ThroughputLine(
        line=number,
        rank=rank[1] if rank else "",
        at=at,
        prompt_speed=prompt / seconds if prompt is not None and seconds else None,
        generation_speed=generated / seconds if generated is not None and seconds else None,
        running=_whole(fields["num_scheduled_requests"]),
    )
