"""Start-up limits of one engine."""

import msgspec


class EngineSettings(msgspec.Struct, frozen=True):
    """What an engine was started with. Sizes in tokens, times in seconds.

    max_batched_tokens: tokens that one step may compute; at least max_num_seqs × (1 + drafted tokens).
    num_blocks: of the KV cache. reserve: part of a request's max_tokens for which room must be free before it is
    admitted (SGLang's new-token ratio; 0 for vLLM, which takes blocks as they are needed).
    prefix_caching: computed prompts are kept. max_queued: requests beyond that many waiting are refused; 0: none are.
    frontend_s: from HTTP arrival to the engine's queue, and per prompt token on top (tokenising).
    noise: sigma of a step's log duration.
    """

    max_num_seqs: int
    max_batched_tokens: int
    max_model_len: int
    block_size: int
    num_blocks: int
    reserve: float = 0.0
    prefix_caching: bool = True
    max_queued: int = 0
    frontend_s: float = 0.004
    frontend_per_token_s: float = 2.0e-7
    noise: float = 0.04
