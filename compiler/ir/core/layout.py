"""The layout of buffers in memory: dense and row-major."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Buffer, Expr, IntImm, static_shape


def strides_of(buffer: Buffer) -> tuple[int, ...]:
    """Return the stride of each dimension, in elements.

    Raises:
        ValueError: If an extent is symbolic.
    """
    shape = static_shape(buffer)
    return tuple(prod(shape[dimension + 1 :]) for dimension in range(len(shape)))


def symbolic_strides(buffer: Buffer) -> tuple[Expr, ...]:
    """Return the stride of each dimension, in elements; see `num_elements`."""
    return tuple(num_elements(buffer.shape[dim + 1 :]) for dim in range(len(buffer.shape)))


def num_elements(shape: Sequence[Expr]) -> Expr:
    """Return the number of elements of a shape, to be computed in 64 bits whatever its type says.

    It is a literal if no extent is symbolic.
    """
    symbolic = [extent for extent in shape if not isinstance(extent, IntImm)]
    dtype = dtype_of(symbolic[0]) if symbolic else "int32"
    number = prod(extent.value for extent in shape if isinstance(extent, IntImm))
    total: Expr = IntImm(number, dtype)
    for extent in symbolic:
        total = extent if total == IntImm(1, dtype) else BinOp("*", extent, total)
    return total
