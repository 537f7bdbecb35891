"""Functions on values: choices, logic and elementwise mathematics."""

from __future__ import annotations

import math
from collections.abc import Callable

from compiler.ir.core.dtypes import DType, bits, is_float
from compiler.ir.core.intrinsics import result_dtype
from compiler.ir.core.nodes import Call, Conditional, Expr, Logic, LogicOp, Not, Select
from compiler.te.value import Value, ValueLike, arithmetic, as_value, const, same_dtype


def if_then_else(condition: Value, then: ValueLike, otherwise: ValueLike) -> Value:
    """Choose by a condition; it may guard an access, as only the chosen side is evaluated.

    Raises:
        TypeError: If the condition is not a bool, or the sides have different types.
    """
    return _choice(Conditional, condition, then, otherwise)


def select(condition: Value, then: ValueLike, otherwise: ValueLike) -> Value:
    """Choose by a condition; both sides are evaluated.

    Raises:
        TypeError: If the condition is not a bool, or the sides have different types.
    """
    return _choice(Select, condition, then, otherwise)


def all(*conditions: Value) -> Value:
    """Return whether every condition holds."""
    return _fold("and", conditions)


def any(*conditions: Value) -> Value:
    """Return whether at least one condition holds."""
    return _fold("or", conditions)


def logical_not(condition: Value) -> Value:
    """Return whether a condition does not hold."""
    return Value(Not(_condition(condition).expr), condition)


def cast(dtype: DType, value: ValueLike) -> Value:
    """Convert to another type."""
    return as_value(value).astype(dtype)


def reinterpret(dtype: DType, value: Value) -> Value:
    """Return the bits of a value as those of another type of the same size.

    Raises:
        TypeError: If the sizes differ, or a type is `bool`.
    """
    if bits(dtype) != bits(value.dtype) or "bool" in (dtype, value.dtype):
        raise TypeError(f"te.reinterpret: {value.dtype} can't be reinterpreted as {dtype}")
    return Value(Call("reinterpret", (value.expr,), dtype), value)


def abs(x: ValueLike) -> Value:
    """Return the absolute value."""
    return _call("abs", x)


def acos(x: ValueLike) -> Value:
    """Return the arc cosine."""
    return _call("acos", x)


def acosh(x: ValueLike) -> Value:
    """Return the inverse hyperbolic cosine."""
    return _call("acosh", x)


def asin(x: ValueLike) -> Value:
    """Return the arc sine."""
    return _call("asin", x)


def asinh(x: ValueLike) -> Value:
    """Return the inverse hyperbolic sine."""
    return _call("asinh", x)


def atan(x: ValueLike) -> Value:
    """Return the arc tangent."""
    return _call("atan", x)


def atanh(x: ValueLike) -> Value:
    """Return the inverse hyperbolic tangent."""
    return _call("atanh", x)


def ceil(x: ValueLike) -> Value:
    """Round up."""
    return _call("ceil", x)


def cos(x: ValueLike) -> Value:
    """Return the cosine."""
    return _call("cos", x)


def cosh(x: ValueLike) -> Value:
    """Return the hyperbolic cosine."""
    return _call("cosh", x)


def div(x: ValueLike, y: ValueLike) -> Value:
    """Divide; for integers, the quotient is rounded towards zero, as in C."""
    a, b = same_dtype(x, y, "te.div")
    return arithmetic("/", a, b) if is_float(a.dtype) else truncdiv(a, b)


def erf(x: ValueLike) -> Value:
    """Return the error function."""
    return _call("erf", x)


def exp(x: ValueLike) -> Value:
    """Return e to the power of `x`."""
    return _call("exp", x)


def exp2(x: ValueLike) -> Value:
    """Return 2 to the power of `x`."""
    return _call("exp2", x)


def floor(x: ValueLike) -> Value:
    """Round down."""
    return _call("floor", x)


def floordiv(x: ValueLike, y: ValueLike) -> Value:
    """Divide integers, rounding down."""
    return arithmetic("//", x, y)


def floormod(x: ValueLike, y: ValueLike) -> Value:
    """Return the remainder of integers, which has the sign of the divisor."""
    return arithmetic("%", x, y)


def fmod(x: ValueLike, y: ValueLike) -> Value:
    """Return the remainder of a division that is rounded towards zero."""
    return _call("fmod", *same_dtype(x, y, "te.fmod"))


def indexdiv(x: ValueLike, y: ValueLike) -> Value:
    """Divide indices, rounding down."""
    return arithmetic("//", x, y)


def indexmod(x: ValueLike, y: ValueLike) -> Value:
    """Return the remainder of indices."""
    return arithmetic("%", x, y)


