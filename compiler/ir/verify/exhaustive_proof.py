"""Prove a claim about an index by evaluating it at every point of its variables.

Some facts are hard to derive by arithmetic, such as bounds of `x * 7 // 3 + r` if `r` depends on
the quotient. A few thousand points decide them. The verifier uses this last, for programs that it
would refuse otherwise.
"""

from __future__ import annotations

import numpy as np

from compiler.ir.arith.facts import Facts
from compiler.ir.arith.value_bounds import bounds_at
from compiler.ir.arith.values import UnknownError, form_value, grid
from compiler.ir.core.nodes import Expr, Var
from compiler.ir.core.visit import walk

# A chosen bound: an array of so many 64-bit values takes 512 KiB and stays in the cache.
MAX_POINTS = 1 << 16


def points_of(expr: Expr, facts: Facts) -> int | None:
    """Return the number of points that a claim about an expression has; None if unknown."""
    total = 1
    for var in _variables(expr):
        if var not in facts.ranges:
            return None
        low, high = facts.ranges[var]
        total *= max(high - low + 1, 1)
    return total


def is_never_negative(expr: Expr, facts: Facts) -> bool:
    """Return whether an expression is never negative under the facts, by trying all points."""
    variables = sorted(_variables(expr), key=lambda var: var.name)
    axes = [np.arange(low, high + 1) for low, high in (facts.ranges[v] for v in variables)]
    points = grid(dict(zip(variables, axes, strict=True)))
    try:
        fails = bounds_at(expr, points)[0] < 0
        for form in facts.not_negative:
            if fails.any() and all(_variables(atom) <= points.keys() for atom, _ in form.terms):
                fails = fails & (form_value(form, points) >= 0)
    except UnknownError:
        return False
    return not fails.any()


def _variables(expr: Expr) -> set[Var]:
    return {node for node in walk(expr) if isinstance(node, Var)}
