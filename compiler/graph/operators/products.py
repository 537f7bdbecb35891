"""Matrix products."""

from __future__ import annotations

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.arrays import widened
from compiler.graph.operators.broadcasting import broadcast_shapes, element
from compiler.ir.core.dtypes import DType, is_integer
from compiler.ir.core.nodes import static_shape
from compiler.ops.tensors.epilogue import Types, check_types, converted
from compiler.ops.tensors.linear import matmul as library_matmul


def _matmul_tensors(a: te.Tensor, b: te.Tensor, *, out_dtype: DType | None = None) -> te.Tensor:
    a_shape, b_shape = static_shape(a.buffer), static_shape(b.buffer)
    if min(len(a_shape), len(b_shape)) >= 2 and a_shape[:-2] == b_shape[:-2]:
        return library_matmul(a, b, out_dtype=out_dtype)
    types = check_types("matmul", a.dtype, out_dtype, None)
    return converted(_broadcast_product(a, b, types), types.result)


def _broadcast_product(a: te.Tensor, b: te.Tensor, types: Types) -> te.Tensor:
    """Return the product of operands of which one is a vector, or has other first dimensions."""
    a_shape, b_shape = static_shape(a.buffer), static_shape(b.buffer)
    rows, columns = a_shape[:-1][-1:], b_shape[-1:] if len(b_shape) > 1 else ()
    batch = broadcast_shapes(a_shape[:-2], b_shape[:-2])
    k = te.reduce_axis((0, a_shape[-1]), "k")

    def total(*index: te.Value) -> te.Reduction:
        outer, inner = index[: len(batch)], index[len(batch) :]
        row, column = inner[: len(rows)], inner[len(rows) :]
        left = element(a, (*outer, *row, k)) if rows else a[k]
        right = element(b, (*outer, k, *column)) if columns else b[k]
        return te.sum(types.product(left, right), axis=k)

    names = [*(f"s{n}" for n in range(len(batch))), *("i" * len(rows)), *("j" * len(columns))]
    return te.compute((*batch, *rows, *columns), total, name="C", varargs_names=names)


def _matmul_reference(a: Array, b: Array, *, out_dtype: DType | None = None) -> Array:
    return np.asarray(np.matmul(widened(a, out_dtype), widened(b, out_dtype)))


@graph_operator("matmul", "contract", tensors=_matmul_tensors, reference=_matmul_reference)
def matmul(a: TensorType, b: TensorType, *, out_dtype: DType | None = None) -> TensorType:
    """Infer the product of matrices, one for each index of the first dimensions.

    An operand of rank 1 is a row on the left and a column on the right, and the result lacks that
    dimension. The first dimensions are broadcast.
    """
    if a.rank < 1 or b.rank < 1:
        raise ModelError(f"matmul of ranks {a.rank} and {b.rank}: expected 1 or more")
    inner = b.shape[-2] if b.rank > 1 else b.shape[0]
    if not have_product(a.dtype, b.dtype, out_dtype) or a.shape[-1] != inner:
        raise ModelError(
            f"matmul of {a.dtype} {a.shape} and {b.dtype} {b.shape}: expected one type, and as many"
            " columns as rows"
        )
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    columns = b.shape[-1:] if b.rank > 1 else ()
    return TensorType((*batch, *a.shape[:-1][-1:], *columns), out_dtype or a.dtype)


def have_product(a: DType, b: DType, out_dtype: DType | None) -> bool:
    """Return whether values of two types have a product in a type: bytes of both kinds do."""
    if a == b:
        return out_dtype is None or is_integer(a) == is_integer(out_dtype)
    return {a, b} == {"int8", "uint8"} and out_dtype == "int32"
