"""Extents and strides as expressions, for the parser."""

from __future__ import annotations

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Expr,
    IntImm,
)
from compiler.ir.core.promotion import promoted


def strides_of(buffer: Buffer) -> tuple[Expr, ...]:
    """Return the strides of a buffer in elements; a dense buffer has them, too."""
    if buffer.strides:
        return buffer.strides
    strides: list[Expr] = []
    step: Expr = IntImm(1)
    for extent in reversed(buffer.shape):
        strides.append(step)
        step = simplify(BinOp("*", *same_type(extent, step)))
    return tuple(reversed(strides))


def extent_between(start: Expr, stop: Expr) -> Expr:
    """Return the number of values from `start` up to, but excluding, `stop`."""
    match start, stop:
        case IntImm(0), _:
            return extent_of(stop)
        case _, BinOp("+", lhs, length) if lhs == start:
            return extent_of(length)
        case _:
            return simplify(BinOp("-", stop, start))


def extent_of(expr: Expr) -> Expr:
    """Return a constant if an expression is provably constant, else the expression itself."""
    simplified = simplify(expr)
    return simplified if isinstance(simplified, IntImm) else expr


def same_type(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Return two integers converted to one type."""
    return (a, b) if dtype_of(a) == dtype_of(b) else promoted(a, b)
