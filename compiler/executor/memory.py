"""Aligned arrays in the memory of the host, and the addresses of arrays."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"
# A cache line, and the width of the widest vectors (AVX-512).
ALIGNMENT = 64
"""The multiple at which the workspaces and the packed copies of kernels begin."""
_bytes_of = ctypes.c_char.from_buffer


def aligned_empty(shape: Sequence[int], dtype: str | np.dtype[Any]) -> Array:
    """Return an uninitialised array that starts at a cache line.

    Kernels that do little work for each element are faster on such arrays: vectors of NumPy's
    arrays may cross two cache lines. On Zen 3, `layer_norm` of 1024 x 768 gains a fifth.

    Args:
        shape: The extents.
        dtype: The element type, or its name, such as `"float32"`.
    """
    kind = np.dtype(dtype)
    return _aligned(np.empty, math.prod(shape) * kind.itemsize).view(kind).reshape(shape)


def aligned_zeros(shape: Sequence[int], dtype: str | np.dtype[Any]) -> Array:
    """Return an array of zeros that starts at a cache line, for workspaces and packed constants.

    Kernels compute with padding that they do not write. Zeros are fast on every CPU; numbers that
    old memory happens to hold may be subnormal (`compiler.passes.cpu.padded_buffers`).
    """
    kind = np.dtype(dtype)
    return _aligned(np.zeros, math.prod(shape) * kind.itemsize).view(kind).reshape(shape)


def _aligned(allocate: Callable[..., Array], size_bytes: int) -> Array:
    raw = allocate(size_bytes + ALIGNMENT, dtype=np.uint8)
    offset = -address_of(raw) % ALIGNMENT
    return raw[offset : offset + size_bytes]


def address_of(array: Array) -> int:
    """Return the address of a contiguous array."""
    try:
        # This takes a quarter of the time of `array.ctypes`.
        return ctypes.addressof(_bytes_of(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # it is read-only, empty, or of a type that buffers lack
        return int(array.ctypes.data)
