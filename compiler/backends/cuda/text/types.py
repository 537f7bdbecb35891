"""The types and literals of CUDA C++ for the dtypes of programs.

Narrow floats are types of the prelude that hold bits in memory; values of them are `float`.
"""

from __future__ import annotations

import math

import numpy as np

from compiler.backends.error import BuildError
from compiler.ir.core.dtypes import DType, is_float, is_narrow_float
from compiler.ir.core.nodes import FloatImm, IntImm

_STORAGE: dict[DType, str] = {"float32": "float", "float64": "double", "int32": "int"}
_SUFFIXES = {"uint32": "u", "uint64": "ull", "int64": "ll"}
_LEAST_INT = -(1 << 31)
_LEAST_INT64 = -(1 << 63)

TYPE_ALIASES: dict[str, str] = {
    "int8": "using int8 = signed char;",
    "int16": "using int16 = short;",
    "int64": "using int64 = long long;",
    "uint8": "using uint8 = unsigned char;",
    "uint16": "using uint16 = unsigned short;",
    "uint32": "using uint32 = unsigned int;",
    "uint64": "using uint64 = unsigned long long;",
}
"""The declarations of types that C++ names otherwise."""


def storage_type(dtype: DType) -> str:
    """Return the type of elements in memory."""
    return _STORAGE.get(dtype, dtype)


def value_type(dtype: DType) -> str:
    """Return the type of values in registers."""
    return "float" if is_narrow_float(dtype) else storage_type(dtype)


def integer_literal(literal: IntImm) -> str:
    """Return an integer or bool literal."""
    if literal.dtype == "bool":
        return "true" if literal.value else "false"
    if literal.value == _LEAST_INT:
        return "(-2147483647 - 1)"  # C++ has no negative literals: -2147483648 is a long long
    if literal.value == _LEAST_INT64:
        return "(-9223372036854775807ll - 1)"
    return f"{literal.value}{_SUFFIXES.get(literal.dtype, '')}"


def float_literal(literal: FloatImm) -> str:
    """Return a floating-point literal, rounded to its dtype, with the fewest digits."""
    value = float(np.asarray(literal.value).astype(np.dtype(literal.dtype)))
    double = literal.dtype == "float64"
    if math.isnan(value):
        return "(double)NAN" if double else "NAN"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}{'(double)' if double else ''}INFINITY"
    return repr(value) if double else f"{np.float32(value)!s}f"


def check_is_float(dtype: DType, construct: str) -> None:
    """Raise an error for a construct that exists for floats only.

    Raises:
        BuildError: If `dtype` is another type.
    """
    if not is_float(dtype):
        raise BuildError(f"CUDA has no {construct} of {dtype}", "codegen")
