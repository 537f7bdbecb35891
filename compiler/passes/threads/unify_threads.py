"""Unify nested loops that are bound to one thread axis: the inner loop disappears.

    for tx in 32:  # threadIdx.x          for tx in 32:  # threadIdx.x
        for k in 8:                  ->       for k in 8:
            for ax in 32:  # threadIdx.x          S[tx] = A[k, tx]
                S[ax] = A[k, ax]

Both loops run over the same threads. A kernel is a bound loop without another bound loop around it:
it starts the threads of all loops inside. Loops of one kernel that are bound to one axis have one
extent.
"""

from __future__ import annotations

from collections.abc import Mapping

from compiler.ir.core.nodes import Expr, For, IntImm, Stmt, Var
from compiler.ir.core.visit import map_expr, map_stmt, walk_stmts
from compiler.ir.text.print_expr import show_expr
from compiler.passes.common.error import LoweringError


def unify_threads(stmt: Stmt) -> tuple[Stmt, set[Var]]:
    """Return a program in which no loop over an axis lies in another over the same axis.

    Also return the variables of the loops that absorbed others.

    Raises:
        LoweringError: If loops of one kernel that are bound to one axis differ in extent.
    """
    unified: set[Var] = set()
    return _visit(stmt, {}, {}, unified), unified


def _visit(
    stmt: Stmt, axes: Mapping[str, Var], same: Mapping[Var, Expr], unified: set[Var]
) -> Stmt:
    def on_expr(expr: Expr) -> Expr:
        if not same:
            return expr
        if isinstance(expr, Var):
            return same.get(expr, expr)
        return map_expr(expr, on_expr)

    if isinstance(stmt, For) and stmt.thread is not None:
        if not axes:
            _check_extents(stmt)
        axis_var = axes.get(stmt.thread)
        if axis_var is not None:
            unified.add(axis_var)
            return _visit(stmt.body, axes, {**same, stmt.var: axis_var}, unified)
        axes = {**axes, stmt.thread: stmt.var}
    return map_stmt(stmt, lambda child: _visit(child, axes, same, unified), on_expr)


def _check_extents(kernel: For) -> None:
    first: dict[str, For] = {}
    for stmt in walk_stmts(kernel):
        if not isinstance(stmt, For) or stmt.thread is None:
            continue
        if not isinstance(stmt.extent, IntImm):
            raise LoweringError(
                f"loop {stmt.var.name} is bound to {stmt.thread}, but its extent varies: "
                f"{show_expr(stmt.extent)}"
            )
        other = first.setdefault(stmt.thread, stmt)
        if other.extent != stmt.extent:
            raise LoweringError(
                f"loops {other.var.name} and {stmt.var.name} are bound to {stmt.thread} in one "
                f"kernel, but have extents {show_expr(other.extent)} and {show_expr(stmt.extent)}: "
                "they are the same threads, so they must agree"
            )
