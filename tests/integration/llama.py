"""A real llama.cpp server with a model of random weights: `python -m tests.integration.llama FOLDER`.

Two slots of 1,024 tokens. The model is written in a fraction of a second: two layers, one token a byte,
0.5 MB; what it says is noise, at about 1,000 tokens a second. Prints its URL when it listens.
"""

import signal
import sys
from pathlib import Path

SLOTS = 2
_CONTEXT = 2048
_WIDTH, _HEADS, _LAYERS, _INNER = 64, 4, 2, 128
# Token types of GGUF: normal 1, unknown 2, control 3, byte 6.
_VOCABULARY = [
    ("<unk>", 2),
    ("<s>", 3),
    ("</s>", 3),
    *[(f"<0x{byte:02X}>", 6) for byte in range(256)],
    ("\u2581", 1),
    *[(chr(code), 1) for code in range(33, 127)],
]
_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def write_model(path: Path) -> None:
    """A llama architecture in GGUF. The generator is seeded: every run has the same noise."""
    import gguf
    import numpy as np

    random = np.random.default_rng(7)

    def weights(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * 0.05).astype(np.float32)

    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("random")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(_VOCABULARY))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([word.encode() for word, _ in _VOCABULARY])
    writer.add_token_scores([0.0] * len(_VOCABULARY))
    writer.add_token_types([kind for _, kind in _VOCABULARY])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(_TEMPLATE)
    writer.add_tensor("token_embd.weight", weights(len(_VOCABULARY), _WIDTH))
    writer.add_tensor("output_norm.weight", np.ones(_WIDTH, np.float32))
    writer.add_tensor("output.weight", weights(len(_VOCABULARY), _WIDTH))
    for layer in range(_LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(_WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", weights(_WIDTH, _WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_gate.weight", weights(_INNER, _WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_up.weight", weights(_INNER, _WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_down.weight", weights(_WIDTH, _INNER))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(folder: Path) -> None:
    """Serve until the process is ended."""
    import xllamacpp

    model = folder / "random.gguf"
    write_model(model)
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel = SLOTS
    parameters.n_ctx = _CONTEXT
    parameters.endpoint_metrics = True
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    print("listening", server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
