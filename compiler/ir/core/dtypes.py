"""Scalar data types, named as NumPy names them."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import ml_dtypes  # registers bfloat16 and the floats of 8 bits with NumPy, too
import numpy as np

DType: TypeAlias = Literal[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]

DTYPES: frozenset[str] = frozenset(get_args(DType))

_BITS: dict[str, int] = {
    "bool": 8,
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "uint8": 8,
    "uint16": 16,
    "uint32": 32,
    "uint64": 64,
    "float8_e4m3fn": 8,
    "float8_e5m2": 8,
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
}

# Sets, because passes ask for the kind of a type many times for every node.
_SIGNED = frozenset(name for name in DTYPES if name.startswith("int"))
_INTEGERS = frozenset(name for name in DTYPES if name.startswith(("int", "uint")))
_FLOATS = DTYPES - _INTEGERS - {"bool"}
_NARROW_FLOATS = frozenset(name for name in _FLOATS if _BITS[name] < 32)


def bits(dtype: DType) -> int:
    """Return the storage size of `dtype` in bits; a bool is stored as a byte."""
    return _BITS[dtype]


def size_bytes(dtype: DType) -> int:
    """Return the storage size of `dtype` in bytes."""
    return _BITS[dtype] // 8


def is_float(dtype: DType) -> bool:
    """Return whether `dtype` is a floating-point type."""
    return dtype in _FLOATS


def is_narrow_float(dtype: DType) -> bool:
    """Return whether `dtype` is a float of 8 or 16 bits: its values are computed in 32 bits."""
    return dtype in _NARROW_FLOATS


def sum_dtype(dtype: DType) -> DType:
    """Return the type in which operators sum values of `dtype`: float32 for narrow floats."""
    return "float32" if is_narrow_float(dtype) else dtype


def is_signed(dtype: DType) -> bool:
    """Return whether `dtype` is a signed integer type."""
    return dtype in _SIGNED


def is_integer(dtype: DType) -> bool:
    """Return whether `dtype` is an integer type; bool is not."""
    return dtype in _INTEGERS


def wrapped(value: int, dtype: DType) -> int:
    """Return the result of a conversion of `value` to an integer type."""
    size = 1 << bits(dtype)
    low = -size // 2 if is_signed(dtype) else 0
    return (value - low) % size + low


def smallest_and_largest(dtype: DType) -> tuple[float, float]:
    """Return the smallest and largest finite value of a number type; integers as `int`."""
    if is_float(dtype):
        kind = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        return float(kind.min), float(kind.max)
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def has_infinity(dtype: DType) -> bool:
    """Return whether a floating-point type has infinities; without them, overflow gives NaN."""
    return dtype != "float8_e4m3fn"


def epsilon(dtype: DType) -> float:
    """Return the distance from one to the next larger value of a floating-point type."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
