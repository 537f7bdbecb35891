"""Attention: for each query the mean of the values, weighted by how well their keys match."""

from __future__ import annotations

import math

from compiler import te
from compiler.ops.error import check_dtype, check_flags, check_number
from compiler.ops.tensors.epilogue import check_types, converted
from compiler.ops.tensors.normalization import converted_softmax
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of


def attention(
    q: te.Tensor,
    k: te.Tensor,
    v: te.Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
) -> te.Tensor:
    """Return `softmax(q @ k.T * scale) @ v` for each head.

    The softmax of narrow floats is computed in float32 and converted to their type, which is that
    of the operands of both products: units for products of narrow floats take no others.

    Args:
        q: The queries, `[batch, heads, m, d]`, the shape of the result.
        k: The keys, `[batch, heads, n, d]`.
        v: The values, `[batch, heads, n, d]`.
        causal: Whether query `i` sees only keys up to `i`.
        scale: The factor of the products; by default one over the root of `d`.

    Raises:
        OperatorError: If a shape, a type or a number does not fit.
    """
    operator = "attention"
    check_dtype(operator, q.dtype, needs_float=True)
    check_same_dtype(operator, q, k, v)
    check_flags(operator, causal=causal)
    batch, heads, m, d = dims_of(operator, q, 4)
    n = dims_of(operator, k, 4)[2]
    for operand in (k, v):
        check_dims(operator, operand, (batch, heads, n, d))
    factor = 1 / math.sqrt(d) if scale is None else scale
    check_number(operator, scale=factor)
    types = check_types(operator, q.dtype, None, None)
    r = te.reduce_axis((0, d), name="k")
    dims = (batch, heads, m, n)
    products = te.compute(
        dims,
        lambda b, h, i, j: te.sum(types.product(q[b, h, i, r], k[b, h, j, r]), axis=r),
        name="products",
    )

    def score(b: te.Value, h: te.Value, i: te.Value, j: te.Value) -> te.Value:
        scaled = products[b, h, i, j] * factor
        return te.if_then_else(j <= i, scaled, te.min_value(types.sum)) if causal else scaled

    weights = converted_softmax(te.compute(dims, score, name="scores"), 3, q.dtype)
    s = te.reduce_axis((0, n), name="k")
    out = te.compute(
        (batch, heads, m, d),
        lambda b, h, i, c: te.sum(types.product(weights[b, h, i, s], v[b, h, s, c]), axis=s),
        name="out",
    )
    return converted(out, types.result)
