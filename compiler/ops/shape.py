"""Operators that move or gather the elements of a matrix."""

from __future__ import annotations

from compiler import te
from compiler.ir.dtypes import DType
from compiler.ir.nodes import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import check_dtype, check_extents


def transpose(m: int, n: int, dtype: DType = "float32") -> PrimFunc:
    """`B[n, m] = A[m, n].T`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    check_extents("transpose", m=m, n=n)
    check_dtype("transpose", dtype)
    a = te.placeholder((m, n), dtype, name="A")
    b = te.compute((n, m), lambda i, j: a[j, i], name="B")
    return build("transpose", [a, b])


def row_sum(m: int, n: int, dtype: DType = "float32") -> PrimFunc:
    """`B[i] = sum(A[i, :])`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    check_extents("row_sum", m=m, n=n)
    check_dtype("row_sum", dtype)
    a = te.placeholder((m, n), dtype, name="A")
    k = te.reduce_axis((0, n), name="k")
    b = te.compute((m,), lambda i: te.sum(a[i, k], axis=k), name="B")
    return build("row_sum", [a, b])
