"""The incidents of the lab and the replicas they act on, as data."""

from enum import StrEnum

import msgspec

from triage.domain.errors import TriageError
from triage.lab.engine import EngineSettings
from triage.lab.workload import Spread, Workload


class Flavour(StrEnum):
    """Which engine's page, version and answers a replica imitates."""

    VLLM = "vllm"
    SGLANG = "sglang"


class ReplicaSpec(msgspec.Struct, frozen=True):
    """One engine process. steady: its own workload, whatever the incident; None for those hit by it."""

    name: str
    flavour: Flavour
    model: str
    settings: EngineSettings
    steady: Workload | None = None


class Incident(msgspec.Struct, frozen=True):
    """A cause: what users send and how slow steps are. cause: the word for it in the field.

    slowness multiplies the duration of decode work (clocks throttled, a wrong kernel); prompts are
    read as fast as ever.
    """

    name: str
    title: str
    cause: str
    workload: Workload
    slowness: float = 1.0


_PROMPTS = Spread(median=420, sigma=0.5, low=32, high=1500)
_ANSWERS = Spread(median=150, sigma=0.5, low=16, high=600)

# 30 users against 32 sequences: whatever becomes slow, nobody has to wait for a slot.
_CHAT = Workload(users=30, think_s=10.0, prompt=_PROMPTS, visible=_ANSWERS)
_SMALL = Workload(
    users=10,
    think_s=8.0,
    prompt=Spread(median=250, sigma=0.4, low=32, high=1000),
    visible=Spread(median=60, sigma=0.5, low=8, high=300),
)

HEALTHY = Incident(name="healthy", title="moderate load, nothing wrong", cause="healthy", workload=_CHAT)

INCIDENTS = (
    HEALTHY,
    Incident(
        name="queueing",
        title="four times the users: the batch is full and requests wait for a slot",
        cause="queueing",
        # Little's law at 32 sequences of about 4.7 s: 6.8 requests/s, so of 124 users 32 run,
        # about 14 think and the other 78 wait, 11 s each.
        workload=Workload(users=124, think_s=2.0, prompt=_PROMPTS, visible=_ANSWERS),
    ),
    Incident(
        name="hidden-reasoning",
        title="thinking was switched on: nine tokens in ten are reasoning nobody sees",
        cause="hidden-reasoning",
        workload=Workload(
            users=30,
            think_s=10.0,
            prompt=_PROMPTS,
            visible=_ANSWERS,
            reasoning=Spread(median=1300, sigma=0.25, low=600, high=1800),
        ),
    ),
    Incident(
        name="slow-decode",
        title="every token takes nine times as long",
        cause="slow-decode",
        workload=_CHAT,
        slowness=9.0,
    ),
)

# A 32B model on one 80 GB device: about 25 ms a step, 33,000 prompt tokens/s, room for 131,072 tokens.
# A context of 4,096 keeps the token-count buckets those of the recordings (top edge 2,000).
_LARGE = EngineSettings(
    max_num_seqs=32,
    max_batched_tokens=2048,
    max_model_len=4096,
    block_size=16,
    num_blocks=8192,
    step_base_s=0.024,
    step_per_sequence_s=0.00005,
    prefill_per_token_s=0.00003,
)
_LARGE_PAGES_OF_ONE = msgspec.structs.replace(_LARGE, block_size=1, num_blocks=131_072)
_LITTLE = msgspec.structs.replace(_LARGE, step_base_s=0.012, prefill_per_token_s=0.00001)

REPLICAS = (
    ReplicaSpec("chat-a", Flavour.VLLM, "qwen3-32b", _LARGE),
    ReplicaSpec("chat-b", Flavour.VLLM, "qwen3-32b", _LARGE),
    ReplicaSpec("chat-c", Flavour.SGLANG, "qwen3-32b", _LARGE_PAGES_OF_ONE),
    ReplicaSpec("small-a", Flavour.VLLM, "qwen3-4b", _LITTLE, steady=_SMALL),
)


def incident_named(name: str) -> Incident:
    """The incident of that name. TriageError, naming the known ones, when there is none."""
    for incident in INCIDENTS:
        if incident.name == name:
            return incident
    known = ", ".join([incident.name for incident in INCIDENTS])
    raise TriageError("Unknown incident", f"the lab has no incident {name!r}", f"it has: {known}")
