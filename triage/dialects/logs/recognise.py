"""Whose log a text is, judged by what its lines look like."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from triage.dialects.logs.usage import reuse_of
from triage.domain.logs import LogKind
from triage.domain.text import clean

# The head and the tail are looked at: start lines and what is going on now.
_SAMPLE_CHARS = 48 * 1024
_SAMPLE_LINES = 300
_LONGEST_LINE = 4096

# Container runtimes, compose and journald put something before a line.
_PREFIX = re.compile(
    r"^(?:[\w.-]{1,60} +\| |\[pod/\S{1,200}\] |\w{3} +\d{1,2} \d\d:\d\d:\d\d \S{1,80} \S{1,60}\[\d+\]: )?"
    r"(?:\d{4}-\d\d-\d\dT[\d:.]{8,20}Z (?:std(?:out|err) [FP] )?)?"
)
_METHOD = r"(?:GET|POST|PUT|HEAD|DELETE|OPTIONS|PATCH)"

# First match wins; sources: gateways.md, recordings, cases.
_SHAPES: tuple[tuple[re.Pattern[str], LogKind, str], ...] = tuple(
    (re.compile(pattern), kind, name)
    for pattern, kind, name in (
        (r"\bhaproxy\[\d+\]: ", LogKind.ACCESS, "haproxy"),
        (rf'^\[\d{{4}}-\d\d-\d\dT[^\]]{{8,20}}\] "{_METHOD} ', LogKind.ACCESS, "envoy"),
        (r"^(?:h2|https?|wss?|grpcs?) \d{4}-\d\d-\d\dT\S+ app/", LogKind.ACCESS, "load balancer"),
        (r"^\S+ \S+ \S+ \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] ", LogKind.ACCESS, "nginx"),
        (r"\brequest method=\S+ path=\S+ .{0,300}\bstatus=\d{3}\b", LogKind.ACCESS, ""),
        (r"\bkernel: |\bNVRM: |^\[ *\d+\.\d{6}\] ", LogKind.KERNEL, ""),
        (r"\bDCGM|\bDCP metrics|dcgm[-_]exporter|Failed to collect metrics", LogKind.EXPORTER, ""),
        (r"\[TRT-LLM\]|\[TensorRT-LLM\]", LogKind.ENGINE, "tensorrt-llm"),
        (r"\bdynamo_\w+::|\bdynamo\.\w+\.", LogKind.ENGINE, "dynamo"),
        (r"^\[GIN\] |\blevel=\w+ source=\w+\.go:\d+", LogKind.ENGINE, "ollama"),
        (r"\btext_generation_(?:launcher|router)", LogKind.ENGINE, "tgi"),
        (r"\b(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w/]+\.py:\d+\]", LogKind.ENGINE, "vllm"),
        (r"^\((?:APIServer|ApiServer|EngineCore|Worker|VllmWorker)[^)]{0,40} pid=\d+\) ", LogKind.ENGINE, "vllm"),
        (r"\(raylet\)|\bServeController\b|\bserve \d+ -- ", LogKind.ENGINE, "ray"),
        (r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]{2}\d+)*\] ", LogKind.ENGINE, "sglang"),
        (r"^(?:[\d.]{5,24} [A-Z] )?(?:srv|slot|cmn|que|res|spec) +\S{1,20}: ", LogKind.ENGINE, "llama.cpp"),
        (r"^(?:llama_\w+|load_tensors|ggml_\w+|print_info|main|common_\w+): ", LogKind.ENGINE, "llama.cpp"),
        (r"^Capturing CUDA graphs? \(", LogKind.ENGINE, "vllm"),
        (rf'^(?:INFO: +)?\S+:\d+ - "{_METHOD} [^"]{{1,2000}} HTTP/\d', LogKind.ENGINE, ""),
    )
)  # fmt: skip
# Keys that only a record of a finished request has.
_STATUS_KEYS = frozenset(
    {"response_code", "status", "status_code", "client_status", "upstream_status", "response_flags", "term_state"}
)
_GATEWAY_KEYS = {
    "response_flags": "envoy",
    "request_completion": "nginx",
    "term_state": "haproxy",
    "x-litellm-call-id": "litellm",
}


def recognise(text: str) -> tuple[LogKind, str]:
    """Kind and software ("" when not known). Most lines decide; an engine is named by any line that names one."""
    kinds: Counter[LogKind] = Counter()
    names: Counter[tuple[LogKind, str]] = Counter()
    for line in _sample(text):
        kind, name = _shape(line)
        if kind is not LogKind.UNKNOWN:
            kinds[kind] += 1
            names[kind, name] += bool(name)
    if not kinds:
        return LogKind.UNKNOWN, ""
    kind = max(kinds, key=lambda k: (kinds[k], k is LogKind.ENGINE))
    known = {name: count for (k, name), count in names.items() if k is kind and name}
    return kind, max(known, key=lambda name: (known[name], name), default="")


def _sample(text: str) -> list[str]:
    head = text[:_SAMPLE_CHARS].split("\n")[:_SAMPLE_LINES]
    tail = text[-_SAMPLE_CHARS:].split("\n")[-_SAMPLE_LINES:] if len(text) > _SAMPLE_CHARS else []
    return [clean(line, _LONGEST_LINE) for line in (*head, *tail) if line and not line.isspace()]


def _shape(line: str) -> tuple[LogKind, str]:
    if line.startswith("{"):
        return _json_shape(line)
    bare = line[_PREFIX.match(line).end() :]  # type: ignore[union-attr]  # every part is optional: it always matches
    for pattern, kind, name in _SHAPES:
        if pattern.search(line) or pattern.search(bare):
            return kind, name
    return LogKind.UNKNOWN, ""


def _json_shape(line: str) -> tuple[LogKind, str]:
    try:
        record: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return LogKind.UNKNOWN, ""
    if not isinstance(record, Mapping):
        return LogKind.UNKNOWN, ""
    inner = record.get("log")
    if isinstance(inner, str) and "stream" in record:  # Docker's json-file driver
        return _shape(clean(inner.rstrip("\n"), _LONGEST_LINE).lstrip("{"))
    if "level" in record and "message" in record and ("span_name" in record or "target" in record):
        return LogKind.ENGINE, "dynamo"
    counts = {"prompt_tokens", "completion_tokens"} <= record.keys() or reuse_of(record) is not None
    if record.keys() & _STATUS_KEYS or counts:
        return LogKind.ACCESS, next((name for key, name in _GATEWAY_KEYS.items() if key in record), "")
    return LogKind.UNKNOWN, ""
