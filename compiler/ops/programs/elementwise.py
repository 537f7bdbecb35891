"""Elementwise operators on one tensor or on two, with any number of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import check_shape
from compiler.ops.operator import Array, ProgramMaker, operator
from compiler.ops.recognizers.rows import elementwise as recognizer
from compiler.ops.references import elementwise as references
from compiler.ops.tensors import elementwise as tensors


class Unary(Protocol):
    """An operator on one tensor of any shape."""

    def __call__(
        self, *shape: int, dtype: DType = "float32", constant: str | None = None
    ) -> PrimFunc:
        """Return its program."""
        ...


class Binary(Protocol):
    """An operator on two tensors: `B` has the shape of `A`, or `other`, which is broadcast."""

    def __call__(
        self,
        *shape: int,
        other: Sequence[int] | None = None,
        dtype: DType = "float32",
        constant: str | None = None,
    ) -> PrimFunc:
        """Return its program."""
        ...


def _unary(
    on_tensor: tensors.UnaryOnTensor, function: Callable[[Array], Array], text: str
) -> Unary:
    name = on_tensor.__name__

    def program(*shape: int, dtype: DType = "float32") -> PrimFunc:
        a = operand(check_shape(name, shape), dtype, "A")
        return build(name, [a], on_tensor(a))

    return _declared(program, on_tensor, function, text)


def _binary(
    on_tensors: tensors.BinaryOnTensors, function: Callable[[Array, Array], Array], text: str
) -> Binary:
    name = on_tensors.__name__

    def program(
        *shape: int, other: Sequence[int] | None = None, dtype: DType = "float32"
    ) -> PrimFunc:
        dims = check_shape(name, shape)
        a = operand(dims, dtype, "A")
        b = operand(dims if other is None else check_shape(name, other, "other"), dtype, "B")
        return build(name, [a, b], on_tensors(a, b))

    return _declared(program, on_tensors, function, text)


def _declared(
    program: Callable[..., PrimFunc],
    on_tensors: tensors.UnaryOnTensor | tensors.BinaryOnTensors,
    function: Callable[..., Array],
    text: str,
) -> ProgramMaker[...]:
    program.__name__ = program.__qualname__ = on_tensors.__name__
    raises = "Raises:\n        OperatorError: If an extent or the type is out of range."
    program.__doc__ = f"`{text}`.\n\n    {raises}\n    "
    declare = operator(
        on_tensors, reference=lambda _, *arrays: function(*arrays), recognize=recognizer
    )
    return declare(program)


abs = _unary(tensors.abs, np.abs, "B = |A|")
ceil = _unary(tensors.ceil, np.ceil, "B = A rounded up")
cos = _unary(tensors.cos, np.cos, "B = cos(A)")
erf = _unary(tensors.erf, references.erf, "B = erf(A)")
exp = _unary(tensors.exp, np.exp, "B = exp(A)")
floor = _unary(tensors.floor, np.floor, "B = A rounded down")
log = _unary(tensors.log, np.log, "B = log(A)")
negative = _unary(tensors.negative, np.negative, "B = -A")
relu = _unary(tensors.relu, references.relu, "B = max(A, 0)")
round = _unary(tensors.round, np.rint, "B = A rounded to the nearest, halves to the even")
rsqrt = _unary(tensors.rsqrt, references.rsqrt, "B = 1 / sqrt(A)")
sigmoid = _unary(tensors.sigmoid, references.sigmoid, "B = 1 / (1 + exp(-A))")
silu = _unary(tensors.silu, references.silu, "B = A * sigmoid(A)")
sin = _unary(tensors.sin, np.sin, "B = sin(A)")
sqrt = _unary(tensors.sqrt, np.sqrt, "B = sqrt(A)")
tan = _unary(tensors.tan, np.tan, "B = tan(A)")
tanh = _unary(tensors.tanh, np.tanh, "B = tanh(A)")
trunc = _unary(tensors.trunc, np.trunc, "B = A rounded towards zero")

add = _binary(tensors.add, np.add, "C = A + B")
divide = _binary(tensors.divide, np.divide, "C = A / B")
maximum = _binary(tensors.maximum, np.maximum, "C = max(A, B)")
minimum = _binary(tensors.minimum, np.minimum, "C = min(A, B)")
multiply = _binary(tensors.multiply, np.multiply, "C = A * B")
power = _binary(tensors.power, np.power, "C = A ** B")
subtract = _binary(tensors.subtract, np.subtract, "C = A - B")


@operator(tensors.gelu, reference=references.gelu_of, recognize=recognizer)
def gelu(*shape: int, approximate: str = "none", dtype: DType = "float32") -> PrimFunc:
    """`B = A * (probability that a normal variable is below A)`.

    Args:
        shape: The shape of both.
        approximate: "none", by the error function; or "tanh", by a hyperbolic tangent.
        dtype: The type of both.

    Raises:
        OperatorError: If an extent, the type or the word is out of range.
    """
    x = operand(check_shape("gelu", shape), dtype, "A")
    return build("gelu", [x], tensors.gelu(x, approximate=approximate))


@operator(
    tensors.leaky_relu,
    reference=lambda p, x: references.leaky_relu(x, p.negative_slope),
    recognize=recognizer,
)
def leaky_relu(*shape: int, negative_slope: float = 0.01, dtype: DType = "float32") -> PrimFunc:
    """`B = A`, scaled by `negative_slope` if it is negative.

    Raises:
        OperatorError: If an extent, the type or the slope is out of range.
    """
    x = operand(check_shape("leaky_relu", shape), dtype, "A")
    return build("leaky_relu", [x], tensors.leaky_relu(x, negative_slope=negative_slope))


@operator(tensors.clip, reference=lambda p, x: np.clip(x, p.a_min, p.a_max), recognize=recognizer)
def clip(*shape: int, a_min: float = 0.0, a_max: float = 1.0, dtype: DType = "float32") -> PrimFunc:
    """`B = min(max(A, a_min), a_max)`.

    Raises:
        OperatorError: If an extent, the type or a limit is out of range.
    """
    x = operand(check_shape("clip", shape), dtype, "A")
    return build("clip", [x], tensors.clip(x, a_min=a_min, a_max=a_max))


@operator(tensors.cast, reference=lambda _, x: x)
def cast(*shape: int, out_dtype: DType = "float32", dtype: DType = "float32") -> PrimFunc:
    """`B = A` in another type.

    Raises:
        OperatorError: If an extent or a type is out of range.
    """
    x = operand(check_shape("cast", shape), dtype, "A")
    return build("cast", [x], tensors.cast(x, out_dtype=out_dtype))
