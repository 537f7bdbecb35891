"""The text of LLVM types and literals."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable
from functools import cache

import numpy as np

from compiler.ir.core.dtypes import (
    DType,
    bits,
    is_float,
    is_integer,
    is_narrow_float,
    is_signed,
    size_bytes,
)
from compiler.ir.core.nodes import FloatImm, IntImm


@cache
def scalar_type(dtype: DType) -> str:
    """Return the type of a value in a register; a bool is one bit."""
    if is_float(dtype):
        return "double" if dtype == "float64" else "float"
    return "i1" if dtype == "bool" else f"i{dtype.lstrip('uint')}"


@cache
def memory_type(dtype: DType) -> str:
    """Return the type of an element in memory; a bool is a byte, a narrow float its bits."""
    if is_narrow_float(dtype):
        return f"i{bits(dtype)}"
    return "i8" if dtype == "bool" else scalar_type(dtype)


def vector(scalar: str, lanes: int) -> str:
    """Return the type of `lanes` scalars; of one, the scalar type itself."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def splat(scalar: str, text: str, lanes: int) -> str:
    """Return a literal of `lanes` copies of the scalar literal `text`."""
    return text if lanes == 1 else f"splat ({scalar} {text})"


def literal_vector(scalar: str, numbers: Iterable[int]) -> str:
    """Return a literal of integers, one a lane."""
    return f"<{', '.join([f'{scalar} {number}' for number in numbers])}>"


def literal(imm: IntImm | FloatImm) -> str:
    """Return a scalar literal; floats in hexadecimal, so that no digit is lost."""
    if isinstance(imm, IntImm):
        if is_integer(imm.dtype):
            return str(imm.value)
        return "true" if imm.value else "false"
    assert is_float(imm.dtype)
    # LLVM writes a float as the double of the same value.
    return f"0x{struct.pack('>d', _rounded(imm)).hex().upper()}"


def _rounded(imm: FloatImm) -> float:
    """Return a float rounded to its type; it is infinite if the type has no number as large."""
    if imm.dtype == "float64":
        return imm.value
    if imm.dtype == "float32":
        return ctypes.c_float(imm.value).value  # a tenth of the time that NumPy takes
    with np.errstate(over="ignore"):
        return float(np.float64(imm.value).astype(imm.dtype).astype(np.float64))


def element_alignment(dtype: DType) -> int:
    """Return the alignment in bytes that every element has."""
    return size_bytes(dtype)


@cache
def type_suffix(scalar: str, lanes: int) -> str:
    """Return the suffix of an overloaded intrinsic's name for a type."""
    kind = {"half": "f16", "float": "f32", "double": "f64"}.get(scalar, scalar)
    return kind if lanes == 1 else f"v{lanes}{kind}"


def conversion(source: DType, target: DType) -> str | None:
    """Return the instruction that converts, or None if the bits stay the same."""
    from_type, to_type = scalar_type(source), scalar_type(target)
    if is_float(source) and is_float(target):
        if from_type == to_type:
            return None
        return "fpext" if to_type == "double" else "fptrunc"
    if is_float(source):
        return "fptosi" if is_signed(target) else "fptoui"
    if is_float(target):
        return "sitofp" if is_signed(source) else "uitofp"
    widths = int(from_type[1:]), int(to_type[1:])
    if widths[0] == widths[1]:
        return None
    if widths[0] > widths[1]:
        return "trunc"
    return "sext" if is_signed(source) else "zext"
