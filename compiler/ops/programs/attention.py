"""Attention: for each query the mean of the values, weighted by how well their keys match."""

from __future__ import annotations

from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import check_extents, check_flags
from compiler.ops.operator import operator
from compiler.ops.recognizers import rows as recognizers
from compiler.ops.references import normalization as references
from compiler.ops.tensors import scaled_dot_product as tensors


@operator(tensors.attention, reference=references.attention, recognize=recognizers.attentions)
def attention(  # noqa: PLR0917
    batch: int,
    heads: int,
    m: int,
    n: int,
    d: int,
    dtype: DType = "float32",
    *,
    causal: bool = False,
    scale: float | None = None,
) -> PrimFunc:
    """`out = softmax(Q @ K.T * scale) @ V` for each head: scaled dot-product attention.

    Args:
        batch: The batch size.
        heads: The number of heads.
        m: The number of queries; `Q` and `out` are `[batch, heads, m, d]`.
        n: The number of keys; `K` and `V` are `[batch, heads, n, d]`.
        d: The width of a head.
        dtype: The type of all tensors.
        causal: Whether query `i` sees only keys up to `i`.
        scale: The factor of the products; by default one over the root of `d`.

    Raises:
        OperatorError: If a number or the type is out of range.
    """
    check_extents("attention", batch=batch, heads=heads, m=m, n=n, d=d)
    inputs = [
        operand((batch, heads, length, d), dtype, name)
        for length, name in ((m, "Q"), (n, "K"), (n, "V"))
    ]
    return build("attention", inputs, tensors.attention(*inputs, causal=causal, scale=scale))


@operator(
    tensors.grouped_query_attention,
    reference=references.grouped_query_attention,
    recognize=recognizers.attentions,
)
def grouped_query_attention(  # noqa: PLR0917
    batch: int,
    heads: int,
    kv_heads: int,
    m: int,
    n: int,
    d: int,
    dtype: DType = "float32",
    *,
    causal: bool = False,
    past: int = 0,
    mask: bool = False,
    lengths: bool = False,
    scale: float | None = None,
) -> PrimFunc:
    """`attention` with fewer heads of keys and values, which groups of neighbouring heads share.

    With one query, a cache of `n` keys and values, and `causal=True, past=n - 1`, this is a step of
    decoding.

    Args:
        batch: The batch size.
        heads: The number of heads of queries, a multiple of `kv_heads`.
        kv_heads: The number of heads of keys and values.
        m: The number of queries; `Q` and `out` are `[batch, heads, m, d]`.
        n: The number of keys; `K` and `V` are `[batch, kv_heads, n, d]`.
        d: The width of a head.
        dtype: The type of all tensors.
        causal: Whether query `i` sees only keys up to `i + past`.
        past: The number of keys before the one of the first query.
        mask: Whether `mask[batch, 1, m, n]` is added to the scores.
        lengths: Whether only the first `lengths[batch]` keys count, at least one; the others are
            padding, whose values have to be finite.
        scale: The factor of the products; by default one over the root of `d`.

    Raises:
        OperatorError: If a number or the type is out of range.
    """
    name = "grouped_query_attention"
    check_extents(name, batch=batch, heads=heads, kv_heads=kv_heads, m=m, n=n, d=d)
    check_flags(name, mask=mask, lengths=lengths)
    q = operand((batch, heads, m, d), dtype, "Q")
    k, v = (operand((batch, kv_heads, n, d), dtype, key) for key in ("K", "V"))
    bias = operand((batch, 1, m, n), dtype, "mask") if mask else None
    ends = operand((batch,), "int32", "lengths") if lengths else None
    out = tensors.grouped_query_attention(
        q, k, v, bias, ends, causal=causal, past=past, scale=scale
    )
    return build(name, [q, k, v, *(x for x in (bias, ends) if x is not None)], out)
