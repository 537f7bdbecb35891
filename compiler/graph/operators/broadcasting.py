"""Shapes of operands that are broadcast against each other, as NumPy does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.extents import Extent, show_shape
from compiler.ir.core.nodes import static_shape

E = TypeVar("E", int, Extent)
"""Integers, or extents that may be symbolic."""


def broadcast_shapes(*shapes: tuple[E, ...]) -> tuple[E, ...]:
    """Return the shape that all shapes are broadcast to.

    Raises:
        ModelError: If extents differ and neither is 1.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(_common(extents, shapes) for extents in zip(*padded, strict=True))


def element(tensor: te.Tensor, indices: Sequence[te.Value]) -> te.Value:
    """Return the element of a tensor that is broadcast, at indices of the result."""
    extents = static_shape(tensor.buffer)
    last = indices[len(indices) - len(extents) :]
    return tensor[tuple(0 if n == 1 else i for n, i in zip(extents, last, strict=True))]


def _common(extents: tuple[E, ...], shapes: tuple[tuple[E, ...], ...]) -> E:
    others = list(dict.fromkeys(extent for extent in extents if extent != 1))
    if len(others) > 1:
        raise ModelError(f"shapes {', '.join(map(show_shape, shapes))} can't be broadcast")
    return others[0] if others else 1
