"""Vectors of indices: as a first element and a step, where they are that."""

from __future__ import annotations

from collections.abc import Callable

from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.nodes import BinOp, Broadcast, Cast, Expr, IntImm, Ramp, Var


def as_ramp(index: Expr) -> Ramp | None:
    """Return an index as a ramp; of a scalar or a broadcast, the step is 0. None if it is none."""
    lanes = 1 if isinstance(index, Var) else lanes_of(index)
    if lanes == 1:
        return Ramp(index, 0, 1)
    match index:
        case Ramp():
            return index
        case Broadcast(value, _):
            return Ramp(value, 0, lanes)
        case BinOp("+" | "-" as op, lhs, rhs):
            a, b = as_ramp(lhs), as_ramp(rhs)
            if a is None or b is None:
                return None
            step = a.stride + b.stride if op == "+" else a.stride - b.stride
            return Ramp(BinOp(op, a.base, b.base), step, lanes)
        case BinOp("*", lhs, rhs):
            a, b = as_ramp(lhs), as_ramp(rhs)
            if a is None or b is None:
                return None
            if isinstance(a.base, IntImm) and a.stride == 0:
                a, b = b, a
            if isinstance(b.base, IntImm) and b.stride == 0:
                return Ramp(BinOp("*", a.base, b.base), a.stride * b.base.value, lanes)
            return None
        case _:
            return None


def ends(index: Expr) -> tuple[Expr, ...] | None:
    """Return the first and last element of an index, one if it is a scalar; None if unknown."""
    ramp = as_ramp(index)
    if ramp is None:
        return None
    reach = ramp.stride * (ramp.lanes - 1)
    if reach == 0:
        return (ramp.base,)
    return ramp.base, BinOp("+", ramp.base, IntImm(reach, dtype_of(ramp.base)))


def on_base(index: Expr, fn: Callable[[Expr], Expr]) -> Expr:
    """Apply a function that moves scalars by a fixed distance to the base of a vector."""
    if lanes_of(index) == 1:
        return fn(index)
    ramp = as_ramp(index)
    assert ramp is not None, "the box of this access is the whole dimension"
    base = fn(ramp.base)
    return Broadcast(base, ramp.lanes) if ramp.stride == 0 else Ramp(base, ramp.stride, ramp.lanes)


def shifted(index: Expr, distance: Expr) -> Expr:
    """Return an index, which may be a vector, moved by a scalar distance."""
    if isinstance(distance, IntImm) and distance.value == 0:
        return index
    dtype = dtype_of(index)
    if dtype_of(distance) != dtype:
        distance = (
            IntImm(distance.value, dtype) if isinstance(distance, IntImm) else Cast(dtype, distance)
        )
    if as_ramp(index) is None:
        return BinOp("+", index, Broadcast(distance, lanes_of(index)))
    return on_base(index, lambda base: BinOp("+", base, distance))
