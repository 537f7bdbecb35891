"""The types of PTX as layouts of NumPy arrays.

A register is a row of unsigned integers, one element a lane (a predicate: booleans). An instruction
views it as its own type: `f32` as float32, `f16x2` as two float16 in the last dimension.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = Any
"""A NumPy array with one element a lane; or, if all lanes have the same value, a NumPy scalar."""

Lanes: TypeAlias = slice | NDArray[np.int64]
"""The active lanes: all of them (`ALL`), or their numbers, ascending."""

ALL = slice(None)

_FLOATS: dict[str, Any] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "tf32": np.float32,
}
_INTEGERS = {
    kind + str(bits): np.dtype(f"{'i' if kind == 's' else 'u'}{bits // 8}")
    for kind in "sub"
    for bits in (8, 16, 32, 64)
}
_TYPE = re.compile(r"(?:[sub](?:8|16|32|64|128)|f(?:16|32|64)|bf16|e4m3|e5m2|tf32|pred)(?:x[24])?")


@dataclass(frozen=True, slots=True)
class PtxType:
    """A type of an instruction.

    Attributes:
        name: The name of one element, such as `f16` of `f16x2`.
        dtype: The NumPy type of one element.
        count: The number of elements in one register.
    """

    name: str
    dtype: np.dtype[Any]
    count: int = 1

    @property
    def num_bytes(self) -> int:
        """Return the size of a register of this type."""
        return self.dtype.itemsize * self.count

    @property
    def is_signed(self) -> bool:
        """Return whether it is a signed integer."""
        return self.name[0] == "s"

    @property
    def is_float(self) -> bool:
        """Return whether it is a floating-point number."""
        return self.name in _FLOATS


@cache
def ptx_type(text: str) -> PtxType:
    """Return the type that a suffix such as `f32` or `bf16x2` names."""
    name, _, count = text.partition("x")
    if name == "pred":
        return PtxType(name, np.dtype(np.bool_))
    dtype = np.dtype(_FLOATS[name]) if name in _FLOATS else _INTEGERS[name]
    return PtxType(name, dtype, int(count or 1))


@lru_cache(maxsize=4096)
def types_of(parts: tuple[str, ...]) -> tuple[PtxType, ...]:
    """Return the types among the suffixes of an instruction."""
    return tuple(ptx_type(part) for part in parts[1:] if _TYPE.fullmatch(part) and part != "b128")


def unsigned(num_bytes: int) -> np.dtype[Any]:
    """Return the unsigned integer type of a size."""
    return np.dtype(f"u{num_bytes}")
