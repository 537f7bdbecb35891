"""Test the guards of a nest once, before it (loop unswitching).

    for i in unrolled(4):                      if i0*4 + 3 < n:
        for j in vectorized(8):                    for i in unrolled(4):
            if i0*4 + i < n:           ->              for j in vectorized(8):
                C[i0*4 + i, j] = ...                       C[i0*4 + i, j] = ...
                                               else: ...  # as it was

If a tile does not divide an extent, every tile has a guard, but only the last tiles need it. Loops
around such a test move into it if the test does not depend on them. A guard that excludes elements
of every tile, such as those of 61 columns in a single tile of 64, stays in whole tiles, too.

A test for equality, such as `k == 0` before the start of a sum, is no guard and stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import affine_bounds, bounds
from compiler.ir.arith.simplify import normal
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import TRUE, Compare, Expr, For, If, IntImm, Load, Logic, Stmt, Var
from compiler.ir.core.visit import map_stmt, walk, walk_stmts
from compiler.passes.cpu.accumulator_tiles import EXPANDED

Ranges = dict[Var, int]
_NEVER = Compare("<", IntImm(0), IntImm(0))
"""A condition that no element meets."""


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
        guards = _find_guards(stmt, ranges)
        if guards is None or guards.test == TRUE:
            return stmt
        return If(guards.test, without_guards(stmt, guards.always), stmt)
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


@dataclass(frozen=True, slots=True)
class _Guards:
    """The guards of a nest.

    Attributes:
        test: The condition under which they hold for all elements, but for the following.
        always: Conditions that exclude elements of every tile.
    """

    test: Expr
    always: frozenset[Expr]


def whole_condition(nest: For, ranges: Ranges) -> Expr | None:
    """Return the condition under which all guards of a nest hold; None if there is none."""
    guards = _find_guards(nest, ranges)
    return None if guards is None or guards.always or guards.test == TRUE else guards.test


def _find_guards(nest: For, ranges: Ranges) -> _Guards | None:
    """Return the guards of a nest; None if they can't be stated."""
    inner = _expanded_ranges(nest)
    branches = [node for node in walk_stmts(nest) if isinstance(node, If)]
    branches = [node for node in branches if not _is_start(node.condition)]
    if inner is None or any(node.otherwise is not None for node in branches):
        return None
    tests: dict[Expr, None] = {}
    always: set[Expr] = set()
    for part in (part for node in branches for part in _parts(node.condition)):
        test = _strictest(part, inner, ranges)
        if test is None:
            return None
        if test == _NEVER:
            always.add(part)
        elif test != TRUE:
            tests[test] = None
    return _Guards(_all_of(tests), frozenset(always))


def _expanded_ranges(nest: For) -> Ranges | None:
    """Return the extents of the loops of a nest; None if one of them is not expanded."""
    inner: Ranges = {}
    for node in walk_stmts(nest):
        if isinstance(node, For):
            if node.kind not in EXPANDED or not isinstance(node.extent, IntImm):
                return None
            inner[node.var] = node.extent.value
    return inner


def _parts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Logic) and condition.op == "and":
        return [*_parts(condition.lhs), *_parts(condition.rhs)]
    return [condition]


def _all_of(parts: Iterable[Expr]) -> Expr:
    condition: Expr = TRUE
    for part in parts:
        condition = part if condition == TRUE else Logic("and", condition, part)
    return condition


def _is_start(condition: Expr) -> bool:
    """Return whether a condition selects the first iteration of loops, before which sums start."""
    match condition:
        case Logic("and", lhs, rhs):
            return _is_start(lhs) and _is_start(rhs)
        case Compare("==", lhs, rhs):
            return not any(isinstance(node, Load) for side in (lhs, rhs) for node in walk(side))
        case _:
            return False


def _strictest(condition: Expr, inner: Ranges, ranges: Ranges) -> Expr | None:
    """Return a condition that implies the given one for all values of the inner loops.

    `TRUE` if the given one always holds, `_NEVER` if it fails for some of these values in any case,
    and None if the condition can't be stated.
    """
    if not isinstance(condition, Compare) or condition.op not in {"<", "<="}:
        return None
    if any(isinstance(node, Load) for node in walk(condition)):
        return None
    every = {**ranges, **inner}
    form = normal(condition.lhs, every) - normal(condition.rhs, every)
    if condition.op == "<=":
        form = replace(form, const=form.const - 1)
    fixed: list[tuple[Expr, int]] = []
    moving: list[tuple[Expr, int]] = []
    for atom, scale in form.terms:
        (moving if inner.keys() & set(walk(atom)) else fixed).append((atom, scale))
    reach = affine_bounds(Affine(tuple(moving), form.const, form.dtype), inner)
    interval = affine_bounds(form, every)
    if reach is None or interval is None:
        return None
    if interval[1] < 0:
        return TRUE
    most = Affine(tuple(fixed), reach[1], form.dtype)
    least = affine_bounds(most, ranges)
    if least is None:
        return None
    zero = IntImm(0, dtype_of(condition.lhs))
    return _NEVER if least[0] >= 0 else Compare("<", most.to_expr(), zero)


def without_guards(nest: Stmt, remaining: frozenset[Expr] = frozenset()) -> Stmt:
    """Return a nest without its guards, which are known to hold.

    Args:
        nest: The nest.
        remaining: Conditions that may fail, and stay.
    """

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, If) and not _is_start(stmt.condition):
            condition = _all_of(part for part in _parts(stmt.condition) if part in remaining)
            then = visit(stmt.then)
            return then if condition == TRUE else If(condition, then)
        return map_stmt(stmt, visit, lambda expr: expr)

    return visit(nest)
