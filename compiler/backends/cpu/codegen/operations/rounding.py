"""Rounded floats as integers: x86 rounds and converts in one instruction.

    uint8(max(min(round(x) + 3, 255), 0))  ->  uint8(lrint(max(min(x, 252), -3)) + 3)

The limits are whole numbers, so clamping before or after rounding is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.core.dtypes import bits, is_signed
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Call, Cast, Expr, FloatImm

_EXACT = 1 << 22
"""Sums of whole numbers up to it are exact in float32."""


@dataclass(frozen=True, slots=True)
class RoundedSum:
    """A float32 rounded to the nearest integer, halves to the even one, plus an offset."""

    value: Expr
    offset: int


def rounded_sum(cast: Cast) -> RoundedSum | None:
    """Return a conversion as a rounded sum, if the float was rounded; it may be clamped.

    Like the conversion, the sum is arbitrary if it does not fit the type.
    """
    if bits(cast.dtype) > 32 or not (is_signed(cast.dtype) or cast.dtype in ("uint8", "uint16")):
        return None
    rounded = _rounded(cast.value)
    # A wider integer may be a sum that float32 does not hold exactly.
    if rounded is None or (rounded.offset and bits(cast.dtype) > 16):
        return None
    return rounded


def _rounded(expr: Expr) -> RoundedSum | None:
    match expr:
        case Call("round" | "nearbyint", (x,)) if dtype_of(x) == "float32":
            return RoundedSum(x, 0)
        case BinOp("+", Call() as call, FloatImm(offset)) if _is_whole(offset):
            rounded = _rounded(call)
            return None if rounded is None else RoundedSum(rounded.value, int(offset))
        case BinOp("min" | "max" as op, inner, FloatImm(limit)) if _is_whole(limit):
            if (rounded := _rounded(inner)) is None:
                return None
            shifted = FloatImm(limit - rounded.offset, "float32")
            return RoundedSum(BinOp(op, rounded.value, shifted), rounded.offset)
        case _:
            return None


def _is_whole(number: float) -> bool:
    return abs(number) <= _EXACT and number == int(number)
