"""End a loop before the first iteration that a condition excludes, if it excludes all later ones.

    for k in range(40):                        for k in range(min(40, b - a)):
        if k + a - b + 1 <= 0:                     S = S + W[a + k]
            S = S + (W[a + k]        ->
                     if a + k < b else 0)

Iterations are not tested one by one, and neither is the same condition in the body. Only conditions
on data end a loop: those on loops alone are the guards of partial tiles, which `unswitch_guards`
separates from whole ones.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.simplify import normal
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Compare,
    Conditional,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Select,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import map_expr, map_stmt, substitute, walk, walk_stmts


def bound_loops(stmt: Stmt) -> Stmt:
    """Give loops under such a condition the number of iterations that it leaves."""
    new = map_stmt(stmt, bound_loops, lambda expr: expr)
    return _bounded(new) if isinstance(new, For) else new


def _bounded(loop: For) -> For:
    body = loop.body
    if not (isinstance(body, If) and body.otherwise is None and isinstance(loop.extent, IntImm)):
        return loop
    form = _excess(body.condition)
    if loop.kind != "serial" or loop.annotations or form is None:
        return loop
    step = form.coefficient(loop.var)
    rest = form - Affine(((loop.var, step),), 0, form.dtype)
    if step < 1 or not _is_of_data(rest, loop.var, body.then):
        return loop
    # The last iteration is the largest `k` with `step * k + rest <= 0`.
    last = BinOp("//", rest.scaled(-1).to_expr(), IntImm(step, form.dtype))
    count = BinOp("+", last, IntImm(1, form.dtype))
    extent = BinOp("min", IntImm(loop.extent.value, form.dtype), count)
    return replace(loop, extent=extent, body=_given(body.then, form))


def _excess(condition: Expr) -> Affine | None:
    """Return a number that is above 0 if a comparison of integers is false; None for others."""
    if not isinstance(condition, Compare) or condition.op not in ("<", "<="):
        return None
    if not is_integer(dtype_of(condition.lhs)):
        return None
    form = normal(condition.lhs) - normal(condition.rhs)
    ordered = tuple(sorted(form.terms, key=lambda term: repr(term[0])))
    return Affine(ordered, form.const + (1 if condition.op == "<" else 0), form.dtype)


def _is_of_data(form: Affine, var: Var, body: Stmt) -> bool:
    """Return whether a number is loaded, and is the same in all iterations of a loop."""
    nodes = [node for atom, _ in form.terms for node in walk(atom)]
    stored = {node.buffer.data for node in walk_stmts(body) if isinstance(node, Store)}
    loaded = {node.buffer.data for node in nodes if isinstance(node, Load)}
    return bool(loaded) and var not in nodes and stored.isdisjoint(loaded)


def _given(body: Stmt, form: Affine) -> Stmt:
    """Return a statement whose values are selected by other conditions than the given one."""
    loops = [node for node in walk_stmts(body) if isinstance(node, For)]
    single = {
        loop.var: IntImm(0, dtype_of(loop.extent)) for loop in loops if loop.extent == IntImm(1)
    }

    def chosen(expr: Expr) -> Expr:
        new = map_expr(expr, chosen)
        if not isinstance(new, Select | Conditional):
            return new
        return new.then if _excess(substitute(new.condition, single)) == form else new

    def visit(stmt: Stmt) -> Stmt:
        return map_stmt(stmt, visit, chosen)

    return visit(body)
