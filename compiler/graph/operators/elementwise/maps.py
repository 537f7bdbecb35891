"""Declare operators that map elements: each element of the result follows from one of each operand.

Narrow floats are computed in float32 and rounded once; references compute floats in float64.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from compiler import te
from compiler.graph.nodes import Array, Attr, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.broadcasting import broadcast_shapes, element
from compiler.graph.operators.types import Accepts, check_accepts, check_same_dtype
from compiler.ir.core.dtypes import DType, sum_dtype
from compiler.ir.core.nodes import static_shape

Values: TypeAlias = Callable[..., te.Value]
Arrays: TypeAlias = Callable[..., Array]


def declare_map(  # noqa: PLR0917
    name: str,
    values: Values,
    reference: Arrays,
    accepts: Accepts = "number",
    result: DType | None = None,
    operands: int = 1,
    **defaults: Attr,
) -> None:
    """Declare an operator on operands of one type, which are broadcast against each other.

    Args:
        name: The name of the operator.
        values: Takes an element of each operand, and the attributes; returns that of the result.
        reference: The same for NumPy arrays.
        accepts: The types of operands.
        result: The type of the result; by default that of the operands.
        operands: The number of operands.
        defaults: The attributes with their default values.
    """

    def tensors(*inputs: te.Tensor, **attrs: Attr) -> te.Tensor:
        dtype = inputs[0].dtype
        shape = broadcast_shapes(*(static_shape(x.buffer) for x in inputs))

        def value(*i: te.Value) -> te.Value:
            wide = [element(x, i).astype(sum_dtype(dtype)) for x in inputs]
            return values(*wide, **attrs).astype(result or dtype)

        return te.compute(shape, value, name=name.rpartition(".")[2])

    def by_numpy(*inputs: Array, **attrs: Attr) -> Array:
        dtype = inputs[0].dtype
        return np.asarray(reference(*map(widened, inputs), **attrs)).astype(result or dtype)

    def infer(*inputs: TensorType, **_: Attr) -> TensorType:
        check_accepts(name, accepts, *inputs)
        check_same_dtype(name, *inputs)
        shape = broadcast_shapes(*(x.shape for x in inputs))
        return TensorType(shape, result or inputs[0].dtype)

    setattr(infer, "__signature__", _signature(operands, defaults))  # noqa: B010
    graph_operator(name, "map", tensors=tensors, reference=by_numpy)(infer)


def widened(x: Array) -> Array:
    """Return an array of floats in float64, any other one as it is."""
    return x.astype(np.float64) if "float" in x.dtype.name else x


def _signature(operands: int, defaults: dict[str, Attr]) -> inspect.Signature:
    """Return the signature of an inference, which the registry reads the attributes from."""
    parameter: Any = inspect.Parameter
    return inspect.Signature(
        [
            *(parameter(f"x{k}", parameter.POSITIONAL_ONLY) for k in range(operands)),
            *(
                parameter(name, parameter.KEYWORD_ONLY, default=value, annotation=type(value))
                for name, value in defaults.items()
            ),
        ]
    )
