"""The simulated engine: requests, paged KV cache, continuous batching in virtual time."""
