"""The epilogue of a product or a convolution: a bias, an activation, a conversion."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from compiler import te
from compiler.ir.core.dtypes import DType, is_float, sum_dtype
from compiler.ops.error import OperatorError, check_choice, check_dtype
from compiler.ops.tensors.operands import check_dims, dims_of


def gelu(x: te.Value) -> te.Value:
    """Return `x` times the probability that a normal variable is below it."""
    return x * 0.5 * (te.erf(x * (1 / math.sqrt(2))) + 1)


def gelu_tanh(x: te.Value) -> te.Value:
    """Return the approximation of `gelu` by a hyperbolic tangent."""
    return x * 0.5 * (te.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1)


def leaky_relu(x: te.Value, negative_slope: float = 0.01) -> te.Value:
    """Return `x`, scaled down if it is negative."""
    return te.select(x > 0, x, x * negative_slope)


def relu(x: te.Value) -> te.Value:
    """Return the larger of `x` and zero."""
    return te.max(x, 0)


def silu(x: te.Value) -> te.Value:
    """Return `x` times its logistic function."""
    return x * te.sigmoid(x)


ACTIVATIONS: dict[str, Callable[[te.Value], te.Value]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "leaky_relu": leaky_relu,
    "relu": relu,
    "sigmoid": te.sigmoid,
    "silu": silu,
    "tanh": te.tanh,
}


@dataclass(frozen=True, slots=True)
class Types:
    """The types of a sum of products: of its operands, of the sum, and of the result."""

    given: DType
    sum: DType
    result: DType

    def product(self, a: te.Value, b: te.Value) -> te.Value:
        """Return a product in the type of the sum."""
        return a.astype(self.sum) * b.astype(self.sum)


def check_types(
    operator: str, dtype: DType, out_dtype: DType | None, acc_dtype: DType | None
) -> Types:
    """Return the types of a sum of products.

    Args:
        operator: The name for errors.
        dtype: The type of the operands.
        out_dtype: The type of the result; by default that of the operands.
        acc_dtype: The type of the sum; by default that of the result, float32 for narrow floats.

    Raises:
        OperatorError: If a type is not supported, or floats and integers are mixed.
    """
    result = out_dtype or dtype
    for name in (dtype, result, acc_dtype or result):
        check_dtype(operator, name)
    total = acc_dtype or sum_dtype(result)
    if is_float(dtype) != is_float(total) or is_float(result) != is_float(total):
        raise OperatorError(f"{operator}: products of {dtype} can't be accumulated in {total}")
    return Types(dtype, total, result)


def apply_epilogue(  # noqa: PLR0917
    operator: str,
    total: te.Tensor,
    axis: int,
    types: Types,
    bias: te.Tensor | None = None,
    activation: str | None = None,
) -> te.Tensor:
    """Return a sum of products with its bias and activation, converted to the result type.

    Args:
        operator: The name for errors.
        total: The result of the operator, in the type of the sum.
        axis: The axis that the bias runs along.
        types: The types.
        bias: The bias, if any.
        activation: One of `ACTIVATIONS`, if any.

    Raises:
        OperatorError: If the bias has another shape, or the activation does not exist.
    """
    if activation is not None:
        check_choice(operator, "activation", activation, tuple(ACTIVATIONS))
        check_dtype(operator, types.sum, needs_float=activation != "relu")
    result = total if bias is None else add_bias(operator, total, axis, bias)
    if activation is not None:
        function, plain = ACTIVATIONS[activation], result
        result = te.compute(plain.shape, lambda *i: function(plain[i]), name=activation)
    return converted(result, types.result)


def add_bias(operator: str, total: te.Tensor, axis: int, bias: te.Tensor) -> te.Tensor:
    """Return a sum of products with its bias, in the type of the sum.

    Raises:
        OperatorError: If the bias has another shape.
    """
    shape = dims_of(operator, total)
    check_dims(operator, bias, (shape[axis],))
    return te.compute(shape, lambda *i: total[i] + bias[i[axis]].astype(total.dtype), name="biased")


def converted(x: te.Tensor, dtype: DType, name: str = "converted") -> te.Tensor:
    """Return a tensor converted to a type; the tensor itself if it has the type."""
    if x.dtype == dtype:
        return x
    return te.compute(x.shape, lambda *i: x[i].astype(dtype), name=name)
