"""The fleets of the lab: which models run on what, and who uses them."""

import msgspec

from triage.lab.batching.settings import EngineSettings
from triage.lab.load.shapes import AGENTS, BATCH, CHAT
from triage.lab.machine.checkpoints import LLAMA_8B, LLAMA_70B, QWEN3_8B, QWEN3_30B_A3B
from triage.lab.machine.devices import H100_SXM, L40S
from triage.lab.machine.step_time import Machine
from triage.lab.pages.forms import Flavour, StartTimes
from triage.lab.world.hop import Balance, Hop
from triage.lab.world.spec import ReplicaSpec, ServiceSpec

# SGLang holds back room for a part of what a request may still generate (its new-token ratio settles about there).
_RESERVED = 0.3


class Workload(msgspec.Struct, frozen=True):
    """One kind of use with a fleet that is large enough for it, and what its users call slow (seconds).

    first_visible_p95_s, time_per_token_mean_s: as an operator of this service would declare them.
    """

    name: str
    title: str
    services: tuple[ServiceSpec, ...]
    first_visible_p95_s: float
    time_per_token_mean_s: float


def _settings(machine: Machine, seqs: int, batched: int, context: int, flavour: Flavour) -> EngineSettings:
    block = 16 if flavour is Flavour.VLLM else 1
    return EngineSettings(
        max_num_seqs=seqs,
        max_batched_tokens=batched,
        max_model_len=context,
        block_size=block,
        num_blocks=machine.kv_tokens // block,
        reserve=_RESERVED if flavour is Flavour.SGLANG else 0.0,
    )


def _replica(name: str, flavour: Flavour, machine: Machine, seqs: int, batched: int, context: int) -> ReplicaSpec:
    return ReplicaSpec(name, flavour, machine, _settings(machine, seqs, batched, context, flavour), _start(machine))


def _start(machine: Machine) -> StartTimes:
    """Weights come at about 2 GB/s from a local disk, whatever the number of devices."""
    return StartTimes(weights=5.0 + machine.checkpoint.size / 2.0e9)


_SMALL = Machine(L40S, 1, LLAMA_8B)
_SMALL_DRAFTING = Machine(L40S, 1, LLAMA_8B, drafted=2)
_LARGE = Machine(H100_SXM, 4, LLAMA_70B, drafted=3)
_EXPERTS = Machine(H100_SXM, 1, QWEN3_30B_A3B)

# Two thirds of the sequences that may run do run: what becomes slow, does so before anybody waits for a slot.
_CHAT_SERVICE = ServiceSpec(
    model=LLAMA_8B.name,
    replicas=(
        _replica("chat-a", Flavour.VLLM, _SMALL_DRAFTING, 16, 4096, 16_384),
        _replica("chat-b", Flavour.VLLM, _SMALL_DRAFTING, 16, 4096, 16_384),
        _replica("chat-c", Flavour.SGLANG, _SMALL, 16, 4096, 16_384),
    ),
    shape=CHAT,
    users=150,
    context=16_384,
)
_AGENTS_SERVICE = ServiceSpec(
    model=QWEN3_30B_A3B.name,
    replicas=tuple(_replica(f"agents-{name}", Flavour.VLLM, _EXPERTS, 32, 8192, 200_000) for name in "abc"),
    shape=AGENTS,
    users=10,
    hop=Hop(balance=Balance.SESSION),
    context=200_000,
)
_BATCH_SERVICE = ServiceSpec(
    model=LLAMA_70B.name,
    replicas=(
        _replica("batch-a", Flavour.VLLM, _LARGE, 96, 8192, 32_768),
        _replica("batch-b", Flavour.SGLANG, Machine(H100_SXM, 4, LLAMA_70B), 96, 8192, 32_768),
    ),
    shape=BATCH,
    users=36,
    context=32_768,
)

# A second model beside the one that comes to harm: what is wrong with one must not be said of the other.
COMPANION = ServiceSpec(
    model=QWEN3_8B.name,
    replicas=(_replica("side-a", Flavour.SGLANG, Machine(L40S, 1, QWEN3_8B), 32, 8192, 16_384),),
    shape=CHAT,
    users=12,
    context=16_384,
)

WORKLOADS = (
    Workload("chat", "people at a chat window, an 8B on three 48 GB cards", (_CHAT_SERVICE,), 3.0, 0.1),
    # Agents think for over a minute before the first visible token: that is their normal.
    Workload("agents", "coding agents, a 30B mixture of experts on three 80 GB cards", (_AGENTS_SERVICE,), 120.0, 0.1),
    Workload("batch", "a job over documents, a 70B on twice four 80 GB cards", (_BATCH_SERVICE,), 30.0, 0.1),
)


def workload_named(name: str) -> Workload:
    """KeyError when there is none of that name."""
    return {one.name: one for one in WORKLOADS}[name]
