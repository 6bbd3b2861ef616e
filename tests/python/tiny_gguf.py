"""A random Llama of two layers in the format of llama.cpp (GGUF 3), written without its package."""

import array
import random
import struct

WORDS, WIDTH, INNER, LAYERS, HEADS, KEY_HEADS = 512, 64, 128, 2, 4, 2
_U32, _F32, _STRING, _ARRAY, _I32 = 4, 6, 8, 9, 5


def _text(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _array(kind, items):
    return _ARRAY, struct.pack("<IQ", kind, len(items)) + b"".join(items)


def write_model(path):
    rng = random.Random(1)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    kinds = [2, 3, 3] + [6] * 256
    tokens += [f"\u2581w{i}" for i in range(WORDS - len(tokens))]
    kinds += [1] * (WORDS - len(kinds))
    number = {name: (_U32, struct.pack("<I", value)) for name, value in {
        "llama.context_length": 2048, "llama.embedding_length": WIDTH, "llama.block_count": LAYERS,
        "llama.feed_forward_length": INNER, "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KEY_HEADS, "llama.rope.dimension_count": WIDTH // HEADS,
        "llama.vocab_size": WORDS, "general.file_type": 0, "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0}.items()}
    fields = {"general.architecture": (_STRING, _text("llama")), "general.name": (_STRING, _text("tiny")), **number,
              "llama.attention.layer_norm_rms_epsilon": (_F32, struct.pack("<f", 1e-5)),
              "tokenizer.ggml.model": (_STRING, _text("llama")),
              "tokenizer.ggml.tokens": _array(_STRING, [_text(t) for t in tokens]),
              "tokenizer.ggml.scores": _array(_F32, [struct.pack("<f", -i) for i in range(WORDS)]),
              "tokenizer.ggml.token_type": _array(_I32, [struct.pack("<i", k) for k in kinds])}
    shapes = {"token_embd": (WIDTH, WORDS), "output": (WIDTH, WORDS), "output_norm": (WIDTH,)}
    keys = WIDTH * KEY_HEADS // HEADS
    for i in range(LAYERS):
        shapes.update({f"blk.{i}.{name}": shape for name, shape in {
            "attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH, keys),
            "attn_v": (WIDTH, keys), "attn_output": (WIDTH, WIDTH), "ffn_gate": (WIDTH, INNER), "ffn_up": (WIDTH, INNER),
            "ffn_down": (INNER, WIDTH)}.items()})
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(fields))
    head += b"".join(_text(name) + struct.pack("<I", kind) + value for name, (kind, value) in fields.items())
    data = b""
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        head += _text(name + ".weight") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        values = [1.0] * count if len(shape) == 1 else [rng.gauss(0, 0.1) for _ in range(count)]
        data += array.array("f", values).tobytes() + bytes(-4 * count % 32)
    path.write_bytes(head + bytes(-len(head) % 32) + data)
