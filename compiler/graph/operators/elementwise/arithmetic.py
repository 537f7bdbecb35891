"""Arithmetic on two tensors that are broadcast against each other."""

from __future__ import annotations

import numpy as np

from compiler import te
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.broadcasting import broadcast_shapes, element
from compiler.graph.operators.elementwise.maps import declare_map, widened
from compiler.graph.operators.types import check_accepts
from compiler.ir.core.dtypes import DType, is_integer, is_signed, sum_dtype
from compiler.ir.core.nodes import static_shape


def _floor_mod(a: te.Value, b: te.Value) -> te.Value:
    if is_integer(a.dtype):
        return te.floormod(a, b)
    remainder = te.fmod(a, b)
    has_other_sign = te.any(te.all(remainder < 0, b > 0), te.all(remainder > 0, b < 0))
    return te.select(has_other_sign, remainder + b, remainder)


def _truncated_quotient(a: Array, b: Array) -> Array:
    """Return the quotient of integers, rounded towards zero; 0 if the divisor is 0."""
    divisor = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // divisor
    is_low = (quotient < 0) & (a % divisor != 0)
    return np.asarray(np.where(b == 0, a.dtype.type(0), quotient + is_low.astype(a.dtype)))


def _divide_reference(a: Array, b: Array) -> Array:
    return np.asarray(a / b if a.dtype.kind == "f" else _truncated_quotient(a, b))


declare_map("add", lambda a, b: a + b, np.add, operands=2)
declare_map("subtract", lambda a, b: a - b, np.subtract, operands=2)
declare_map("multiply", lambda a, b: a * b, np.multiply, operands=2)
declare_map("divide", te.div, _divide_reference, operands=2)  # integers: towards zero, as ONNX
declare_map("floor_divide", te.floordiv, np.floor_divide, "integer", operands=2)
declare_map("mod", _floor_mod, np.mod, operands=2)
declare_map(
    "fmod",
    lambda a, b: te.truncmod(a, b) if is_integer(a.dtype) else te.fmod(a, b),
    np.fmod,
    operands=2,
)
declare_map("maximum", te.max, np.maximum, operands=2)
declare_map("minimum", te.min, np.minimum, operands=2)


def _power_tensors(base: te.Tensor, exponent: te.Tensor) -> te.Tensor:
    shape = broadcast_shapes(static_shape(base.buffer), static_shape(exponent.buffer))
    if is_integer(base.dtype) and is_integer(exponent.dtype):
        return _integer_power(base, exponent, shape)
    wide = _power_dtype(base.dtype, exponent.dtype)

    def value(*i: te.Value) -> te.Value:
        power = te.power(element(base, i).astype(wide), element(exponent, i).astype(wide))
        return power.astype(base.dtype)

    return te.compute(shape, value, name="power")


def _power_dtype(base: DType, exponent: DType) -> DType:
    if is_integer(base) or "float64" in {base, exponent}:
        return "float64"
    return sum_dtype(base)


def _integer_power(base: te.Tensor, exponent: te.Tensor, shape: tuple[int, ...]) -> te.Tensor:
    """Return a power of integers by repeated squaring, exact unless it overflows.

    Of an exponent beyond 63 or below 0 only the parity matters: powers of -1, 0 and 1 follow from
    it, and others overflow or are fractions, which are rounded to 0.
    """

    def bounded(*i: te.Value) -> te.Value:
        given = element(exponent, i).astype("int64")
        odd = te.floormod(given, te.const(2, "int64"))
        return te.select(te.any(given < 0, given > 63), odd, given)

    steps = te.compute(shape, bounded, name="exponent")
    square = te.compute(shape, lambda *i: element(base, i), name="square")
    one = te.const(1, base.dtype)
    power = te.compute(shape, lambda *_: one, name="one")
    for bit in range(6):

        def multiplied(
            *i: te.Value, power: te.Tensor = power, square: te.Tensor = square, bit: int = bit
        ) -> te.Value:
            is_set = (steps[i] >> bit) % 2 == 1
            return te.select(is_set, power[i] * square[i], power[i])

        power = te.compute(shape, multiplied, name="power")
        square = te.compute(shape, lambda *i, square=square: square[i] * square[i], name="square")

    def rounded(*i: te.Value) -> te.Value:
        number = element(base, i)
        is_unit = number == one
        if is_signed(base.dtype):
            is_unit = te.any(is_unit, number == -1)
        is_fraction = te.all(element(exponent, i).astype("int64") < 0, te.logical_not(is_unit))
        return te.select(is_fraction, te.const(0, base.dtype), power[i])

    if not is_signed(exponent.dtype):
        return power
    return te.compute(shape, rounded, name="power")


def _power_reference(base: Array, exponent: Array) -> Array:
    if base.dtype.kind in "iu" and exponent.dtype.kind in "iu":
        modulus = 1 << 8 * base.dtype.itemsize

        def power(x: int, y: int) -> int:
            if y < 0:
                return x ** (y % 2) if x in {1, -1} else 0
            return pow(x, y, modulus)

        exact = np.frompyfunc(power, 2, 1)(base.astype(object), exponent.astype(object))
        exact = np.asarray(exact, object)  # of no axes, it is an integer of Python
        low = modulus // 2 if base.dtype.kind == "i" else 0
        return np.asarray((exact + low) % modulus - low).astype(base.dtype)
    wide = np.power(widened(base).astype(np.float64), exponent.astype(np.float64))
    return np.asarray(wide).astype(base.dtype)


@graph_operator("power", "map", tensors=_power_tensors, reference=_power_reference)
def power(base: TensorType, exponent: TensorType) -> TensorType:
    """Infer a power in the type of the base; the exponent may have another type."""
    check_accepts("power", "number", base, exponent)
    return TensorType(broadcast_shapes(base.shape, exponent.shape), base.dtype)
