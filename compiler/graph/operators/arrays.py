"""NumPy helpers of the references."""

from __future__ import annotations

import numpy as np

from compiler.graph.nodes import Array

_NARROW_FLOATS = {"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"}


def widened(array: Array, dtype: str | None = None) -> Array:
    """Return an array in the type of sums: float32 instead of narrow floats.

    Args:
        array: The operand of a sum.
        dtype: The type of the result; integers are summed in it.
    """
    if array.dtype.name in _NARROW_FLOATS:
        return array.astype(np.float32)
    is_integer = array.dtype.kind in "iu"
    return array.astype(dtype) if is_integer and dtype is not None else array


def is_float_array(array: Array) -> bool:
    """Return whether the elements of an array are floats, of NumPy or narrow ones."""
    return array.dtype.kind == "f" or array.dtype.name in _NARROW_FLOATS
