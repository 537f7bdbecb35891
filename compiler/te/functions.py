"""Functions on values: choices, logic and elementwise mathematics."""

from __future__ import annotations

from collections.abc import Callable

from compiler.ir.dtypes import DType
from compiler.ir.intrinsics import result_dtype
from compiler.ir.nodes import Call, Conditional, Expr, Logic, LogicOp, Not, Select
from compiler.te.value import Value, ValueLike, as_value, same_dtype


def if_then_else(condition: Value, then: ValueLike, otherwise: ValueLike) -> Value:
    """Choose by a condition; only the side that is taken is evaluated, so it may guard an access.

    Raises:
        TypeError: If the condition is no bool or the sides have types that differ.
    """
    return _choice(Conditional, condition, then, otherwise)


def select(condition: Value, then: ValueLike, otherwise: ValueLike) -> Value:
    """Choose by a condition; both sides are evaluated.

    Raises:
        TypeError: If the condition is no bool or the sides have types that differ.
    """
    return _choice(Select, condition, then, otherwise)


def all(*conditions: Value) -> Value:
    """Tell whether every condition holds."""
    return _fold("and", conditions)


def any(*conditions: Value) -> Value:
    """Tell whether at least one condition holds."""
    return _fold("or", conditions)


def logical_not(condition: Value) -> Value:
    """Tell whether a condition does not hold."""
    return Value(Not(_condition(condition).expr), condition)


def cast(dtype: DType, value: ValueLike) -> Value:
    """Convert to another type."""
    return as_value(value).astype(dtype)


def abs(x: ValueLike) -> Value:
    """Return the absolute value."""
    return _call("abs", x)


def ceil(x: ValueLike) -> Value:
    """Round up."""
    return _call("ceil", x)


def cos(x: ValueLike) -> Value:
    """Return the cosine."""
    return _call("cos", x)


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


def log(x: ValueLike) -> Value:
    """Return the natural logarithm."""
    return _call("log", x)


def log2(x: ValueLike) -> Value:
    """Return the logarithm to base 2."""
    return _call("log2", x)


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


def sqrt(x: ValueLike) -> Value:
    """Return the square root."""
    return _call("sqrt", x)


def tanh(x: ValueLike) -> Value:
    """Return the hyperbolic tangent."""
    return _call("tanh", x)


def trunc(x: ValueLike) -> Value:
    """Round towards zero."""
    return _call("trunc", x)


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
