"""Parameters: the arrays that a kernel or a model takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .dtypes import numpy_dtype
from .extents import Extent, fixed


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbolic extent, and its range with both ends included."""

    name: str
    least: int
    most: int


ENTRY = "lw_kernel"
"""The function of a kernel's object code: it takes the address of its arguments."""


@dataclass(frozen=True, slots=True)
class Param:
    """One array, or one number, that a kernel or a model takes.

    Attributes:
        extents: Those of an array, as numbers or as formulas of symbolic extents and of numbers
            that are passed.
        dtype: The name of the element type, or of the type of a number.
        is_output: Whether the array is written.
        is_scalar: Whether it is a number, which is passed by value.
        limits: The range of an integer that is passed; None for any value of its type.
    """

    name: str
    extents: tuple[Extent, ...]
    dtype: str
    is_output: bool
    is_scalar: bool = False
    limits: tuple[int, int] | None = None

    @property
    def is_sized(self) -> bool:
        """Return whether the array has one shape in all calls."""
        return all(isinstance(extent, int) for extent in self.extents)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the array.

        Raises:
            ValueError: If an extent is symbolic.
        """
        return tuple(map(fixed, self.extents))

    @property
    def element_bytes(self) -> int:
        """Return the size of an element."""
        return numpy_dtype(self.dtype).itemsize

    @property
    def size_bytes(self) -> int:
        """Return the size of the array."""
        return math.prod(self.shape) * self.element_bytes

    def to_json(self) -> dict[str, object]:
        """Return the parameter as JSON; that of an array of one shape is of every version."""
        fields: dict[str, object] = {
            "name": self.name,
            "shape": list(self.extents),
            "dtype": self.dtype,
            "is_output": self.is_output,
        }
        if self.is_scalar:
            fields["is_scalar"], fields["limits"] = True, self.limits
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Param:
        """Return the parameter of `to_json`.

        Raises:
            LookupError, TypeError, ValueError: If it is none.
        """
        rest = dict(fields)
        extents = tuple(e if isinstance(e, str) else int(e) for e in rest.pop("shape"))
        limits = rest.pop("limits", None)
        return cls(extents=extents, limits=None if limits is None else tuple(limits), **rest)


def describe_kernel(name: str, params: Iterable[Param]) -> str:
    """Return a signature such as `matmul(A: float32[M, 64], n: int32)`."""
    return f"{name}({', '.join(map(describe_param, params))})"


def describe_param(param: Param) -> str:
    """Return a parameter as in a signature, such as `A: float32[M, 64]`."""
    shape = "" if param.is_scalar else f"[{', '.join(map(str, param.extents))}]"
    return f"{param.name}: {param.dtype}{shape}"
