"""Programs that are linear along an axis, and their form without rounding.

A matrix product is linear in the columns of the second matrix: a sum of columns of the result,
with signs, is the first matrix times the same sum of columns of the second one.
"""

from __future__ import annotations

from compiler.ir.core.dtypes import DType, bits, is_float
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Cast,
    Evaluate,
    Expr,
    FloatImm,
    If,
    IntImm,
    Let,
    Load,
    Stmt,
    Store,
    While,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_expr, map_stmt, walk, walk_stmts
from compiler.ir.interpret.oracle.contraction import keeps_values
from compiler.ir.interpret.spot_check.parallel_axis import ParallelAxis, with_extent

_LEAST_SUM_BITS = 32
"""Sums of narrower integers may wrap in a program, but not in its form without rounding."""


def is_linear(func: PrimFunc, axis: ParallelAxis) -> bool:
    """Return whether each slice of the outputs is a linear function of the slices of the inputs.

    The function is the same for all slices. Rounding counts as none.
    """
    return all(_is_linear(stmt, axis) for stmt in walk_stmts(func.body))


def _is_linear(stmt: Stmt, axis: ParallelAxis) -> bool:
    match stmt:
        case Store(buffer, _, value) if buffer in axis.dims:
            return _is_zero(value) or _degree(value, axis) == 1
        case (
            Store(_, _, value)
            | Let(_, value, _)
            | If(value, _, _)
            | While(value, _)
            | Evaluate(value)
        ):
            return _degree(value, axis) == 0
        case _:
            return True


def _degree(expr: Expr, axis: ParallelAxis) -> int | None:
    """Return the degree in the slices of buffers along the axis; None if it is above 1, or none."""
    if not any(isinstance(node, Load) and node.buffer in axis.dims for node in walk(expr)):
        return 0
    match expr:
        case Load():
            return 1
        case Cast(dtype, value) if is_float(dtype) == is_float(dtype_of(value)):
            return _degree(value, axis)
        case BinOp(op, lhs, rhs) if (
            is_float(dtype_of(lhs)) or bits(dtype_of(lhs)) >= _LEAST_SUM_BITS
        ):
            degrees = _degree(lhs, axis), _degree(rhs, axis)
            is_term = _is_zero(lhs) or _is_zero(rhs)
            is_sum = op in ("+", "-") and (degrees == (1, 1) or is_term)
            is_multiple = op == "*" and degrees in ((0, 1), (1, 0))
            return 1 if is_sum or is_multiple else None
        case _:
            return None


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, FloatImm | IntImm) and expr.value == 0


def without_rounding(func: PrimFunc, axis: ParallelAxis, extent: int, wide: DType) -> PrimFunc:
    """Return a linear program for this many slices, whose slices are of a wide type.

    Args:
        func: A program that is linear along the axis.
        axis: The axis.
        extent: The number of slices.
        wide: `float64`, or `int64` if the slices are of integers.
    """

    def slices(expr: Expr) -> Expr:
        """Return an expression of slices without conversions; its other factors in the type."""
        if not any(isinstance(node, Load) and node.buffer in axis.dims for node in walk(expr)):
            return _converted(expr, wide)
        if isinstance(expr, Cast):
            return slices(expr.value)
        return expr if isinstance(expr, Load) else map_expr(expr, slices)

    def visit(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, visit, lambda expr: expr)
        if isinstance(new, Store) and new.buffer in axis.dims:
            return Store(new.buffer, new.indices, slices(new.value))
        return new

    body = visit(func.body)
    assert isinstance(body, type(func.body))
    return with_extent(PrimFunc(func.name, func.params, body, func.attrs), axis, extent, wide)


def _converted(expr: Expr, dtype: DType) -> Expr:
    match expr:
        case FloatImm(value):
            return FloatImm(value, dtype)
        case IntImm(value):
            return IntImm(value, dtype)
        case Cast(to, Load(buffer, _) as load) if keeps_values(buffer.dtype, to):
            return Cast(dtype, load)  # one conversion, as the oracle's sums of products need
        case _:
            return expr if dtype_of(expr) == dtype else Cast(dtype, expr)
