"""Operators on each element alone, of one tensor or of two; any number of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import (
    OperatorError,
    check_choice,
    check_dtype,
    check_number,
    check_shape,
)
from compiler.ops.tensors import epilogue


class Unary(Protocol):
    """An operator on one tensor of any shape."""

    def __call__(self, *shape: int, dtype: DType = "float32") -> PrimFunc:
        """Return its program."""
        ...


class Binary(Protocol):
    """An operator on two tensors: `B` has the shape of `A`, or `other`, which is broadcast."""

    def __call__(
        self, *shape: int, other: Sequence[int] | None = None, dtype: DType = "float32"
    ) -> PrimFunc:
        """Return its program."""
        ...


def _unary(
    name: str, function: Callable[[te.Value], te.Value], text: str, *, needs_float: bool = True
) -> Unary:
    def operator(*shape: int, dtype: DType = "float32") -> PrimFunc:
        dims = check_shape(name, shape)
        check_dtype(name, dtype, needs_float=needs_float)
        a = te.placeholder(dims, dtype, name="A")
        return build(name, [a, te.compute(dims, lambda *i: function(a[i]), name="B")])

    return _named(operator, name, text)


def _binary(
    name: str,
    function: Callable[[te.Value, te.Value], te.Value],
    text: str,
    *,
    needs_float: bool = False,
) -> Binary:
    def operator(
        *shape: int, other: Sequence[int] | None = None, dtype: DType = "float32"
    ) -> PrimFunc:
        a_dims = check_shape(name, shape)
        b_dims = a_dims if other is None else check_shape(name, other, "other")
        check_dtype(name, dtype, needs_float=needs_float)
        a = te.placeholder(a_dims, dtype, name="A")
        b = te.placeholder(b_dims, dtype, name="B")

        def element(*i: te.Value) -> te.Value:
            return function(a[_place(i, a_dims)], b[_place(i, b_dims)])

        c = te.compute(_broadcast(name, a_dims, b_dims), element, name="C")
        return build(name, [a, b, c])

    return _named(operator, name, text)


def _named(operator: Callable[..., PrimFunc], name: str, text: str) -> Callable[..., PrimFunc]:
    operator.__name__ = operator.__qualname__ = name
    raises = "Raises:\n        OperatorError: If an extent or the type is out of range."
    operator.__doc__ = f"`{text}`.\n\n    {raises}\n    "
    return operator


def _broadcast(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of what two shapes are broadcast to."""
    ndim = max(len(a), len(b))
    wide = [(1,) * (ndim - len(dims)) + dims for dims in (a, b)]
    for x, y in zip(*wide, strict=True):
        if x != y and 1 not in (x, y):
            raise OperatorError(f"{name}: shapes {a} and {b} are not broadcast to a common one")
    return tuple(max(x, y) for x, y in zip(*wide, strict=True))


def _place(index: Sequence[te.Value], dims: tuple[int, ...]) -> tuple[te.Value | int, ...]:
    """Return the place in a tensor that is broadcast."""
    last = index[len(index) - len(dims) :]
    return tuple(0 if n == 1 else i for i, n in zip(last, dims, strict=True))


def _negative(x: te.Value) -> te.Value:
    return -x


abs = _unary("abs", te.abs, "B = |A|", needs_float=False)
ceil = _unary("ceil", te.ceil, "B = A rounded up")
cos = _unary("cos", te.cos, "B = cos(A)")
erf = _unary("erf", te.erf, "B = erf(A)")
exp = _unary("exp", te.exp, "B = exp(A)")
floor = _unary("floor", te.floor, "B = A rounded down")
log = _unary("log", te.log, "B = log(A)")
negative = _unary("negative", _negative, "B = -A", needs_float=False)
relu = _unary("relu", epilogue.relu, "B = max(A, 0)", needs_float=False)
round = _unary("round", te.round, "B = A rounded to the nearest, halves to the even")
rsqrt = _unary("rsqrt", te.rsqrt, "B = 1 / sqrt(A)")
sigmoid = _unary("sigmoid", te.sigmoid, "B = 1 / (1 + exp(-A))")
silu = _unary("silu", epilogue.silu, "B = A * sigmoid(A)")
sin = _unary("sin", te.sin, "B = sin(A)")
sqrt = _unary("sqrt", te.sqrt, "B = sqrt(A)")
tan = _unary("tan", te.tan, "B = tan(A)")
tanh = _unary("tanh", te.tanh, "B = tanh(A)")
trunc = _unary("trunc", te.trunc, "B = A rounded towards zero")

add = _binary("add", lambda a, b: a + b, "C = A + B")
divide = _binary("divide", lambda a, b: a / b, "C = A / B", needs_float=True)
maximum = _binary("maximum", te.max, "C = max(A, B)")
minimum = _binary("minimum", te.min, "C = min(A, B)")
multiply = _binary("multiply", lambda a, b: a * b, "C = A * B")
power = _binary("power", te.power, "C = A ** B", needs_float=True)
subtract = _binary("subtract", lambda a, b: a - b, "C = A - B")


def gelu(*shape: int, approximate: str = "none", dtype: DType = "float32") -> PrimFunc:
    """`B = A * (chance that a normal variable is below A)`.

    Args:
        shape: The shape of both.
        approximate: "none", by the error function; or "tanh", by a hyperbolic tangent.
        dtype: The type of both.

    Raises:
        OperatorError: If an extent, the type or the word is out of range.
    """
    check_choice("gelu", "approximate", approximate, ("none", "tanh"))
    function = epilogue.gelu if approximate == "none" else epilogue.gelu_tanh
    return _unary("gelu", function, "")(*shape, dtype=dtype)


def leaky_relu(*shape: int, negative_slope: float = 0.01, dtype: DType = "float32") -> PrimFunc:
    """`B = A`, scaled by `negative_slope` where it is negative.

    Raises:
        OperatorError: If an extent, the type or the slope is out of range.
    """
    check_number("leaky_relu", negative_slope=negative_slope)
    return _unary("leaky_relu", lambda x: epilogue.leaky_relu(x, negative_slope), "")(
        *shape, dtype=dtype
    )


def clip(*shape: int, a_min: float = 0.0, a_max: float = 1.0, dtype: DType = "float32") -> PrimFunc:
    """`B = min(max(A, a_min), a_max)`.

    Raises:
        OperatorError: If an extent, the type or a limit is out of range.
    """
    check_number("clip", a_min=a_min, a_max=a_max)
    if a_min > a_max:
        raise OperatorError(f"clip: a_min is {a_min}, a_max is {a_max}: expected at most that")
    check_dtype("clip", dtype)
    try:
        low, high = te.const(a_min, dtype), te.const(a_max, dtype)
    except TypeError as error:
        raise OperatorError(f"clip: {error}") from None
    operator = _unary("clip", lambda x: te.max(te.min(x, high), low), "", needs_float=False)
    return operator(*shape, dtype=dtype)


def cast(*shape: int, out_dtype: DType = "float32", dtype: DType = "float32") -> PrimFunc:
    """`B = A` in another type.

    Raises:
        OperatorError: If an extent or a type is out of range.
    """
    check_dtype("cast", out_dtype)
    operator = _unary("cast", lambda x: x.astype(out_dtype), "", needs_float=False)
    return operator(*shape, dtype=dtype)
