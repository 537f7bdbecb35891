"""Operators that set the rows of a matrix to a common scale."""

from __future__ import annotations

from compiler import te
from compiler.ir.dtypes import DType
from compiler.ir.nodes import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import check_dtype, check_extents

_EPSILON = 1e-5


def softmax(m: int, n: int, dtype: DType = "float32") -> PrimFunc:
    """`B[i, :] = exp(A[i, :] - max(A[i, :])) / sum(...)` for each row.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    check_extents("softmax", m=m, n=n)
    check_dtype("softmax", dtype, needs_float=True)
    a = te.placeholder((m, n), dtype, name="A")
    k_max = te.reduce_axis((0, n), name="k")
    largest = te.compute((m,), lambda i: te.max(a[i, k_max], axis=k_max), name="largest")
    powers = te.compute((m, n), lambda i, j: te.exp(a[i, j] - largest[i]), name="powers")
    k_sum = te.reduce_axis((0, n), name="k")
    total = te.compute((m,), lambda i: te.sum(powers[i, k_sum], axis=k_sum), name="total")
    b = te.compute((m, n), lambda i, j: powers[i, j] / total[i], name="B")
    return build("softmax", [a, b])


def layer_norm(m: int, n: int, dtype: DType = "float32") -> PrimFunc:
    """`B = (A - mean) / sqrt(variance + 1e-5) * gamma + beta` for each row.

    Raises:
        OperatorError: If an extent or the type is out of range.
    """
    check_extents("layer_norm", m=m, n=n)
    check_dtype("layer_norm", dtype, needs_float=True)
    a = te.placeholder((m, n), dtype, name="A")
    gamma = te.placeholder((n,), dtype, name="gamma")
    beta = te.placeholder((n,), dtype, name="beta")
    k = te.reduce_axis((0, n), name="k")
    total = te.compute((m,), lambda i: te.sum(a[i, k], axis=k), name="total")
    mean = te.compute((m,), lambda i: total[i] / n, name="mean")
    r = te.reduce_axis((0, n), name="k")
    # Two passes: the mean of squares minus the square of the mean would cancel.
    spread = te.compute(
        (m,),
        lambda i: te.sum((a[i, r] - mean[i]) * (a[i, r] - mean[i]), axis=r),
        name="spread",
    )
    b = te.compute(
        (m, n),
        lambda i, j: (a[i, j] - mean[i]) * te.rsqrt(spread[i] / n + _EPSILON) * gamma[j] + beta[j],
        name="B",
    )
    return build("layer_norm", [a, gamma, beta, b])
