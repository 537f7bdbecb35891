"""The text of LLVM types and literals."""

from __future__ import annotations

import math
import struct

from compiler.ir.core.dtypes import DType, is_float, is_integer, is_signed, size_bytes
from compiler.ir.core.nodes import FloatImm, IntImm

_FLOATS = {"float16": "float", "bfloat16": "float", "float32": "float", "float64": "double"}


def is_narrow(dtype: DType) -> bool:
    """Return whether a type is a 16-bit float: its values are computed in 32 bits."""
    return dtype in ("float16", "bfloat16")


def scalar_type(dtype: DType) -> str:
    """Return the type of a value in a register; a bool is one bit."""
    if dtype in _FLOATS:
        return _FLOATS[dtype]
    return "i1" if dtype == "bool" else f"i{dtype.lstrip('uint')}"


def memory_type(dtype: DType) -> str:
    """Return the type of an element in memory; a bool is a byte, a narrow float its bits."""
    if is_narrow(dtype):
        return "i16"
    return "i8" if dtype == "bool" else scalar_type(dtype)


def vector(scalar: str, lanes: int) -> str:
    """Return the type of `lanes` scalars; of one, the scalar type itself."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def splat(scalar: str, text: str, lanes: int) -> str:
    """Return a literal of `lanes` copies of the scalar literal `text`."""
    return text if lanes == 1 else f"splat ({scalar} {text})"


def literal(imm: IntImm | FloatImm) -> str:
    """Return a scalar literal; floats in hexadecimal, so that no digit is lost."""
    if isinstance(imm, IntImm):
        if is_integer(imm.dtype):
            return str(imm.value)
        return "true" if imm.value else "false"
    assert is_float(imm.dtype)
    # LLVM writes a float as the double of the same value.
    value = imm.value
    if imm.dtype == "float16":
        value = _rounded(value, ">e")
    elif imm.dtype != "float64":
        value = _rounded(value, ">f")
    if imm.dtype == "bfloat16":
        value = _brain(value)
    return f"0x{struct.pack('>d', value).hex().upper()}"


def _brain(value: float) -> float:
    """Return the value that the upper half of a float holds, rounded to even."""
    bits = int(struct.unpack(">I", struct.pack(">f", value))[0])
    if not math.isnan(value):
        bits += 0x7FFF + (bits >> 16 & 1)
    upper = bits >> 16 << 16
    return float(struct.unpack(">f", struct.pack(">I", upper & 0xFFFFFFFF))[0])


def _rounded(value: float, kind: str) -> float:
    """Return the value that a narrower kind of float holds; infinity if it is too large."""
    try:
        return float(struct.unpack(kind, struct.pack(kind, value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def element_alignment(dtype: DType) -> int:
    """Return the alignment in bytes that every element has."""
    return size_bytes(dtype)


def type_suffix(scalar: str, lanes: int) -> str:
    """Return the suffix of an overloaded intrinsic's name for a type."""
    kind = {"float": "f32", "double": "f64"}.get(scalar, scalar)
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
