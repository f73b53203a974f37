"""Checkpoints of the simulated fleet: the sizes that decide how fast they are, from their published configurations."""

import msgspec


class Checkpoint(msgspec.Struct, frozen=True):
    """A model's weights as they lie on the devices.

    parameters, active_parameters: in all, and touched by one token. weight_bytes: bytes per parameter.
    kv_value_bytes: bytes per cached value. experts, experts_active: of a mixture; 1 and 1 for a dense model.
    """

    name: str
    parameters: float
    active_parameters: float
    weight_bytes: float
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
    kv_value_bytes: float = 2.0
    experts: int = 1
    experts_active: int = 1

    @property
    def kv_bytes_per_token(self) -> float:
        """2 × layers × KV heads × head dimension × bytes per value."""
        return 2.0 * self.layers * self.kv_heads * self.head_dim * self.kv_value_bytes

    @property
    def size(self) -> float:
        """Bytes of all weights."""
        return self.parameters * self.weight_bytes

    def touched_parameters(self, tokens: float) -> float:
        """Parameters that a step of so many tokens reads: of a mixture's experts those that some token was sent to.

        Routing taken as uniform: an expert stays untouched by t tokens with probability (1 − k/E)^t.
        """
        if self.experts == 1:
            return self.parameters
        routed_share = self.experts_active / self.experts
        # All of an expert's parameters: active = shared + routed × k/E, parameters = shared + routed.
        routed = (self.parameters - self.active_parameters) / (1.0 - routed_share)
        shared = self.parameters - routed
        return float(shared + routed * (1.0 - (1.0 - routed_share) ** tokens))


# config.json of meta-llama/Llama-3.1-8B-Instruct; BF16.
LLAMA_8B = Checkpoint("llama-3.1-8b", 8.03e9, 8.03e9, 2.0, 32, 32, 8, 128, 131_072)

# config.json of meta-llama/Llama-3.1-70B-Instruct; BF16.
LLAMA_70B = Checkpoint("llama-3.1-70b", 70.6e9, 70.6e9, 2.0, 80, 64, 8, 128, 131_072)

# config.json of Qwen/Qwen3-30B-A3B-Instruct-2507-FP8: 128 experts, 8 of them for each token.
QWEN3_30B_A3B = Checkpoint("qwen3-30b-a3b", 30.5e9, 3.3e9, 1.0, 48, 32, 4, 128, 262_144, experts=128, experts_active=8)

# config.json of Qwen/Qwen3-8B; BF16.
QWEN3_8B = Checkpoint("qwen3-8b", 8.19e9, 8.19e9, 2.0, 36, 32, 8, 128, 40_960)
