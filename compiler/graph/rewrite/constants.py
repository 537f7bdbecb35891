"""Facts about constant operands, for patterns."""

from __future__ import annotations

import numpy as np

from compiler.graph.nodes import Array, Constant, Operand, constant
from compiler.ir.core.dtypes import is_float

RELATIVE_ERROR = 1e-5
"""How far a number of a model may be from that of a pattern: exporters round to float32. Chosen."""


def known(operand: Operand | None) -> Array | None:
    """Return the elements of a constant of floats in float64; None for any other operand."""
    if not isinstance(operand, Constant) or operand.array is None:
        return None
    if not is_float(operand.type.dtype):
        return None
    return operand.elements.astype(np.float64)


def number(operand: Operand | None) -> float | None:
    """Return the only element of a constant of floats; None for any other operand."""
    elements = known(operand)
    return float(elements.reshape(-1)[0]) if elements is not None and elements.size == 1 else None


def is_number(operand: Operand | None, value: float) -> bool:
    """Return whether an operand is a constant of one element that is nearly a value."""
    element = number(operand)
    return element is not None and bool(np.isclose(element, value, rtol=RELATIVE_ERROR, atol=0))


def rounded(elements: Array, like: Constant) -> Constant:
    """Return elements as a constant of the type and the name of another one."""
    return constant(elements.astype(like.type.dtype), like.name)


def along(elements: Array, axis: int, rank: int) -> Array | None:
    """Return the elements along the only axis on which a broadcast operand differs.

    Args:
        elements: The elements of an operand that is broadcast to a tensor.
        axis: The axis of the tensor.
        rank: The rank of the tensor.

    Returns:
        The elements, one of them if they are all broadcast; None if another axis differs.
    """
    if elements.ndim > rank:
        return None
    padded = elements.reshape((1,) * (rank - elements.ndim) + elements.shape)
    return padded.reshape(-1) if padded.size == padded.shape[axis] else None
