"""What often follows a product or a convolution: a bias, an activation, a conversion."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from compiler import te
from compiler.ir.core.dtypes import DType, is_float
from compiler.ops.error import OperatorError, check_choice, check_dtype, check_flags


def gelu(x: te.Value) -> te.Value:
    """Return `x` times the chance that a normal variable is below it."""
    return x * 0.5 * (te.erf(x * (1 / math.sqrt(2))) + 1)


def gelu_tanh(x: te.Value) -> te.Value:
    """Return the approximation of `gelu` by a hyperbolic tangent."""
    return x * 0.5 * (te.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1)


def leaky_relu(x: te.Value, negative_slope: float = 0.01) -> te.Value:
    """Return `x`, scaled down where it is negative."""
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
        operator: Who asks.
        dtype: The type of the operands.
        out_dtype: The type of the result; that of the operands unless it is given.
        acc_dtype: The type that is added up in; that of the result unless it is given.

    Raises:
        OperatorError: If a type is not supported, or numbers would be lost on the way.
    """
    result = out_dtype or dtype
    total = acc_dtype or result
    for each in (dtype, result, total):
        check_dtype(operator, each)
    if is_float(dtype) != is_float(total) or is_float(result) != is_float(total):
        raise OperatorError(f"{operator}: products of {dtype} are not added up in {total}")
    return Types(dtype, total, result)


@dataclass(frozen=True, slots=True)
class Epilogue:
    """A bias along one axis, then an activation."""

    operator: str
    bias: bool = False
    activation: str | None = None

    def check(self, dtype: DType) -> None:
        """Refuse what there is not.

        Raises:
            OperatorError: Naming the choices.
        """
        check_flags(self.operator, bias=self.bias)
        if self.activation is not None:
            check_choice(self.operator, "activation", self.activation, tuple(ACTIVATIONS))
            check_dtype(self.operator, dtype, needs_float=self.activation != "relu")

    def apply(
        self, total: te.Tensor, shape: tuple[int, ...], axis: int, types: Types
    ) -> list[te.Tensor]:
        """Return the parameters that follow the operands: the bias if there is one, the result.

        Args:
            total: What the operator computes, in the type of the sum.
            shape: Its shape.
            axis: The axis that the bias runs along.
            types: The types.
        """
        inputs: list[te.Tensor] = []
        result = total
        if self.bias:
            bias = te.placeholder((shape[axis],), types.given, name="bias")
            inputs.append(bias)
            biased = result
            result = te.compute(
                shape, lambda *i: biased[i] + bias[i[axis]].astype(types.sum), name="biased"
            )
        if self.activation is not None:
            function, plain = ACTIVATIONS[self.activation], result
            result = te.compute(shape, lambda *i: function(plain[i]), name=self.activation)
        if types.result != types.sum:
            wide = result
            result = te.compute(shape, lambda *i: wide[i].astype(types.result), name="converted")
        return [*inputs, result]
