"""Parameters: the arrays that a kernel or a model takes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .dtypes import numpy_dtype

ENTRY = "lw_kernel"
"""The function of a kernel's object code: it takes the address of its arguments."""


@dataclass(frozen=True, slots=True)
class Param:
    """One array that a kernel or a model takes.

    Attributes:
        dtype: The name of the element type.
        is_output: Whether the array is written.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_output: bool

    @property
    def element_bytes(self) -> int:
        """Return the size of an element."""
        return numpy_dtype(self.dtype).itemsize

    @property
    def size_bytes(self) -> int:
        """Return the size of the array."""
        return math.prod(self.shape) * self.element_bytes


def describe_kernel(name: str, params: Iterable[Param]) -> str:
    """Return a signature such as `matmul(A: float32[64, 64])`."""
    return f"{name}({', '.join(f'{p.name}: {p.dtype}{list(p.shape)}' for p in params)})"
