"""Canonical quantities: what engines export, under one name and one unit each."""

from enum import StrEnum


class Form(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Quantity(StrEnum):
    """The name used in dialect tables, JSON and screens."""

    # gauges
    RUNNING = "running"  # requests in the batch
    WAITING = "waiting"  # requests in the engine's own queue
    WAITING_CAPACITY = "waiting_capacity"  # of these: for lack of room
    WAITING_DEFERRED = "waiting_deferred"  # of these: on purpose (adapter budget, KV transfer, grammar)
    GRAMMAR_QUEUE = "grammar_queue"
    HANDOFF_QUEUE = "handoff_queue"  # prefill/decode split: bootstrap, transfer and preallocation queues
    HANDOFF_SENDING = "handoff_sending"  # prefilled requests whose KV cache is on its way to a decode worker
    SWAPPED = "swapped"  # requests taken out of the batch for lack of KV room and not resumed yet
    PREFILLING = "prefilling"  # of the running requests: those in prefill
    GATEWAY_QUEUE = "gateway_queue"  # requests held in front of the engine's own queue: flow control, admission
    GATEWAY_SATURATION = "gateway_saturation"  # how full a gateway takes the engines behind it to be; 1 and more: full
    READY_ENDPOINTS = "ready_endpoints"  # engines that a front end may choose from
    POOL_WAITING = "pool_waiting"  # requests in the engines' own queues, as a front end last read them
    POOL_KV_USAGE = "pool_kv_usage"  # their mean KV use as it read it, 0..1: hides a single full one
    INFLIGHT = "inflight"  # a front end, or an engine's own HTTP layer: accepted and not finished, queued ones included
    QUEUED = "queued"  # a front end: waiting for the first response
    KV_USAGE = "kv_usage"  # 0..1
    KV_CAPACITY = "kv_capacity"  # tokens
    KV_BLOCKS = "kv_blocks"  # of KV_BLOCK_TOKENS tokens each
    KV_BLOCK_TOKENS = "kv_block_tokens"
    CONTEXT_LIMIT = "context_limit"  # tokens of one request, prompt and answer together
    HIT_RATE = "hit_rate"  # prefix cache, 0..1, as a gauge
    GENERATION_SPEED = "generation_speed"  # tokens/s, as the engine's own gauge
    ACCEPT_LENGTH = "accept_length"  # speculative decoding, tokens per step
    ACCEPT_RATE = "accept_rate"  # 0..1
    SEQUENCE_LIMIT = "sequence_limit"  # requests that may run at once, where exported
    AWAKE = "awake"  # 0 while the engine is put to sleep
    DEVICE_BUSY = "device_busy"  # share of time in which a forward pass ran on the device, 0..1
    PROCESS_START = "process_start"  # unix seconds
    ADAPTERS_RUNNING = "adapters_running"
    ADAPTERS_WAITING = "adapters_waiting"
    ADAPTER_SLOTS = "adapter_slots"
    # counters
    PREEMPTIONS = "preemptions"
    PROMPT_TOKENS = "prompt_tokens"
    PROMPT_TOKENS_COMPUTED = "prompt_tokens_computed"
    PROMPT_TOKENS_CACHED = "prompt_tokens_cached"
    GENERATION_TOKENS = "generation_tokens"
    GENERATION_TOKENS_LIVE = "generation_tokens_live"  # counted per step where the main one is counted at finish
    PREFIX_QUERIES = "prefix_queries"  # tokens
    PREFIX_HITS = "prefix_hits"  # tokens
    PREFIX_BLOCK_HITS = "prefix_block_hits"  # blocks found in the prefix cache
    PREFIX_BLOCK_MISSES = "prefix_block_misses"  # blocks that had to be computed
    DRAFTS = "drafts"
    DRAFT_TOKENS = "draft_tokens"
    ACCEPTED_TOKENS = "accepted_tokens"
    FINISHED = "finished"  # requests, every finish reason
    ABORTED = "aborted"
    FAILED = "failed"
    REJECTED = "rejected"
    HANDOFF_FAILED = "handoff_failed"  # transfers between prefill and decode that failed
    PICKER_ERRORS = "picker_errors"  # reads of engine metrics that failed at the front end, which then routes blindly
    HTTP_ANSWERED = "http_answered"  # 2xx
    HTTP_REFUSED = "http_refused"  # 4xx
    HTTP_FAILED = "http_failed"  # 5xx
    ENGINE_STEPS = "engine_steps"
    PROCESS_CPU = "process_cpu"  # seconds; a fresh page of a living process always shows more than the last one
    ENGINE_CPU = "engine_cpu"  # seconds of the process that makes the steps, told by another one; it never sleeps
    PROMPT_SECONDS = "prompt_seconds"
    GENERATION_SECONDS = "generation_seconds"
    READ_BYTES_PER_GPU = "read_bytes_per_gpu"
    WRITE_BYTES_PER_GPU = "write_bytes_per_gpu"
    FLOPS_PER_GPU = "flops_per_gpu"
    CORRUPTED = "corrupted"
    # histograms, seconds or tokens
    TTFT = "ttft"
    ITL = "itl"
    REQUEST_TPOT = "request_tpot"
    E2E = "e2e"
    QUEUE_TIME = "queue_time"
    PREFILL_TIME = "prefill_time"
    DECODE_TIME = "decode_time"
    INFERENCE_TIME = "inference_time"
    GATEWAY_QUEUE_TIME = "gateway_queue_time"  # in front of the engine's own queue
    KV_TRANSFER_TIME = "kv_transfer_time"  # prefill to decode
    PROMPT_LENGTH = "prompt_length"
    PROMPT_LENGTH_COMPUTED = "prompt_length_computed"
    OUTPUT_LENGTH = "output_length"


# Over ranks and processes of one target: counts add up, shares and levels take the fullest
# (metrics.md 12.7). Quantities not named here add up.
TAKE_MAXIMUM = frozenset(
    {
        Quantity.KV_USAGE,
        Quantity.AWAKE,
        Quantity.PROCESS_START,
        Quantity.HIT_RATE,
        Quantity.ACCEPT_LENGTH,
        Quantity.ACCEPT_RATE,
        Quantity.ADAPTER_SLOTS,
        Quantity.GATEWAY_SATURATION,
        Quantity.POOL_KV_USAGE,
        Quantity.KV_BLOCK_TOKENS,
        Quantity.CONTEXT_LIMIT,
        Quantity.DEVICE_BUSY,
    }
)

# Of an engine nobody misses these; some have a few of them all the same.
OF_FRONT_ENDS = frozenset(
    {
        Quantity.GATEWAY_QUEUE,
        Quantity.GATEWAY_SATURATION,
        Quantity.READY_ENDPOINTS,
        Quantity.POOL_WAITING,
        Quantity.POOL_KV_USAGE,
        Quantity.PICKER_ERRORS,
        Quantity.GATEWAY_QUEUE_TIME,
        Quantity.INFLIGHT,
        Quantity.QUEUED,
    }
)

# What stands for work done, in the order in which a person would believe it; of a histogram its count.
PROGRESS = (
    Quantity.ENGINE_STEPS,
    Quantity.GENERATION_TOKENS_LIVE,
    Quantity.GENERATION_TOKENS,
    Quantity.PROMPT_TOKENS_COMPUTED,
    Quantity.PROMPT_TOKENS,
    Quantity.ITL,
    Quantity.TTFT,
)

UNITS: dict[Quantity, str] = {
    Quantity.KV_USAGE: "share",
    Quantity.HIT_RATE: "share",
    Quantity.ACCEPT_RATE: "share",
    Quantity.GATEWAY_SATURATION: "share",
    Quantity.POOL_KV_USAGE: "share",
    Quantity.DEVICE_BUSY: "share",
    Quantity.KV_CAPACITY: "tokens",
    Quantity.KV_BLOCKS: "blocks",
    Quantity.KV_BLOCK_TOKENS: "tokens",
    Quantity.CONTEXT_LIMIT: "tokens",
    Quantity.GENERATION_SPEED: "tokens/s",
    Quantity.ACCEPT_LENGTH: "tokens/step",
    Quantity.TTFT: "s",
    Quantity.ITL: "s",
    Quantity.REQUEST_TPOT: "s",
    Quantity.E2E: "s",
    Quantity.QUEUE_TIME: "s",
    Quantity.PREFILL_TIME: "s",
    Quantity.DECODE_TIME: "s",
    Quantity.INFERENCE_TIME: "s",
    Quantity.GATEWAY_QUEUE_TIME: "s",
    Quantity.KV_TRANSFER_TIME: "s",
    Quantity.PROMPT_LENGTH: "tokens",
    Quantity.PROMPT_LENGTH_COMPUTED: "tokens",
    Quantity.OUTPUT_LENGTH: "tokens",
}

HISTOGRAMS = frozenset(
    {
        Quantity.TTFT,
        Quantity.ITL,
        Quantity.REQUEST_TPOT,
        Quantity.E2E,
        Quantity.QUEUE_TIME,
        Quantity.PREFILL_TIME,
        Quantity.DECODE_TIME,
        Quantity.INFERENCE_TIME,
        Quantity.GATEWAY_QUEUE_TIME,
        Quantity.KV_TRANSFER_TIME,
        Quantity.PROMPT_LENGTH,
        Quantity.PROMPT_LENGTH_COMPUTED,
        Quantity.OUTPUT_LENGTH,
    }
)

COUNTERS = frozenset(
    {
        Quantity.PREEMPTIONS,
        Quantity.PROMPT_TOKENS,
        Quantity.PROMPT_TOKENS_COMPUTED,
        Quantity.PROMPT_TOKENS_CACHED,
        Quantity.GENERATION_TOKENS,
        Quantity.GENERATION_TOKENS_LIVE,
        Quantity.PREFIX_QUERIES,
        Quantity.PREFIX_HITS,
        Quantity.PREFIX_BLOCK_HITS,
        Quantity.PREFIX_BLOCK_MISSES,
        Quantity.DRAFTS,
        Quantity.DRAFT_TOKENS,
        Quantity.ACCEPTED_TOKENS,
        Quantity.FINISHED,
        Quantity.ABORTED,
        Quantity.FAILED,
        Quantity.REJECTED,
        Quantity.HANDOFF_FAILED,
        Quantity.PICKER_ERRORS,
        Quantity.HTTP_ANSWERED,
        Quantity.HTTP_REFUSED,
        Quantity.HTTP_FAILED,
        Quantity.ENGINE_STEPS,
        Quantity.PROCESS_CPU,
        Quantity.ENGINE_CPU,
        Quantity.PROMPT_SECONDS,
        Quantity.GENERATION_SECONDS,
        Quantity.READ_BYTES_PER_GPU,
        Quantity.WRITE_BYTES_PER_GPU,
        Quantity.FLOPS_PER_GPU,
        Quantity.CORRUPTED,
    }
)


def form_of(quantity: Quantity) -> Form:
    """How a quantity behaves over time."""
    if quantity in HISTOGRAMS:
        return Form.HISTOGRAM
    return Form.COUNTER if quantity in COUNTERS else Form.GAUGE
