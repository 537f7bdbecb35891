"""Keep narrow floats that stay in registers as 32-bit floats, the type that computes them.

    acc: float16                                acc: float32
    for k in range(n):                   ->     for k in range(n):
        acc = acc + A[i, k] * B[k, j]               acc = acc + float32(A[i, k]) * float32(B[k, j])
    C[i, j] = acc                               C[i, j] = float16(acc)

Sums are then rounded once, when they are stored, instead of at every step. That is faster, and
closer to the exact result.

If the CPU multiplies and adds float16, sums of products of float16 stay as they are: vectors have
twice as many lanes.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.core.dtypes import is_narrow_float
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Buffer,
    Cast,
    Conditional,
    Expr,
    Load,
    Select,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import map_expr, map_stmt, walk, walk_stmts
from compiler.passes.cpu.promote_accumulators import register_buffers


def widen_accumulators(stmt: Stmt, *, has_half_arithmetic: bool = False) -> Stmt:
    """Rewrite the narrow buffers with only constant indices once loops are expanded.

    Args:
        stmt: The statement.
        has_half_arithmetic: Whether the CPU multiplies and adds float16.
    """
    allocated = {node.buffer for node in walk_stmts(stmt) if isinstance(node, Allocate)}
    narrow = {buffer for buffer in allocated if is_narrow_float(buffer.dtype)}
    if narrow:
        narrow &= register_buffers(stmt)
        if has_half_arithmetic:
            narrow -= _sums_of_half_products(stmt)
    wide: dict[Buffer, Buffer] = {
        b: replace(b, data=Var(b.name, "handle"), dtype="float32") for b in narrow
    }
    return _visit(stmt, wide) if wide else stmt


def _sums_of_half_products(stmt: Stmt) -> set[Buffer]:
    """Return the buffers of float16 that change only by additions of products of float16."""
    updates: dict[Buffer, list[Expr]] = {}
    for node in walk_stmts(stmt):
        if isinstance(node, Store) and node.buffer.dtype == "float16":
            current = Load(node.buffer, node.indices)
            if current in walk(node.value):
                updates.setdefault(node.buffer, []).append(node.value)
    return {buffer for buffer, values in updates.items() if all(map(_adds_half_product, values))}


def _adds_half_product(value: Expr) -> bool:
    match value:
        case BinOp("+", Load(), BinOp("*", Load(left), Load(right))):
            return left.dtype == right.dtype == "float16"
        case _:
            return False


def _visit(stmt: Stmt, wide: dict[Buffer, Buffer]) -> Stmt:
    match stmt:
        case Allocate(buffer, body) if buffer in wide:
            return Allocate(wide[buffer], _visit(body, wide))
        case Store(buffer, indices, value) if buffer in wide:
            return Store(wide[buffer], indices, _widened(value, wide))
        case _:
            return map_stmt(
                stmt, lambda child: _visit(child, wide), lambda e: _over_wide_buffers(e, wide)
            )


def _over_wide_buffers(expr: Expr, wide: dict[Buffer, Buffer]) -> Expr:
    """Return an expression of the same type over the wide buffers."""
    if isinstance(expr, Load) and expr.buffer in wide:
        return Cast(expr.buffer.dtype, Load(wide[expr.buffer], expr.indices))
    return map_expr(expr, lambda child: _over_wide_buffers(child, wide))


def _widened(expr: Expr, wide: dict[Buffer, Buffer]) -> Expr:
    """Return a narrow expression in 32 bits, rounded only at explicit conversions."""
    match expr:
        case Load(buffer, indices) if buffer in wide:
            return Load(wide[buffer], indices)
        case BinOp(op, lhs, rhs):
            return BinOp(op, _widened(lhs, wide), _widened(rhs, wide))
        case Select(condition, then, otherwise):
            sides = _widened(then, wide), _widened(otherwise, wide)
            return Select(_over_wide_buffers(condition, wide), *sides)
        case Conditional(condition, then, otherwise):
            sides = _widened(then, wide), _widened(otherwise, wide)
            return Conditional(_over_wide_buffers(condition, wide), *sides)
        case _:
            assert is_narrow_float(dtype_of(expr))
            return Cast("float32", _over_wide_buffers(expr, wide))
