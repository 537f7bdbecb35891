"""The layers that models share, each as a name and an operator's specification."""

from __future__ import annotations

from collections.abc import Iterator

Layer = tuple[str, str]
"""The name of a layer, and its operator as `lw.ops.from_spec` reads it."""


def attention(  # noqa: PLR0917
    name: str,
    heads: int,
    queries: int,
    keys: int,
    depth: int,
    kv_heads: int | None = None,
    *,
    causal: bool = False,
) -> Iterator[Layer]:
    """Yield an attention, and its products and its softmax as operators of their own.

    Args:
        kv_heads: The heads of keys and values, if groups of heads share them.
    """
    option = ",causal=True" if causal else ""
    if kv_heads in (None, heads):
        yield name, f"attention:1,{heads},{queries},{keys},{depth}{option}"
    else:
        sizes = f"{heads},{kv_heads},{queries},{keys},{depth}"
        yield name, f"grouped_query_attention:1,{sizes}{option}"
    yield (
        f"{name}.scores",
        f"batch_matmul:{heads},{queries},{keys},{depth},transpose_b=True",
    )
    yield f"{name}.softmax", f"softmax:{heads * queries},{keys}"
    yield f"{name}.output", f"batch_matmul:{heads},{queries},{depth},{keys}"


def encoder(
    tokens: int, width: int, heads: int, hidden: int, *, activation: str = "gelu"
) -> Iterator[Layer]:
    """Yield the layers of a transformer block over all tokens of a sequence."""
    yield "projection", f"dense:{tokens},{width},{width},bias=True"
    yield "mlp.up", f"dense:{tokens},{hidden},{width},bias=True,activation={activation}"
    yield "mlp.down", f"dense:{tokens},{width},{hidden},bias=True"
    yield "norm", f"layer_norm:{tokens},{width}"
    yield from attention("attention", heads, tokens, tokens, width // heads)


def decoder(  # noqa: PLR0917
    tokens: int,
    positions: int,
    width: int,
    heads: tuple[int, int],
    hidden: int,
    vocabulary: int,
) -> Iterator[Layer]:
    """Yield the layers of a language model with gated layers and RMS norms.

    Args:
        tokens: The tokens that are computed at once: 1 while text is generated.
        positions: The positions that they attend to.
        heads: The heads of queries, and those of keys and values.
    """
    depth = max(64, width // heads[0])
    stage = "decode" if tokens == 1 else "prefill"
    yield f"{stage}.query", f"matmul:{tokens},{heads[0] * depth},{width}"
    yield f"{stage}.key", f"matmul:{tokens},{heads[1] * depth},{width}"
    yield f"{stage}.gate", f"dense:{tokens},{hidden},{width},activation=silu"
    yield f"{stage}.down", f"dense:{tokens},{width},{hidden}"
    yield f"{stage}.norm", f"rms_norm:{tokens},{width}"
    yield f"{stage}.head", f"matmul:1,{vocabulary},{width}"
    yield from attention(
        f"{stage}.attention", heads[0], tokens, positions, depth, heads[1], causal=tokens > 1
    )


def convolution(  # noqa: PLR0917
    name: str, channels: int, size: int, filters: int, kernel: int, stride: int = 1
) -> Layer:
    """Return a convolution that keeps the size of its image, divided by the stride."""
    padding = kernel // 2
    return name, f"conv2d:1,{channels},{size},{size},{filters},{kernel},{stride},{padding}"


def depthwise(name: str, channels: int, size: int, kernel: int, stride: int = 1) -> Layer:
    """Return a depthwise convolution that keeps the size of its image, divided by the stride."""
    return name, f"depthwise_conv2d:1,{channels},{size},{size},{kernel},{stride},{kernel // 2}"


def inverted_residual(  # noqa: PLR0917
    name: str, channels: int, size: int, hidden: int, filters: int, kernel: int, stride: int = 1
) -> Iterator[Layer]:
    """Yield the three convolutions of a mobile network's block."""
    if hidden != channels:
        yield convolution(f"{name}.expand", channels, size, hidden, 1)
    yield depthwise(f"{name}.depthwise", hidden, size, kernel, stride)
    yield convolution(f"{name}.project", hidden, -(-size // stride), filters, 1)
