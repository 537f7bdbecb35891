"""Check, at run time, the indices that a program loads from buffers.

B[i] = A[N[i]]      ->      B[i] = A[max(min(N[i], 15), 0)]
C[N[i]] = x         ->      if 0 <= N[i] and N[i] < 16:
                                C[N[i]] = x
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from compiler.ir.analysis.checked_indices import is_loaded, loaded_names
from compiler.ir.arith.bounds import reach
from compiler.ir.arith.simplify import simplify
from compiler.ir.arith.vectors import shifted
from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.nodes import (
    BinOp,
    BlockRealize,
    Broadcast,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Logic,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import map_expr, map_stmt, walk


def check_indices(body: Stmt) -> Stmt:
    """Return the body of a program with checks of its loaded indices."""
    indexed = (node for node in walk(body) if isinstance(node, Load | Store))
    names = loaded_names(body)
    if not any(is_loaded(index, names) for access in indexed for index in access.indices):
        return body
    return _visit(body, {}, names)


def _visit(stmt: Stmt, ranges: Mapping[Var, int], names: Container[Var]) -> Stmt:
    if isinstance(stmt, For) and isinstance(stmt.extent, IntImm):
        ranges = {**ranges, stmt.var: stmt.extent.value}
    if isinstance(stmt, BlockRealize):
        extents = {
            i.var: i.extent.value for i in stmt.block.iter_vars if isinstance(i.extent, IntImm)
        }
        ranges = {**ranges, **extents}

    def on_expr(expr: Expr) -> Expr:
        new = map_expr(expr, on_expr)
        if isinstance(new, Load):
            moved = tuple(
                _clamped(index, size, ranges) if outside else index
                for index, size, outside in _loose(new.buffer, new.indices, ranges, names)
            )
            return new if moved == new.indices else Load(new.buffer, moved)
        return new

    new = map_stmt(stmt, lambda child: _visit(child, ranges, names), on_expr)
    if isinstance(new, Store):
        guard: Expr | None = None
        for index, size, outside in _loose(new.buffer, new.indices, ranges, names):
            if outside:
                inside = _inside(index, size)
                guard = inside if guard is None else Logic("and", guard, inside)
        return new if guard is None else If(guard, new)
    return new


def _loose(
    buffer: Buffer, indices: tuple[Expr, ...], ranges: Mapping[Var, int], names: Container[Var]
) -> list[tuple[Expr, Expr, bool]]:
    """Return each index, the extent of its dimension, and whether it may be out of bounds."""
    checked = []
    for index, size in zip(indices, buffer.shape, strict=True):
        low, high = reach(index, ranges)
        outside = is_loaded(index, names) and not 0 <= low <= high < _least(size)
        checked.append((index, size, outside))
    return checked


def _clamped(index: Expr, size: Expr, ranges: Mapping[Var, int]) -> Expr:
    dtype, lanes = dtype_of(index), lanes_of(index)

    def limit(number: Expr) -> Expr:
        return number if lanes == 1 else Broadcast(number, lanes)

    low, high = reach(index, ranges)
    if high >= _least(size):
        index = BinOp("min", index, limit(_last(size, dtype)))
    return BinOp("max", index, limit(IntImm(0, dtype))) if low < 0 else index


def _inside(index: Expr, size: Expr) -> Expr:
    dtype = dtype_of(index)
    return Logic(
        "and",
        Compare(">=", index, IntImm(0, dtype)),
        Compare("<=", index, _last(size, dtype)),
    )


def _least(size: Expr) -> int:
    """Return the least value of an extent."""
    return reach(size, {})[0]


def _last(size: Expr, dtype: DType) -> Expr:
    """Return the last index of a dimension, in the type of its indices."""
    return simplify(BinOp("-", shifted(IntImm(0, dtype), size), IntImm(1, dtype)))
