"""Mathematical functions of one tensor, element by element."""

from __future__ import annotations

import numpy as np

from compiler import te
from compiler.graph.nodes import Array
from compiler.graph.operators.elementwise.maps import declare_map
from compiler.ir.core.intrinsics import INTRINSICS


def _abs(x: te.Value) -> te.Value:
    return x if x.dtype.startswith("uint") else te.abs(x)


def _sign(x: te.Value) -> te.Value:
    """Return -1, 0 or 1; a NaN stays one."""
    positive = te.const(1, x.dtype)
    if x.dtype.startswith("uint"):
        return te.select(x > 0, positive, x)
    return te.select(x > 0, positive, te.select(x < 0, te.const(-1, x.dtype), x))


def _is_infinite(x: te.Value, *, detect_negative: bool, detect_positive: bool) -> te.Value:
    infinity = te.const(np.inf, x.dtype)
    if detect_negative and detect_positive:
        return te.abs(x) == infinity
    if detect_negative:
        return -x == infinity
    return x == infinity if detect_positive else te.const(0, "bool")


def _is_infinite_reference(x: Array, *, detect_negative: bool, detect_positive: bool) -> Array:
    return np.asarray((np.isneginf(x) & detect_negative) | (np.isposinf(x) & detect_positive))


def _logistic(x: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


for _name in ("acos", "acosh", "asin", "asinh", "atan", "atanh"):
    declare_map(_name, getattr(te, _name), getattr(np, _name.replace("a", "arc", 1)), "float")
for _name in ("ceil", "cos", "cosh", "exp", "floor", "log", "sin", "sinh", "sqrt", "tan", "tanh"):
    declare_map(_name, getattr(te, _name), getattr(np, _name), "float")

declare_map("abs", _abs, np.abs)
declare_map("erf", te.erf, INTRINSICS["erf"].reference, "float")
declare_map("negative", lambda x: -x, np.negative)
declare_map("reciprocal", lambda x: te.const(1, x.dtype) / x, lambda x: 1 / x, "float")
declare_map("round", te.round, np.rint, "float")  # halves to the even integer
declare_map("rsqrt", te.rsqrt, lambda x: 1 / np.sqrt(x), "float")
declare_map("sigmoid", te.sigmoid, _logistic, "float")
declare_map("sign", _sign, np.sign)
declare_map("trunc", te.trunc, np.trunc, "float")
declare_map("isnan", te.isnan, np.isnan, "float", "bool")
declare_map(
    "isinf",
    _is_infinite,
    _is_infinite_reference,
    "float",
    "bool",
    detect_negative=True,
    detect_positive=True,
)
