"""Elementwise operators on one tensor, or on two tensors with broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ops.error import OperatorError, check_choice, check_dtype, check_number
from compiler.ops.tensors import epilogue
from compiler.ops.tensors.operands import check_same_dtype, dims_of

F = TypeVar("F", bound=Callable[..., te.Tensor])


class UnaryOnTensor(Protocol):
    """An operator on one tensor of any shape."""

    __name__: str

    def __call__(self, x: te.Tensor, /) -> te.Tensor:
        """Return the result."""
        ...


class BinaryOnTensors(Protocol):
    """An operator on two tensors whose shapes are broadcast to a common one."""

    __name__: str

    def __call__(self, a: te.Tensor, b: te.Tensor, /) -> te.Tensor:
        """Return the result."""
        ...


def _unary(
    name: str, function: Callable[[te.Value], te.Value], text: str, *, needs_float: bool = True
) -> UnaryOnTensor:
    def operator(x: te.Tensor) -> te.Tensor:
        return _map(name, function, x, needs_float=needs_float)

    return _named(operator, name, text)


def _binary(
    name: str,
    function: Callable[[te.Value, te.Value], te.Value],
    text: str,
    *,
    needs_float: bool = False,
) -> BinaryOnTensors:
    def operator(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        a_dims, b_dims = dims_of(name, a), dims_of(name, b)
        check_same_dtype(name, a, b)
        check_dtype(name, a.dtype, needs_float=needs_float)

        def element(*i: te.Value) -> te.Value:
            return function(a[_broadcast_index(i, a_dims)], b[_broadcast_index(i, b_dims)])

        return te.compute(_broadcast(name, a_dims, b_dims), element, name="C")

    return _named(operator, name, text)


def _named(operator: F, name: str, text: str) -> F:
    operator.__name__ = operator.__qualname__ = name
    raises = "Raises:\n        OperatorError: If a type or the shapes do not fit."
    operator.__doc__ = f"Return {text}.\n\n    {raises}\n    "
    return operator


def _map(
    name: str,
    function: Callable[[te.Value], te.Value],
    x: te.Tensor,
    *,
    needs_float: bool = False,
) -> te.Tensor:
    check_dtype(name, x.dtype, needs_float=needs_float)
    return te.compute(x.shape, lambda *i: function(x[i]), name="B")


def _broadcast(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape to which two shapes are broadcast."""
    ndim = max(len(a), len(b))
    wide = [(1,) * (ndim - len(dims)) + dims for dims in (a, b)]
    for x, y in zip(*wide, strict=True):
        if x != y and 1 not in (x, y):
            raise OperatorError(f"{name}: can't broadcast shapes {a} and {b} to a common shape")
    return tuple(max(x, y) for x, y in zip(*wide, strict=True))


def _broadcast_index(
    index: Sequence[te.Value], dims: tuple[int, ...]
) -> tuple[te.Value | int, ...]:
    """Return the index in a tensor of `dims` of an element of the common shape."""
    last = index[len(index) - len(dims) :]
    return tuple(0 if n == 1 else i for i, n in zip(last, dims, strict=True))


def _negative(x: te.Value) -> te.Value:
    return -x


abs = _unary("abs", te.abs, "`|x|`", needs_float=False)
ceil = _unary("ceil", te.ceil, "`x` rounded up")
cos = _unary("cos", te.cos, "`cos(x)`")
erf = _unary("erf", te.erf, "`erf(x)`")
exp = _unary("exp", te.exp, "`exp(x)`")
floor = _unary("floor", te.floor, "`x` rounded down")
log = _unary("log", te.log, "`log(x)`")
negative = _unary("negative", _negative, "`-x`", needs_float=False)
relu = _unary("relu", epilogue.relu, "`max(x, 0)`", needs_float=False)
round = _unary("round", te.round, "`x` rounded to the nearest integer, halves to the even one")
rsqrt = _unary("rsqrt", te.rsqrt, "`1 / sqrt(x)`")
sigmoid = _unary("sigmoid", te.sigmoid, "`1 / (1 + exp(-x))`")
silu = _unary("silu", epilogue.silu, "`x * sigmoid(x)`")
sin = _unary("sin", te.sin, "`sin(x)`")
sqrt = _unary("sqrt", te.sqrt, "`sqrt(x)`")
tan = _unary("tan", te.tan, "`tan(x)`")
tanh = _unary("tanh", te.tanh, "`tanh(x)`")
trunc = _unary("trunc", te.trunc, "`x` rounded towards zero")

add = _binary("add", lambda a, b: a + b, "`a + b`")
divide = _binary("divide", lambda a, b: a / b, "`a / b`", needs_float=True)
maximum = _binary("maximum", te.max, "`max(a, b)`")
minimum = _binary("minimum", te.min, "`min(a, b)`")
multiply = _binary("multiply", lambda a, b: a * b, "`a * b`")
power = _binary("power", te.power, "`a ** b`", needs_float=True)
subtract = _binary("subtract", lambda a, b: a - b, "`a - b`")


def gelu(x: te.Tensor, *, approximate: str = "none") -> te.Tensor:
    """Return `x` times the probability that a normal variable is below it.

    Args:
        x: The tensor.
        approximate: "none", by the error function; or "tanh", by a hyperbolic tangent.

    Raises:
        OperatorError: If the type or the word is not supported.
    """
    check_choice("gelu", "approximate", approximate, ("none", "tanh"))
    function = epilogue.gelu if approximate == "none" else epilogue.gelu_tanh
    return _map("gelu", function, x, needs_float=True)


def leaky_relu(x: te.Tensor, *, negative_slope: float = 0.01) -> te.Tensor:
    """Return `x`, scaled by `negative_slope` if it is negative.

    Raises:
        OperatorError: If the type or the slope is out of range.
    """
    check_number("leaky_relu", negative_slope=negative_slope)
    return _map("leaky_relu", lambda v: epilogue.leaky_relu(v, negative_slope), x, needs_float=True)


def clip(x: te.Tensor, *, a_min: float = 0.0, a_max: float = 1.0) -> te.Tensor:
    """Return `min(max(x, a_min), a_max)`.

    Raises:
        OperatorError: If the type or a limit is out of range.
    """
    check_number("clip", a_min=a_min, a_max=a_max)
    if a_min > a_max:
        raise OperatorError(
            f"clip: a_min is {a_min}, a_max is {a_max}: expected a_min at most a_max"
        )
    check_dtype("clip", x.dtype)
    try:
        low, high = te.const(a_min, x.dtype), te.const(a_max, x.dtype)
    except TypeError as error:
        raise OperatorError(f"clip: {error}") from None
    return _map("clip", lambda v: te.max(te.min(v, high), low), x)


def cast(x: te.Tensor, *, out_dtype: DType = "float32") -> te.Tensor:
    """Return `x` in another type.

    Raises:
        OperatorError: If a type is not supported.
    """
    check_dtype("cast", out_dtype)
    return _map("cast", lambda v: v.astype(out_dtype), x)
