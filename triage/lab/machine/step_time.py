"""How long one step of an engine takes: weights, KV cache, arithmetic, and the host around them."""

import msgspec

from triage.lab.machine.checkpoints import Checkpoint
from triage.lab.machine.devices import Device

# Parts of the data sheet's numbers that serving kernels reach. Assumed, not measured here; ratios between causes,
# which is what a diagnosis sees, hardly depend on them.
_BANDWIDTH_REACHED = 0.8
_ARITHMETIC_REACHED = 0.5
# Host work of a step: scheduling, launching graphs, sampling, detokenising; a base and a part for each sequence.
_HOST_BASE_S = 1.5e-3
_HOST_PER_SEQUENCE_S = 2.0e-5
# Two all-reduces a layer over NVLink, latency bound at decode sizes.
_ALL_REDUCE_S = 1.0e-5
# Of memory: what --gpu-memory-utilization gives the engine, and what graphs, activations and the runtime take of it.
_MEMORY_GIVEN = 0.9
_OVERHEAD_PER_DEVICE = 3.0e9
# Prompt tokens computed beside a drafted token cost as much as the target's own; the draft model adds this part of
# a step's weight reading for each drafted token (a draft head of a few per cent of the parameters).
_DRAFT_COST = 0.04


class Machine(msgspec.Struct, frozen=True):
    """So many devices with one checkpoint on them, and its condition. Conditions are 1.0 when all is well.

    compute, bandwidth: parts of the devices' speed that are left. host: part of the CPU time that the engine gets.
    acceptance: probability that a drafted token is accepted. spare: bytes per device that something else took.
    """

    device: Device
    count: int
    checkpoint: Checkpoint
    compute: float = 1.0
    bandwidth: float = 1.0
    host: float = 1.0
    acceptance: float = 0.8
    drafted: int = 0
    taken: float = 0.0

    @property
    def kv_tokens(self) -> int:
        """Tokens whose KV fits beside weights and overhead."""
        room = (self.device.memory * _MEMORY_GIVEN - _OVERHEAD_PER_DEVICE - self.taken) * self.count
        return int((room - self.checkpoint.size) / self.checkpoint.kv_bytes_per_token)

    @property
    def tokens_per_step(self) -> float:
        """Expected tokens that a step brings to a sequence: 1 + a + a² + … for so many drafted tokens."""
        a, d = self.acceptance, self.drafted
        return float(d + 1) if a >= 1.0 else (1.0 - a ** (d + 1)) / (1.0 - a)

    def costs(self) -> "StepCosts":
        """Worked out once for a machine in one condition."""
        device, checkpoint = self.device, self.checkpoint
        read = device.bandwidth * self.count * _BANDWIDTH_REACHED * self.bandwidth
        peak = device.flops_8bit if checkpoint.weight_bytes <= 1.0 else device.flops_16bit
        work = peak * self.count * _ARITHMETIC_REACHED * self.compute
        reductions = 2 * checkpoint.layers * _ALL_REDUCE_S if self.count > 1 else 0.0
        return StepCosts(
            checkpoint=checkpoint,
            base_s=_HOST_BASE_S / self.host + reductions,
            sequence_s=_HOST_PER_SEQUENCE_S / self.host,
            parameter_s=checkpoint.weight_bytes / read,
            context_s=checkpoint.kv_bytes_per_token / read,
            token_s=2.0 * checkpoint.active_parameters / work,
            pair_s=4.0 * checkpoint.layers * checkpoint.heads * checkpoint.head_dim / work,
            drafted=self.drafted,
        )


class StepCosts(msgspec.Struct, frozen=True):
    """Seconds: of a step at all, and per sequence, parameter read, context token read, token and token pair computed.

    A step reads the weights it touches and the KV of its context, and computes its tokens: whichever takes longer
    bounds it. Attention over a prompt costs a pair for each token and each token before it.
    """

    checkpoint: Checkpoint
    base_s: float
    sequence_s: float
    parameter_s: float
    context_s: float
    token_s: float
    pair_s: float
    drafted: int

    def reading_s(self, tokens: float) -> float:
        """Reading the weights that so many tokens touch; drafting included."""
        once = self.parameter_s * self.checkpoint.touched_parameters(tokens)
        return once * (1.0 + _DRAFT_COST * self.drafted)

    def step_s(self, decoding: int, context: float, chunk: int, pairs: float) -> float:
        """One step. decoding: sequences; context: tokens of theirs; chunk: prompt tokens; pairs: of them."""
        tokens = decoding * (1 + self.drafted) + chunk
        memory = self.reading_s(tokens) + self.context_s * context
        arithmetic = self.token_s * tokens + self.pair_s * (pairs + context)
        return self.base_s + self.sequence_s * decoding + max(memory, arithmetic)

    def floor_s(self, decoding: int, context: float) -> float:
        """No step of so many sequences can be shorter: what it must read, at the speed that is left."""
        return self.parameter_s * self.checkpoint.touched_parameters(decoding) + self.context_s * context
