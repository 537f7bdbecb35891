"""Matrix products, alone and with what often follows them."""

from __future__ import annotations

from compiler import te
from compiler.ir.dtypes import DType
from compiler.ir.nodes import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import check_dtype, check_extents


def matmul(m: int, n: int, k: int, dtype: DType = "float32") -> PrimFunc:
    """`C[m, n] = A[m, k] @ B[k, n]`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    a, b, c = _product("matmul", m, n, k, dtype, name="C")
    return build("matmul", [a, b, c])


def mm_relu(m: int = 128, n: int = 128, k: int = 128, dtype: DType = "float32") -> PrimFunc:
    """`C[m, n] = max(A[m, k] @ B[k, n], 0)`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    a, b, product = _product("mm_relu", m, n, k, dtype, name="Y")
    c = te.compute((m, n), lambda i, j: te.max(product[i, j], 0), name="C")
    return build("mm_relu", [a, b, c])


def matmul_bias_relu(m: int, n: int, k: int, dtype: DType = "float32") -> PrimFunc:
    """`D[m, n] = max(A[m, k] @ B[k, n] + bias[n], 0)`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    a, b, c = _product("matmul_bias_relu", m, n, k, dtype, name="C")
    bias = te.placeholder((n,), dtype, name="bias")
    biased = te.compute((m, n), lambda i, j: c[i, j] + bias[j], name="biased")
    d = te.compute((m, n), lambda i, j: te.max(biased[i, j], 0), name="D")
    return build("matmul_bias_relu", [a, b, bias, d])


def dense(m: int, n: int, k: int, dtype: DType = "float32") -> PrimFunc:
    """`C[m, n] = A[m, k] @ W[n, k].T`: weights as frameworks store them.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    check_extents("dense", m=m, n=n, k=k)
    check_dtype("dense", dtype)
    a = te.placeholder((m, k), dtype, name="A")
    weights = te.placeholder((n, k), dtype, name="W")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * weights[j, axis], axis=axis), name="C")
    return build("dense", [a, weights, c])


def batch_matmul(batch: int, m: int, n: int, k: int, dtype: DType = "float32") -> PrimFunc:
    """`C[batch, m, n] = A[batch, m, k] @ B[batch, k, n]`.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    check_extents("batch_matmul", batch=batch, m=m, n=n, k=k)
    check_dtype("batch_matmul", dtype)
    a = te.placeholder((batch, m, k), dtype, name="A")
    b = te.placeholder((batch, k, n), dtype, name="B")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute(
        (batch, m, n),
        lambda s, i, j: te.sum(a[s, i, axis] * b[s, axis, j], axis=axis),
        name="C",
    )
    return build("batch_matmul", [a, b, c])


def _product(
    operator: str, m: int, n: int, k: int, dtype: DType, *, name: str
) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    check_extents(operator, m=m, n=n, k=k)
    check_dtype(operator, dtype)
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((k, n), dtype, name="B")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name=name)
    return a, b, c
