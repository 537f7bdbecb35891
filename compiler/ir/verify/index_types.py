"""Give the indices of a program the types that the parser would give them.

Loops over int64 and int32 meet if they are fused, or if a copy of a buffer is indexed by both. The
text of a program gives no types of iterators: an iterator has the type of its value, and an
operation the wider type of its operands. A program with other types would change when it is printed
and parsed.

    for i in range(T.int64(8)):              for i in range(T.int64(8)):
        with block(B):                           with block(B):
            v: int32 = i                 ->          v: int64 = i
            B[v * 2 + j] = ...                       B[v * 2 + int64(j)] = ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from compiler.ir.core.dtypes import DType, is_integer
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.nodes import (
    BinOp,
    BlockRealize,
    Compare,
    Conditional,
    Expr,
    For,
    Let,
    Select,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.promotion import converted, promoted
from compiler.ir.core.visit import map_expr, map_stmt


def with_agreeing_types(func: PrimFunc) -> PrimFunc:
    """Return a program whose iterators have the types of their values, and operands one type."""
    body = _stmt(func.body, {})
    if body is func.body:
        return func
    assert isinstance(body, BlockRealize), "the root stays"
    return replace(func, body=body)


def _stmt(stmt: Stmt, renamed: Mapping[Var, Var]) -> Stmt:
    def on_expr(expr: Expr) -> Expr:
        return _expr(expr, renamed)

    def on_stmt(child: Stmt) -> Stmt:
        return _stmt(child, renamed)

    if isinstance(stmt, BlockRealize):
        return _realize(stmt, renamed)
    new = map_stmt(stmt, on_stmt, on_expr)
    match new:
        case For(var, extent) if dtype_of(extent) != var.dtype:
            return replace(new, extent=converted(extent, dtype_of(var)))
        case Let(var, value) if _differs(value, var.dtype):
            return replace(new, value=converted(value, dtype_of(var)))
        case Store(buffer, _, value) if _differs(value, buffer.dtype):
            return replace(new, value=converted(value, buffer.dtype))
        case _:
            return new


def _differs(value: Expr, dtype: DType | Literal["handle"]) -> bool:
    """Return whether a value is an integer of another type than the required one."""
    value_dtype = dtype_of(value)
    if dtype == "handle" or lanes_of(value) > 1:
        return False
    return value_dtype != dtype and is_integer(value_dtype) and is_integer(dtype)


def _realize(realize: BlockRealize, renamed: Mapping[Var, Var]) -> BlockRealize:
    values = tuple(_expr(value, renamed) for value in realize.iter_values)
    inside = dict(renamed)
    iter_vars = []
    for iter_var, value in zip(realize.block.iter_vars, values, strict=True):
        var, dtype = iter_var.var, dtype_of(value)
        if var.dtype != dtype:
            var = Var(var.name, dtype)
            inside[iter_var.var] = var
        extent = converted(_expr(iter_var.extent, inside), dtype)
        unchanged = var is iter_var.var and extent is iter_var.extent
        iter_vars.append(iter_var if unchanged else replace(iter_var, var=var, extent=extent))
    block = realize.block
    if any(new is not old for new, old in zip(iter_vars, block.iter_vars, strict=True)):
        block = replace(block, iter_vars=tuple(iter_vars))
    inner = map_stmt(
        replace(realize, iter_values=(), block=block),
        lambda child: _stmt(child, inside),
        lambda expr: _expr(expr, inside),
    )
    assert isinstance(inner, BlockRealize), "a rebuild keeps the kind of a statement"
    predicate = _expr(realize.predicate, renamed)
    same_values = all(new is old for new, old in zip(values, realize.iter_values, strict=True))
    if same_values and predicate is realize.predicate and inner.block is realize.block:
        return realize
    return BlockRealize(values, predicate, inner.block)


def _expr(expr: Expr, renamed: Mapping[Var, Var]) -> Expr:
    if isinstance(expr, Var):
        return renamed.get(expr, expr)
    new = map_expr(expr, lambda child: _expr(child, renamed))
    match new:
        case BinOp(op, lhs, rhs) if _disagree(lhs, rhs):
            return BinOp(op, *promoted(lhs, rhs))
        case Compare(relation, lhs, rhs) if _disagree(lhs, rhs):
            return Compare(relation, *promoted(lhs, rhs))
        case Select(condition, then, otherwise) if _disagree(then, otherwise):
            return Select(condition, *promoted(then, otherwise))
        case Conditional(condition, then, otherwise) if _disagree(then, otherwise):
            return Conditional(condition, *promoted(then, otherwise))
        case _:
            return new


def _disagree(lhs: Expr, rhs: Expr) -> bool:
    """Return whether two operands are integers of different types."""
    a, b = dtype_of(lhs), dtype_of(rhs)
    return a != b and is_integer(a) and is_integer(b)