def isfinite(x: ValueLike) -> Value:
    """Return whether a value is neither infinite nor a NaN."""
    return all(logical_not(isnan(x)), logical_not(isinf(x)))


def isinf(x: ValueLike) -> Value:
    """Return whether a value is infinite."""
    value = as_value(x)
    return abs(value) == const(math.inf, value.dtype)


def isnan(x: ValueLike) -> Value:
    """Return whether a value is a NaN: only a NaN differs from itself."""
    value = as_value(x)
    return value != value  # noqa: PLR0124


def log(x: ValueLike) -> Value:
    """Return the natural logarithm."""
    return _call("log", x)


def log10(x: ValueLike) -> Value:
    """Return the logarithm to base 10."""
    return _call("log10", x)


def log1p(x: ValueLike) -> Value:
    """Return the natural logarithm of 1 + `x`, which is exact near 0."""
    return _call("log1p", x)


def log2(x: ValueLike) -> Value:
    """Return the logarithm to base 2."""
    return _call("log2", x)


def logaddexp(x: ValueLike, y: ValueLike) -> Value:
    """Return the logarithm of the sum of two exponentials."""
    return log(exp(x) + exp(y))


def nearbyint(x: ValueLike) -> Value:
    """Round to the nearest integer, halves to the even one."""
    return _call("round", x)


def power(x: ValueLike, y: ValueLike) -> Value:
    """Return `x` to the power of `y`."""
    return _call("pow", *same_dtype(x, y, "te.power"))


def round(x: ValueLike) -> Value:
    """Round to the nearest integer, halves to the even one."""
    return _call("round", x)


def rsqrt(x: ValueLike) -> Value:
    """Return one over the square root."""
    return _call("rsqrt", x)


def sigmoid(x: ValueLike) -> Value:
    """Return the logistic function."""
    return _call("sigmoid", x)


def sin(x: ValueLike) -> Value:
    """Return the sine."""
    return _call("sin", x)


def sinh(x: ValueLike) -> Value:
    """Return the hyperbolic sine."""
    return _call("sinh", x)


def sqrt(x: ValueLike) -> Value:
    """Return the square root."""
    return _call("sqrt", x)


def tan(x: ValueLike) -> Value:
    """Return the tangent."""
    return _call("tan", x)


def tanh(x: ValueLike) -> Value:
    """Return the hyperbolic tangent."""
    return _call("tanh", x)


def trunc(x: ValueLike) -> Value:
    """Round towards zero."""
    return _call("trunc", x)


def truncdiv(x: ValueLike, y: ValueLike) -> Value:
    """Divide integers, rounding towards zero, as C does."""
    a, b = same_dtype(x, y, "te.truncdiv")
    return a // b + select(_is_low(a, b), const(1, a.dtype), const(0, a.dtype))


def truncmod(x: ValueLike, y: ValueLike) -> Value:
    """Return the remainder of a division that is rounded towards zero, as C does."""
    a, b = same_dtype(x, y, "te.truncmod")
    # Not `a - quotient * b`, which is `a` if `b` is zero.
    return a % b - select(_is_low(a, b), b, const(0, a.dtype))


def _is_low(a: Value, b: Value) -> Value:
    """Return whether `a // b`, which rounds down, is one less than rounded towards zero."""
    return all(a % b != 0, any(all(a < 0, b > 0), all(a > 0, b < 0)))


def _call(name: str, *args: ValueLike) -> Value:
    values = [as_value(a) for a in args]
    try:
        dtype = result_dtype(name, [v.dtype for v in values])
    except ValueError as error:
        raise TypeError(f"te.{error}") from None
    return Value(Call(name, tuple(v.expr for v in values), dtype), *values)


def _choice(
    node: Callable[[Expr, Expr, Expr], Expr],
    condition: Value,
    then: ValueLike,
    otherwise: ValueLike,
) -> Value:
    cond = _condition(condition)
    a, b = same_dtype(then, otherwise, "a choice")
    return Value(node(cond.expr, a.expr, b.expr), cond, a, b)


def _fold(op: LogicOp, conditions: tuple[Value, ...]) -> Value:
    if not conditions:
        raise TypeError(f"'{op}' of no conditions: expected at least one")
    total = _condition(conditions[0])
    for condition in conditions[1:]:
        right = _condition(condition)
        total = Value(Logic(op, total.expr, right.expr), total, right)
    return total


def _condition(value: ValueLike) -> Value:
    condition = as_value(value)
    if condition.dtype != "bool":
        raise TypeError(f"expected a condition, got a value of type {condition.dtype}")
    return condition
