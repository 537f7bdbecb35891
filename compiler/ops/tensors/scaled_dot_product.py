"""Attention: for each query the mean of the values, weighted by how well their keys match."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from compiler import te
from compiler.ops.error import OperatorError, check_dtype, check_flags, check_number, check_range
from compiler.ops.tensors.epilogue import Types, check_types, converted
from compiler.ops.tensors.join_axes import join_axes
from compiler.ops.tensors.lengths import check_lengths, is_within
from compiler.ops.tensors.normalization import converted_softmax
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of

Element: TypeAlias = Callable[..., te.Value]
"""Takes the indices of a row of scores, then others, and returns an element."""


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
    check_flags(operator, causal=causal)
    types, factor = _checked(operator, scale, q, k, v)
    batch, heads, m, d = dims_of(operator, q, 4)
    n = dims_of(operator, k, 4)[2]
    for operand in (k, v):
        check_dims(operator, operand, (batch, heads, n, d))

    def score(product: te.Value, *index: te.Value) -> te.Value:
        scaled, (*_, i, j) = product * factor, index
        return te.if_then_else(j <= i, scaled, te.min_value(types.sum)) if causal else scaled

    out = _means(
        types,
        {"b": batch, "h": heads, "i": m},
        (n, d),
        lambda b, h, i, r: q[b, h, i, r],
        lambda b, h, _, j, r: k[b, h, j, r],
        lambda b, h, _, j, c: v[b, h, j, c],
        score,
        "out",
    )
    return converted(out, types.result)


def grouped_query_attention(
    q: te.Tensor,
    k: te.Tensor,
    v: te.Tensor,
    mask: te.Tensor | None = None,
    lengths: te.Tensor | None = None,
    *,
    causal: bool = False,
    past: int = 0,
    scale: float | None = None,
) -> te.Tensor:
    """Return `attention` whose heads share keys and values in groups.

    Args:
        q: The queries, `[batch, heads, m, d]`, the shape of the result.
        k: The keys, `[batch, kv_heads, n, d]`: head `h` reads those of head `h // (heads /
            kv_heads)`.
        v: The values, of the same shape.
        mask: `[batch, 1, m, n]`, added to the scores of all heads.
        lengths: `[batch]`, the numbers of keys that count; the later ones are padding. A length
            below 1 counts as 1. Values of the padding have weight 0, so they have to be finite.
        causal: Whether query `i` sees only keys up to `i + past`.
        past: The number of keys before the one of the first query, such as those of a cache.
        scale: The factor of the products; by default one over the root of `d`.

    Raises:
        OperatorError: If a shape, a type or a number does not fit.
    """
    operator = "grouped_query_attention"
    check_flags(operator, causal=causal)
    check_range(operator, 0, past=past)
    types, factor = _checked(operator, scale, q, k, v, *([] if mask is None else [mask]))
    batch, heads, m, d = dims_of(operator, q, 4)
    _, kv_heads, n, _ = dims_of(operator, k, 4)
    for operand in (k, v):
        check_dims(operator, operand, (batch, kv_heads, n, d))
    if mask is not None:
        check_dims(operator, mask, (batch, 1, m, n))
    if lengths is not None:
        check_lengths(operator, lengths, batch)
    if heads % kv_heads:
        raise OperatorError(
            f"{operator}: {kv_heads} heads of keys do not divide {heads} heads of queries"
        )
    size = heads // kv_heads

    def score(product: te.Value, *index: te.Value) -> te.Value:
        b, *_, i, j = index
        scaled = product * factor
        if mask is not None:
            scaled = scaled + mask[b, 0, i, j].astype(types.sum)
        least = te.min_value(types.sum)
        if lengths is not None:
            scaled = te.if_then_else(is_within(lengths, b, j), scaled, least)
        return te.if_then_else(j <= i + past, scaled, least) if causal else scaled

    means = _means(
        types,
        {"b": batch, "h": kv_heads, "g": size, "i": m},
        (n, d),
        lambda b, h, g, i, r: q[b, h * size + g, i, r],
        lambda b, h, _, __, j, r: k[b, h, j, r],
        lambda b, h, _, __, j, c: v[b, h, j, c],
        score,
        "means",
    )
    return join_axes(means, 1, types.result, "out")


def _checked(
    operator: str, scale: float | None, q: te.Tensor, *others: te.Tensor
) -> tuple[Types, float]:
    """Return the types of the products, and the factor of the scores."""
    check_dtype(operator, q.dtype, needs_float=True)
    check_same_dtype(operator, q, *others)
    factor = 1 / math.sqrt(dims_of(operator, q, 4)[-1]) if scale is None else scale
    check_number(operator, scale=factor)
    return check_types(operator, q.dtype, None, None), factor


def _means(  # noqa: PLR0917
    types: Types,
    rows: Mapping[str, int],
    extents: tuple[int, int],
    query: Element,
    key: Element,
    value: Element,
    score: Element,
    name: str,
) -> te.Tensor:
    """Return the mean of the values for each row, in the type of sums.

    Args:
        types: The types of the products.
        rows: The extents of the indices of a row by their names, the position of a query last.
        extents: The number of keys, and their width.
        query: Takes a row and a column; returns an element of the query.
        key: Takes a row, the number of a key and a column; returns an element of the key.
        value: The same of the value.
        score: Takes the product of a query and a key, a row and the number of the key.
        name: The name of the result.
    """
    n, d = extents
    dims, names = tuple(rows.values()), tuple(rows)
    r = te.reduce_axis((0, d), name="k")

    def product(*i: te.Value) -> te.Reduction:
        return te.sum(types.product(query(*i[:-1], r), key(*i, r)), axis=r)

    products = te.compute((*dims, n), product, name="products", varargs_names=(*names, "j"))
    scores = te.compute(
        (*dims, n),
        lambda *i: score(products[i], *i),
        name="scores",
        varargs_names=(*names, "j"),
    )
    weights = converted_softmax(scores, len(dims), types.given)
    s = te.reduce_axis((0, n), name="k")

    def mean(*i: te.Value) -> te.Reduction:
        *row, c = i
        return te.sum(types.product(weights[(*row, s)], value(*row, s, c)), axis=s)

    return te.compute((*dims, d), mean, name=name, varargs_names=(*names, "c"))
