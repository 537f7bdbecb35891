"""Matrix products."""

from __future__ import annotations

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.broadcasting import broadcast_shapes, element
from compiler.ir.core.nodes import static_shape


def _matmul_tensors(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    a_shape, b_shape = static_shape(a.buffer), static_shape(b.buffer)
    batch = broadcast_shapes(a_shape[:-2], b_shape[:-2])
    k = te.reduce_axis((0, a_shape[-1]), "k")

    def total(*i: te.Value) -> te.Reduction:
        *outer, row, column = i
        return te.sum(element(a, (*outer, row, k)) * element(b, (*outer, k, column)), axis=k)

    return te.compute((*batch, a_shape[-2], b_shape[-1]), total, name="matmul")


def _matmul_reference(a: Array, b: Array) -> Array:
    return np.asarray(np.matmul(a, b))


@graph_operator("matmul", "contract", tensors=_matmul_tensors, reference=_matmul_reference)
def matmul(a: TensorType, b: TensorType) -> TensorType:
    """Infer the product of matrices, one for each index of the first dimensions."""
    if a.rank < 2 or b.rank < 2:
        raise ModelError(f"matmul of ranks {a.rank} and {b.rank}: expected 2 or more")
    if a.dtype != b.dtype or a.shape[-1] != b.shape[-2]:
        raise ModelError(
            f"matmul of {a.dtype} {a.shape} and {b.dtype} {b.shape}: expected one type, and as many"
            " columns as rows"
        )
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return TensorType((*batch, a.shape[-2], b.shape[-1]), a.dtype)
