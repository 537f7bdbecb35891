"""Shapes of language models: generation, prompts, and encoders of text."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.model_shapes.layers import Layer, attention, decoder, encoder


def models() -> Iterator[tuple[str, Iterator[Layer]]]:
    """Yield the layers of each model."""
    yield "BERT-base", _bert(768, 12, 3072)
    yield "BERT-large", _bert(1024, 16, 4096)
    yield "MiniLM-L6", encoder(128, 384, 12, 1536)
    yield "MobileBERT", encoder(128, 128, 4, 512, activation="relu")
    yield "GPT-2", _gpt2(768, 12)
    yield "GPT-2 medium", _gpt2(1024, 16)
    yield "GPT-2 XL", _gpt2(1600, 25)
    yield "T5-small", _t5()
    # Width, heads of queries and of keys, hidden width of the gated layer, vocabulary.
    yield "TinyLlama-1.1B", _generation(2048, (32, 4), 5632, 32_000)
    yield "Llama-2-7B", _generation(4096, (32, 32), 11_008, 32_000)
    yield "Llama-3.2-1B", _generation(2048, (32, 8), 8192, 128_256)
    yield "Llama-3.2-3B", _generation(3072, (24, 8), 8192, 128_256)
    yield "Llama-3-8B", _generation(4096, (32, 8), 14_336, 128_256)
    yield "Qwen2.5-0.5B", _generation(896, (14, 2), 4864, 151_936)
    yield "Qwen2.5-1.5B", _generation(1536, (12, 2), 8960, 151_936)
    yield "Phi-3-mini", _generation(3072, (32, 32), 8192, 32_064)
    yield "SmolLM-135M", _generation(576, (9, 3), 1536, 49_152)


def _bert(width: int, heads: int, hidden: int) -> Iterator[Layer]:
    # A sentence, the longest sequence, and a sentence without padding.
    for tokens in (128, 512, 37):
        yield from encoder(tokens, width, heads, hidden)
    yield "pooler", f"dense:1,{width},{width},bias=True,activation=tanh"
    yield "classifier", f"dense:1,2,{width},bias=True"
    yield "vocabulary", f"dense:128,30522,{width},bias=True"


def _gpt2(width: int, heads: int) -> Iterator[Layer]:
    for tokens in (1, 64):
        yield f"{tokens}.qkv", f"matmul:{tokens},{3 * width},{width},bias=True"
        yield f"{tokens}.up", f"matmul:{tokens},{4 * width},{width},bias=True,activation=gelu"
        yield f"{tokens}.down", f"matmul:{tokens},{width},{4 * width},bias=True"
        yield f"{tokens}.norm", f"layer_norm:{tokens},{width}"
    yield "head", f"matmul:1,50257,{width}"
    yield "prefill.head", f"matmul:64,50257,{width}"
    yield "vocabulary.softmax", "softmax:64,50257"
    yield "next_token.softmax", "softmax:1,50257"
    yield "greedy", "argmax:1,50257,axis=1"
    yield "embedding", f"embedding:50257,{width},64"
    yield from attention("decode.attention", heads, 1, 1023, 64)
    yield from attention("prefill.attention", heads, 127, 127, 64, causal=True)


def _t5() -> Iterator[Layer]:
    yield from encoder(128, 512, 8, 2048, activation="relu")
    yield "norm", "rms_norm:128,512"
    yield "head", "matmul:1,32128,512"


def _generation(
    width: int, heads: tuple[int, int], hidden: int, vocabulary: int
) -> Iterator[Layer]:
    yield from decoder(1, 2048, width, heads, hidden, vocabulary)
    yield from decoder(1, 1001, width, heads, hidden, vocabulary)
    yield from decoder(129, 129, width, heads, hidden, vocabulary)
