"""Upper and lower triangles of matrices."""

from __future__ import annotations

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator


def _triangle_tensors(x: te.Tensor, k: int, *, is_upper: bool) -> te.Tensor:
    zero = te.const(0, x.dtype)

    def value(*i: te.Value) -> te.Value:
        is_in = i[-1] >= i[-2] + k if is_upper else i[-1] <= i[-2] + k
        return te.select(is_in, x[i], zero)

    return te.compute(x.shape, value, name="triu" if is_upper else "tril")


def _tril_tensors(x: te.Tensor, *, k: int) -> te.Tensor:
    return _triangle_tensors(x, k, is_upper=False)


def _triu_tensors(x: te.Tensor, *, k: int) -> te.Tensor:
    return _triangle_tensors(x, k, is_upper=True)


def _tril_reference(x: Array, *, k: int) -> Array:
    return np.tril(x, k)


def _triu_reference(x: Array, *, k: int) -> Array:
    return np.triu(x, k)


@graph_operator("tril", "map", tensors=_tril_tensors, reference=_tril_reference)
def tril(x: TensorType, *, k: int = 0) -> TensorType:
    """Infer matrices with zeros above diagonal `k`."""
    return _matrices("tril", x)


@graph_operator("triu", "map", tensors=_triu_tensors, reference=_triu_reference)
def triu(x: TensorType, *, k: int = 0) -> TensorType:
    """Infer matrices with zeros below diagonal `k`."""
    return _matrices("triu", x)


def _matrices(name: str, x: TensorType) -> TensorType:
    if x.rank < 2:
        raise ModelError(f"{name} of {x.shape}: expected at least 2 axes")
    return x
