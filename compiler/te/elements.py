"""Errors for Python and NumPy operations on whole tensors, with the correct alternative.

A program is built of elements: `te.compute(A.shape, lambda i, j: te.exp(A[i, j]))`. NumPy's
functions compute numbers, and whole tensors have no arithmetic.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
"""NumPy's names of Python's operators, if one operand is a NumPy number."""

_SAME = (
    "ceil cos cosh exp exp2 floor fmod isfinite isinf isnan log log10 log2 logaddexp logical_not "
    "power sin sinh sqrt tan tanh trunc"
)
FUNCTIONS: Mapping[str, str] = {
    **{name: name for name in _SAME.split()},
    "absolute": "abs",
    "fabs": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "logical_and": "all",
    "logical_or": "any",
    "maximum": "max",
    "fmax": "max",
    "minimum": "min",
    "fmin": "min",
    "rint": "round",
}
"""The functions of NumPy that `te` has, too, with their names in `te`."""


def numpy_advice(function: str) -> str:
    """Return why a function of NumPy is refused, and what to call instead."""
    own_name = FUNCTIONS.get(function)
    instead = "use the functions of te" if own_name is None else f"use te.{own_name}"
    return f"np.{function} computes numbers, and a tensor expression is not a number: {instead}"


class ElementsOnly:
    """Refuses the arithmetic of whole tensors."""

    __slots__ = ()

    def _refuse(self, _other: object = None) -> NoReturn:
        raise TypeError(
            "operators work on elements, not on whole tensors: write "
            "te.compute(A.shape, lambda i, j: A[i, j] + B[i, j]), or take a function of lw.ops"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = __pow__ = __neg__ = _refuse

    def __array_ufunc__(self, ufunc: Any, *_: Any, **_options: Any) -> NoReturn:
        """Refuse functions and operators of NumPy."""
        raise TypeError(f"{numpy_advice(ufunc.__name__)}, on elements such as A[i, j]")


class WholeElement:
    """Refuses the arithmetic of reductions: each is the whole element of a tensor."""

    __slots__ = ()

    def refuse(self, _other: object = None) -> NoReturn:
        """Raise a TypeError that says how to compute with a reduction."""
        raise TypeError(
            "a reduction must be the whole element: give it a tensor of its own with te.compute, "
            "and compute with that tensor's elements"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = refuse
    __pow__ = __rpow__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = astype = refuse

    def __array_ufunc__(self, *_: Any, **_options: Any) -> NoReturn:
        """Refuse functions and operators of NumPy."""
        self.refuse()
