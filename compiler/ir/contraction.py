"""Sums of products by `numpy.einsum`, in the oracle's wide types.

A term such as `A[i, k] * B[k, j]` is handed over whole. Where two iterators share an index, as in
`A[y + ry]`, the reduction iterator among them is stepped through one value at a time, and what
remains is a sum of products again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ir.affine import affine
from compiler.ir.array_expr import ArrayEvaluator
from compiler.ir.nodes import BinOp, Expr, Load, Var


def factors(term: Expr) -> list[Load] | None:
    """Return the elements whose product `term` is, None if it is something else."""
    match term:
        case BinOp("*", lhs, rhs):
            left, right = factors(lhs), factors(rhs)
            return None if left is None or right is None else [*left, *right]
        case Load():
            return [term]
        case _:
            return None


def stepped(loads: list[Load], reduced: Mapping[Var, int]) -> frozenset[Var] | None:
    """Return the reduction iterators that share an index with another iterator.

    None if the product is no contraction even with those held still: an index is not linear, two
    spatial iterators share one, or a reduction iterator is in none.
    """
    steps: set[Var] = set()
    used: set[Var] = set()
    for load in loads:
        seen: set[Var] = set()
        for index in load.indices:
            terms = affine(index).terms
            variables = {atom for atom, scale in terms if isinstance(atom, Var) and scale > 0}
            if len(variables) < len(terms):
                return None
            # One iterator an index, and one index an iterator, make a grid; others are held.
            held = (variables if len(variables) > 1 else variables & seen) & reduced.keys()
            if len(variables - held) > 1 or (variables - held) & seen:
                return None
            steps |= held
            seen |= variables
        used |= seen
    return frozenset(steps) if reduced.keys() <= used else None


def contract(loads: list[Load], at: ArrayEvaluator, reduced: Mapping[Var, int]) -> NDArray[Any]:
    """Return the product of `loads`, summed over the iterators in `reduced`.

    Args:
        loads: Elements whose places are regular grids, in bounds.
        at: Evaluates over a box in which iterators that were `stepped` have one value.
        reduced: The iterators to sum over.

    Returns:
        An axis for each iterator of the box, of length one where the sum does not depend on it.
    """
    operands: list[Any] = []
    used: set[int] = set()
    for load in loads:
        view = at.view(load.buffer, load.indices)
        assert view is not None, "an element of a contraction is out of bounds"
        axes = [n for n, length in enumerate(view.shape) if length > 1]
        operands += [view.reshape([view.shape[n] for n in axes]), axes]
        used.update(axes)
    kept = [n for n, v in enumerate(at.box.extents) if v not in reduced and n in used]
    total = np.asarray(np.einsum(*operands, kept, optimize=True))
    lengths = dict(zip(kept, total.shape, strict=True))
    return total.reshape([lengths.get(n, 1) for n in range(len(at.box.extents))])
