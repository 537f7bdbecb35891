"""Arithmetic on two tensors that are broadcast against each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.broadcasting import broadcast_shapes, element
from compiler.ir.core.nodes import static_shape

_BinaryValues = Callable[[te.Value, te.Value], te.Value]
_BinaryArrays = Callable[[Array, Array], Array]


def _declare(name: str, values: _BinaryValues, reference: _BinaryArrays) -> None:
    def tensors(a: te.Tensor, b: te.Tensor) -> te.Tensor:
        shape = broadcast_shapes(static_shape(a.buffer), static_shape(b.buffer))
        return te.compute(shape, lambda *i: values(element(a, i), element(b, i)), name=name)

    @graph_operator(name, "map", tensors=tensors, reference=reference)
    def infer(a: TensorType, b: TensorType) -> TensorType:
        if a.dtype != b.dtype:
            raise ModelError(f"{name} of {a.dtype} and {b.dtype}: expected operands of one type")
        return TensorType(broadcast_shapes(a.shape, b.shape), a.dtype)


_declare("add", lambda a, b: a + b, np.add)
_declare("subtract", lambda a, b: a - b, np.subtract)
_declare("multiply", lambda a, b: a * b, np.multiply)
