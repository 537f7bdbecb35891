"""Sums of products by `numpy.einsum`, in the oracle's wide types.

A term such as `A[i, k] * B[k, j]` becomes one `einsum`. If two iterators share an index, as in
`A[y + ry]`, the reduction iterator among them is stepped through one value at a time. The rest is a
sum of products again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ir.arith.affine import affine
from compiler.ir.core.dtypes import DType, bits, is_float, is_signed
from compiler.ir.core.nodes import BinOp, Cast, Expr, Load, Var
from compiler.ir.interpret.oracle.vectorized_eval import ArrayEvaluator

# Whole numbers below this are exact in float64.
_EXACT = 1 << 53


def factors(term: Expr) -> list[Load] | None:
    """Return the loads whose product `term` is; None if it is something else."""
    match term:
        case BinOp("*", lhs, rhs):
            left, right = factors(lhs), factors(rhs)
            return None if left is None or right is None else [*left, *right]
        case Load():
            return [term]
        case Cast(dtype, Load(buffer, _) as load) if keeps_values(buffer.dtype, dtype):
            return [load]
        case _:
            return None


def keeps_values(source: DType, to: DType) -> bool:
    """Return whether a conversion preserves all values."""
    if source == "bool" or is_float(source) != is_float(to):
        return False
    if is_float(source):
        return source == to or bits(source) < bits(to)
    return bits(source) < bits(to) and (is_signed(to) or not is_signed(source))


def stepped(
    loads: list[Load], reduced: AbstractSet[Var], moving: AbstractSet[Var]
) -> frozenset[Var] | None:
    """Return the reduction iterators that share an index with another iterator.

    Iterators that are not `moving` have one value. Return None if the product is no contraction
    even with the stepped iterators fixed: an index is not linear, two spatial iterators share one,
    or a reduction iterator is in none.
    """
    steps: set[Var] = set()
    used: set[Var] = set()
    for load in loads:
        earlier: set[Var] = set()
        for index in load.indices:
            terms = affine(index).terms
            variables = {atom for atom, _ in terms if isinstance(atom, Var) and atom in moving}
            if any(not isinstance(a, Var) or (a in moving and scale < 1) for a, scale in terms):
                return None
            # One iterator an index, and one index an iterator, make a grid; others are fixed.
            stepped_vars = (variables if len(variables) > 1 else variables & earlier) & reduced
            if len(variables - stepped_vars) > 1 or (variables - stepped_vars) & earlier:
                return None
            steps |= stepped_vars
            earlier |= variables
        used |= earlier
    return frozenset(steps) if reduced <= used else None


def contract(loads: list[Load], at: ArrayEvaluator, reduced: Mapping[Var, int]) -> NDArray[Any]:
    """Return the product of `loads`, summed over the iterators in `reduced`.

    Args:
        loads: Elements whose indices are regular grids, in bounds.
        at: Evaluates over a box in which the `stepped` iterators have one value.
        reduced: The iterators to sum over.

    Returns:
        An axis for each iterator of the box, of length one if the sum does not depend on it.
    """
    operands: list[Any] = []
    used: set[int] = set()
    for load in loads:
        view = at.element(load)
        assert view is not None, "an element of a contraction is out of bounds"
        axes = [n for n, length in enumerate(view.shape) if length > 1]
        operands += [view.reshape([view.shape[n] for n in axes]), axes]
        used.update(axes)
    result_axes = [n for n, v in enumerate(at.box.extents) if v not in reduced and n in used]
    total = _einsum(operands, result_axes, math.prod(at.box.extents[v] for v in reduced))
    lengths = dict(zip(result_axes, total.shape, strict=True))
    return total.reshape([lengths.get(n, 1) for n in range(len(at.box.extents))])


def _einsum(operands: list[Any], result_axes: list[int], length: int) -> NDArray[Any]:
    """Return a sum of products of `length` terms; for integers in floats, if those are exact."""
    arrays = operands[::2]
    if arrays[0].dtype != np.float64:
        largest = math.prod(int(np.abs(a).max(initial=0)) for a in arrays) * length
        if largest < _EXACT:
            operands = [a.astype(np.float64) if n % 2 == 0 else a for n, a in enumerate(operands)]
    total = np.asarray(np.einsum(*operands, result_axes, optimize=True))
    return total.astype(arrays[0].dtype)
