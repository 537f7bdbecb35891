"""Show a scheduled program as loops: no blocks, and each buffer where it is used.

    for i_0, i_1 in T.grid(4, 32):               for i_0 in range(4):
        with T.sblock("C"):                          for i_1 in range(32):
            v_i = T.axis.spatial(100,       ->           if i_0 * 32 + i_1 < 100:
                i_0 * 32 + i_1)                              C[i_0 * 32 + i_1] = ...
            T.where(i_0 * 32 + i_1 < 100)
            C[v_i] = ...

Backends lower further, for their machines. This form is for readers, and is a program, too.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.analysis.resolve_views import resolve_views
from compiler.ir.analysis.symbols import symbolic_problem
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import TRUE, BinOp, Block, BlockRealize, Expr, For, IntImm, Stmt, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_expr, map_stmt, substitute, walk
from compiler.passes.common.align_buffers import alignments_of
from compiler.passes.common.compact_buffers import compact_buffers
from compiler.passes.common.realize_blocks import realize_blocks


def plain_loops(func: PrimFunc) -> PrimFunc:
    """Return a program without blocks that does what a scheduled program does."""
    body = resolve_views(func.body)
    realized = realize_blocks(body)
    stmt = _without_unit_loops(realized.stmt)
    if symbolic_problem(func) is None:
        stmt = compact_buffers(stmt, realized.carried, alignments_of(body))
    return replace(func, body=BlockRealize((), TRUE, Block("root", (), (), (), stmt)))


def _without_unit_loops(stmt: Stmt) -> Stmt:
    """Replace the variable of each plain loop of one iteration by zero."""
    match stmt:
        case For(var, IntImm(1), body, "serial", annotations=()):
            return _without_unit_loops(substitute(body, {var: IntImm(0, dtype_of(var))}))
        case _:
            return map_stmt(stmt, _without_unit_loops, _simple)


def _simple(expr: Expr) -> Expr:
    """Simplify indices: what follows from loops by integer arithmetic alone."""
    nodes = tuple(walk(expr))
    is_sum = all(isinstance(node, BinOp | Var | IntImm) for node in nodes)
    if is_sum and not any(isinstance(node, Var) and node.dtype == "handle" for node in nodes):
        return simplify(expr) if is_integer(dtype_of(expr)) else expr
    return map_expr(expr, _simple)
