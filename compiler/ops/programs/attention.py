"""Attention: each query's mean of the values, weighted by how well their keys fit."""

from __future__ import annotations

import math

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import check_dtype, check_extents, check_flags, check_number
from compiler.ops.programs.normalization import softmax_of


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
        scale: What the products are multiplied by; one over the root of `d` unless it is given.

    Raises:
        OperatorError: If a number or the type is out of range.
    """
    operator = "attention"
    check_extents(operator, batch=batch, heads=heads, m=m, n=n, d=d)
    check_dtype(operator, dtype, needs_float=True)
    check_flags(operator, causal=causal)
    factor = 1 / math.sqrt(d) if scale is None else scale
    check_number(operator, scale=factor)
    q = te.placeholder((batch, heads, m, d), dtype, name="Q")
    k = te.placeholder((batch, heads, n, d), dtype, name="K")
    v = te.placeholder((batch, heads, n, d), dtype, name="V")
    r = te.reduce_axis((0, d), name="k")
    dims = (batch, heads, m, n)
    products = te.compute(
        dims, lambda b, h, i, j: te.sum(q[b, h, i, r] * k[b, h, j, r], axis=r), name="products"
    )

    def score(b: te.Value, h: te.Value, i: te.Value, j: te.Value) -> te.Value:
        scaled = products[b, h, i, j] * factor
        return te.if_then_else(j <= i, scaled, te.min_value(dtype)) if causal else scaled

    scores = te.compute(dims, score, name="scores")
    (weights,) = softmax_of(scores, dims, axis=3)
    s = te.reduce_axis((0, n), name="k")
    out = te.compute(
        (batch, heads, m, d),
        lambda b, h, i, c: te.sum(weights[b, h, i, s] * v[b, h, s, c], axis=s),
        name="out",
    )
    return build(operator, [q, k, v, out])
