"""Test the guards of a nest once, before it (loop unswitching).

    for i in unrolled(4):                      if i0*4 + 3 < n:
        for j in vectorized(8):                    for i in unrolled(4):
            if i0*4 + i < n:           ->              for j in vectorized(8):
                C[i0*4 + i, j] = ...                       C[i0*4 + i, j] = ...
                                               else: ...  # as it was

If a tile does not divide an extent, every tile has a guard, but only the last tiles need it. Loops
around such a test move into it if the test does not depend on them.

A test for equality, such as `k == 0` before the start of a sum, is no guard and stays where it is.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import affine_bounds, bounds
from compiler.ir.arith.simplify import normal
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import TRUE, Compare, Expr, For, If, IntImm, Load, Logic, Stmt, Var
from compiler.ir.core.visit import map_stmt, walk, walk_stmts
from compiler.passes.cpu.accumulator_tiles import EXPANDED

Ranges = dict[Var, int]


def unswitch_guards(stmt: Stmt) -> Stmt:
    """Split the nests of expanded loops into whole tiles and guarded, partial ones."""
    return _visit(stmt, {})


def _visit(stmt: Stmt, ranges: Ranges) -> Stmt:
    if not isinstance(stmt, For):
        return map_stmt(stmt, lambda child: _visit(child, ranges), lambda expr: expr)
    interval = bounds(stmt.extent, ranges)
    if interval is None or interval[1] < 1:
        return stmt
    if stmt.kind in EXPANDED:
        test = whole_condition(stmt, ranges)
        return stmt if test is None else If(test, without_guards(stmt), stmt)
    body = _visit(stmt.body, {**ranges, stmt.var: interval[1]})
    if stmt.kind == "serial" and body is not stmt.body and _is_choice(body, stmt.var):
        assert isinstance(body, If)
        assert body.otherwise is not None
        return If(body.condition, replace(stmt, body=body.then), replace(stmt, body=body.otherwise))
    return stmt if body is stmt.body else replace(stmt, body=body)


def _is_choice(body: Stmt, var: Var) -> bool:
    """Return whether the body of a loop is an `if`/`else` with a loop-invariant condition."""
    if not isinstance(body, If) or body.otherwise is None:
        return False
    return not any(isinstance(node, Load) or node is var for node in walk(body.condition))


def whole_condition(nest: For, ranges: Ranges) -> Expr | None:
    """Return the condition under which all guards of a nest hold; None if there is none."""
    inner: Ranges = {}
    for node in walk_stmts(nest):
        if isinstance(node, For):
            if node.kind not in EXPANDED or not isinstance(node.extent, IntImm):
                return None
            inner[node.var] = node.extent.value
    tests: dict[Expr, None] = {}
    for node in walk_stmts(nest):
        if isinstance(node, If) and not _is_start(node.condition):
            guards = _strictest(node.condition, inner, ranges)
            if guards is None or node.otherwise is not None:
                return None
            tests |= guards
    condition: Expr = TRUE
    for test in tests:
        condition = test if condition == TRUE else Logic("and", condition, test)
    return None if condition == TRUE else condition


def _is_start(condition: Expr) -> bool:
    """Return whether a condition selects the first iteration of loops, before which sums start."""
    match condition:
        case Logic("and", lhs, rhs):
            return _is_start(lhs) and _is_start(rhs)
        case Compare("==", lhs, rhs):
            return not any(isinstance(node, Load) for side in (lhs, rhs) for node in walk(side))
        case _:
            return False


def _strictest(condition: Expr, inner: Ranges, ranges: Ranges) -> dict[Expr, None] | None:
    """Return a condition that implies the given one for all values of the inner loops.

    None if it can't be stated, or can't be true.
    """
    match condition:
        case Logic("and", lhs, rhs):
            a, b = _strictest(lhs, inner, ranges), _strictest(rhs, inner, ranges)
            return None if a is None or b is None else a | b
        case Compare("<", lhs, rhs):
            pass
        case _:
            return None
    if any(isinstance(node, Load) for node in walk(condition)):
        return None
    every = {**ranges, **inner}
    form = normal(lhs, every) - normal(rhs, every)
    fixed: list[tuple[Expr, int]] = []
    moving: list[tuple[Expr, int]] = []
    for atom, scale in form.terms:
        (moving if inner.keys() & set(walk(atom)) else fixed).append((atom, scale))
    reach = affine_bounds(Affine(tuple(moving), form.const, form.dtype), inner)
    interval = affine_bounds(form, every)
    if reach is None or interval is None:
        return None
    if interval[1] < 0:
        return {}
    most = Affine(tuple(fixed), reach[1], form.dtype)
    least = affine_bounds(most, ranges)
    if least is None or least[0] >= 0:
        return None
    zero = IntImm(0, dtype_of(lhs))
    return {Compare("<", most.to_expr(), zero): None}


def without_guards(nest: Stmt) -> Stmt:
    """Return a nest without its guards, which are known to hold."""
    if isinstance(nest, If) and not _is_start(nest.condition):
        return without_guards(nest.then)
    return map_stmt(nest, without_guards, lambda expr: expr)
