"""Give the last, partial tile of a symbolic extent code of its own, for each number of rows.

    for i in unrolled(3):                       if i0*3 + 2 < M:
        for j in vectorized(8):                     for i in unrolled(3): ...
            if i0*3 + i < M:            ->      elif i0*3 + 1 < M:
                C[i0*3 + i, j] = ...                for i in unrolled(2): ...
                                                elif i0*3 < M:
                                                    for i in unrolled(1): ...

The rows of each variant are known when code is generated, so that a partial tile stays in registers
as a whole one does. Loops around such a choice move into it if it does not depend on them. Of a
constant extent there is one partial tile at most, which `unswitch_guards` separates.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.simplify import normal
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import TRUE, Compare, Expr, For, If, IntImm, Load, Logic, Stmt, Var
from compiler.ir.core.visit import map_stmt, substitute, walk, walk_stmts
from compiler.passes.common.accesses import is_symbolic
from compiler.passes.cpu.accumulator_tiles import EXPANDED

MAX_ROWS = 8
"""Limit of the rows of a tile with code for each number of them: the code of all is 4.5 times that
of the whole tile. Chosen.
"""


def split_partial_tiles(stmt: Stmt) -> Stmt:
    """Split the nests of expanded loops that a symbolic extent cuts off."""
    return _visit(stmt, {})


def _visit(stmt: Stmt, units: dict[Var, Expr]) -> Stmt:
    """Rewrite a statement; `units` are the loops of one iteration around, and their value."""
    if not isinstance(stmt, For):
        return map_stmt(stmt, lambda child: _visit(child, units), lambda expr: expr)
    if stmt.kind in EXPANDED:
        return _by_rows(stmt, units) or stmt
    if stmt.extent == IntImm(1, dtype_of(stmt.extent)):
        units = {**units, stmt.var: IntImm(0, dtype_of(stmt.var))}
    body = _visit(stmt.body, units)
    return stmt if body is stmt.body else _lifted(stmt, body)


def _lifted(loop: For, body: Stmt) -> Stmt:
    """Return a loop with a new body, inside of the choices of the body that do not depend on it."""
    is_fixed = isinstance(body, If) and loop.var not in set(walk(body.condition))
    if loop.kind != "serial" or not isinstance(body, If) or not is_fixed:
        return replace(loop, body=body)
    otherwise = None if body.otherwise is None else _lifted(loop, body.otherwise)
    return If(body.condition, replace(loop, body=body.then), otherwise)


def _by_rows(nest: For, units: dict[Var, Expr]) -> Stmt | None:
    """Return the choice between the variants of a nest; None if no symbolic extent cuts it off."""
    branches = [node for node in walk_stmts(nest) if isinstance(node, If)]
    if any(node.otherwise is not None for node in branches):
        return None
    guards = dict.fromkeys(part for node in branches for part in _parts(node.condition))
    loops = [node for node in walk_stmts(nest) if isinstance(node, For)]
    for rows in loops:
        fitting = {guard: _beyond(guard, rows, loops) for guard in guards}
        forms = {form for form in fitting.values() if form is not None}
        if len(forms) == 1:
            admitting = {guard for guard, form in fitting.items() if form is not None}
            return _choice(nest, rows, admitting, forms.pop(), units)
    return None


def _beyond(guard: Expr, rows: For, loops: list[For]) -> Affine | None:
    """Return what the last index that a guard admits is less than, for the first of some rows.

    None unless the guard admits the first rows of a tile, up to a symbolic extent.
    """
    if rows.kind != "unrolled" or not isinstance(rows.extent, IntImm):
        return None
    is_small = 2 <= rows.extent.value <= MAX_ROWS
    if not is_small or not isinstance(guard, Compare) or guard.op != "<":
        return None
    form = normal(guard.lhs) - normal(guard.rhs)
    fixed = form - Affine(((rows.var, 1),), 0, form.dtype)
    nodes = [node for atom, _ in fixed.terms for node in walk(atom)]
    inner = {loop.var for loop in loops}
    if any(isinstance(node, Load) or node in inner for node in nodes):
        return None
    if not any(is_symbolic(atom) for atom, _ in fixed.terms):
        return None
    # Equal forms have equal terms in one order.
    ordered = tuple(sorted(fixed.terms, key=lambda term: repr(term[0])))
    return Affine(ordered, fixed.const, fixed.dtype)


def _choice(
    nest: For, rows: For, guards: set[Expr], beyond: Affine, units: dict[Var, Expr]
) -> Stmt | None:
    assert isinstance(rows.extent, IntImm)
    chosen: Stmt | None = None
    for count in range(1, rows.extent.value + 1):
        last = (beyond + Affine((), count - 1, beyond.dtype)).to_expr()
        is_inside = Compare("<", substitute(last, units), IntImm(0, beyond.dtype))
        chosen = If(is_inside, _variant(nest, rows, count, guards), chosen)
    return chosen


def _variant(nest: For, rows: For, count: int, guards: set[Expr]) -> Stmt:
    """Return a nest with so many rows, all of which the guards admit."""

    def visit(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, visit, lambda expr: expr)
        if isinstance(new, For) and new.var is rows.var:
            return replace(new, extent=IntImm(count, dtype_of(new.extent)))
        if isinstance(new, If):
            remaining: Expr = TRUE
            for part in _parts(new.condition):
                if part not in guards:
                    remaining = part if remaining == TRUE else Logic("and", remaining, part)
            return new.then if remaining == TRUE else replace(new, condition=remaining)
        return new

    return visit(nest)


def _parts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Logic) and condition.op == "and":
        return [*_parts(condition.lhs), *_parts(condition.rhs)]
    return [condition]
