"""The largest elements of rows with their positions, by one search after another."""

from __future__ import annotations

import math
from typing import Any

from compiler import te
from compiler.ir.core.dtypes import sum_dtype
from compiler.ops.error import OperatorError, check_dtype, check_flags, check_range
from compiler.ops.tensors.operands import dims_of
from compiler.ops.tensors.reductions import position_reducer

MAX_TOPK = 16
"""Limit of the elements that are found: each is one search of the row, and lengthens the program.
Chosen.
"""


def topk(x: te.Tensor, *, k: int, largest: bool = True) -> tuple[te.Tensor, te.Tensor]:
    """Return the `k` largest elements of each row, in descending order, and their positions.

    Each search finds the position of the largest element that comes after the last one in the
    order of values, then of positions. So of equal elements, those with lower positions are
    first. Positions are int32. Infinite elements of the end that is searched last are compared as
    the finite ones next to them. NaN is in no order.

    Args:
        x: The rows, along the last axis.
        k: The number of elements.
        largest: Whether the largest elements are found, or the smallest in ascending order.

    Raises:
        OperatorError: If the type, `k` or a flag is out of range.
    """
    operator = "topk"
    check_dtype(operator, x.dtype, needs_float=True)
    check_flags(operator, largest=largest)
    check_range(operator, 1, k=k)
    *rows, n = dims_of(operator, x)
    if k > min(n, MAX_TOPK):
        raise OperatorError(f"{operator}: k is {k}: expected {min(n, MAX_TOPK)} at most")
    reducer = position_reducer(operator, is_max=largest)
    searches: list[Any] = []
    for number in range(k):
        searches.append(_next(x, reducer, searches[-1:], largest=largest, name=f"best{number}"))

    def position(*i: te.Value) -> te.Value:
        *row, t = i
        chosen: te.Value = searches[-1][0][tuple(row)]
        for number in reversed(range(k - 1)):
            chosen = te.select(t <= number, searches[number][0][tuple(row)], chosen)
        return chosen

    indices = te.compute((*rows, k), position, name="indices")

    def value(*i: te.Value) -> te.Value:
        # Positions are those of elements; the proof needs bounds.
        return x[(*i[:-1], te.max(te.min(indices[i], n - 1), 0))]

    return te.compute((*rows, k), value, name="values"), indices


def _next(x: te.Tensor, reducer: Any, last: list[Any], *, largest: bool, name: str) -> Any:
    """Return the position and the value of the first element after the last one of each row."""
    *rows, n = dims_of("topk", x)
    dtype = sum_dtype(x.dtype)
    r = te.reduce_axis((0, n), name="r")
    # Elements that were found before are worse than any other, the infinite ones included.
    worst = te.const(-math.inf if largest else math.inf, dtype)

    def element(*i: te.Value) -> te.Reduction:
        candidate = x[(*i, r)].astype(dtype)
        candidate = (
            te.max(candidate, te.min_value(dtype))
            if largest
            else te.min(candidate, te.max_value(dtype))
        )
        for positions, values in last:
            bound = values[i]
            is_after = te.any(candidate < bound if largest else candidate > bound, r > positions[i])
            is_no_better = candidate <= bound if largest else candidate >= bound
            candidate = te.select(te.all(is_no_better, is_after), candidate, worst)
        search: te.Reduction = reducer((r.var, candidate), axis=[r])
        return search

    return te.compute(tuple(rows), element, name=name)
