"""The layout of buffers in memory: dense and row-major."""

from __future__ import annotations

from math import prod

from compiler.ir.core.nodes import Buffer, static_shape


def strides_of(buffer: Buffer) -> tuple[int, ...]:
    """Return the stride of each dimension, in elements."""
    shape = static_shape(buffer)
    return tuple(prod(shape[dimension + 1 :]) for dimension in range(len(shape)))
