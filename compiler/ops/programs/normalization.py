"""Operators that set the elements of a tensor to a common scale."""

from __future__ import annotations

import math

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import check_axis, check_dtype, check_number, check_shape


def softmax(*shape: int, axis: int = -1, dtype: DType = "float32") -> PrimFunc:
    """`B = exp(A - max(A)) / sum(...)` along an axis.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims, axis = _along("softmax", shape, axis, dtype)
    a = te.placeholder(dims, dtype, name="A")
    return build("softmax", [a, *softmax_of(a, dims, axis)])


def softmax_of(a: te.Tensor, dims: tuple[int, ...], axis: int) -> list[te.Tensor]:
    """Return the softmax of a tensor."""
    largest = _largest(a, dims, axis)
    powers = te.compute(dims, lambda *i: te.exp(a[i] - largest[_without(i, axis)]), name="powers")
    k = te.reduce_axis((0, dims[axis]), name="k")
    total = te.compute(
        _without(dims, axis), lambda *i: te.sum(powers[_with(i, axis, k)], axis=k), name="total"
    )
    return [te.compute(dims, lambda *i: powers[i] / total[_without(i, axis)], name="B")]


def log_softmax(*shape: int, axis: int = -1, dtype: DType = "float32") -> PrimFunc:
    """`B = A - max(A) - log(sum(exp(A - max(A))))` along an axis.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims, axis = _along("log_softmax", shape, axis, dtype)
    a = te.placeholder(dims, dtype, name="A")
    largest = _largest(a, dims, axis)
    k = te.reduce_axis((0, dims[axis]), name="k")
    total = te.compute(
        _without(dims, axis),
        lambda *i: te.sum(te.exp(a[_with(i, axis, k)] - largest[i]), axis=k),
        name="total",
    )

    def element(*i: te.Value) -> te.Value:
        row = _without(i, axis)
        return a[i] - largest[row] - te.log(total[row])

    return build("log_softmax", [a, te.compute(dims, element, name="B")])


def layer_norm(
    *shape: int, axis: int = -1, epsilon: float = 1e-5, dtype: DType = "float32"
) -> PrimFunc:
    """`B = (A - mean) / sqrt(variance + epsilon) * gamma + beta` over `axis` and those after it.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims, axis = _along("layer_norm", shape, axis, dtype)
    check_number("layer_norm", epsilon=epsilon)
    rows, inner = dims[:axis], dims[axis:]
    count = math.prod(inner)
    a = te.placeholder(dims, dtype, name="A")
    gamma = te.placeholder(inner, dtype, name="gamma")
    beta = te.placeholder(inner, dtype, name="beta")
    k = _axes(inner)
    total = te.compute(rows, lambda *i: te.sum(a[(*i, *k)], axis=k), name="total")
    mean = te.compute(rows, lambda *i: total[i] / count, name="mean")
    r = _axes(inner)
    # Two passes: the mean of squares minus the square of the mean would cancel.
    spread = te.compute(
        rows,
        lambda *i: te.sum((a[(*i, *r)] - mean[i]) * (a[(*i, *r)] - mean[i]), axis=r),
        name="spread",
    )

    def element(*i: te.Value) -> te.Value:
        row, column = i[:axis], i[axis:]
        scale = te.rsqrt(spread[row] / count + epsilon)
        return (a[i] - mean[row]) * scale * gamma[column] + beta[column]

    return build("layer_norm", [a, gamma, beta, te.compute(dims, element, name="B")])


def rms_norm(
    *shape: int, axis: int = -1, epsilon: float = 1e-5, dtype: DType = "float32"
) -> PrimFunc:
    """`B = A / sqrt(mean of squares + epsilon) * weight` over `axis` and those after it.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims, axis = _along("rms_norm", shape, axis, dtype)
    check_number("rms_norm", epsilon=epsilon)
    rows, inner = dims[:axis], dims[axis:]
    count = math.prod(inner)
    a = te.placeholder(dims, dtype, name="A")
    weight = te.placeholder(inner, dtype, name="weight")
    k = _axes(inner)
    squares = te.compute(rows, lambda *i: te.sum(a[(*i, *k)] * a[(*i, *k)], axis=k), name="squares")

    def element(*i: te.Value) -> te.Value:
        return a[i] * te.rsqrt(squares[i[:axis]] / count + epsilon) * weight[i[axis:]]

    return build("rms_norm", [a, weight, te.compute(dims, element, name="B")])


def batch_norm(
    *shape: int, axis: int = 1, epsilon: float = 1e-5, dtype: DType = "float32"
) -> PrimFunc:
    """`B = (A - mean) / sqrt(variance + epsilon) * gamma + beta`, all known, a channel each.

    This is what a network does with it once it is trained: the means are inputs.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims, axis = _along("batch_norm", shape, axis, dtype)
    check_number("batch_norm", epsilon=epsilon)
    a = te.placeholder(dims, dtype, name="A")
    gamma, beta, mean, variance = (
        te.placeholder((dims[axis],), dtype, name=name)
        for name in ("gamma", "beta", "mean", "variance")
    )

    def element(*i: te.Value) -> te.Value:
        c = i[axis]
        return (a[i] - mean[c]) * te.rsqrt(variance[c] + epsilon) * gamma[c] + beta[c]

    output = te.compute(dims, element, name="B")
    return build("batch_norm", [a, gamma, beta, mean, variance, output])


def _along(
    operator: str, shape: tuple[int, ...], axis: int, dtype: DType
) -> tuple[tuple[int, ...], int]:
    dims = check_shape(operator, shape)
    check_dtype(operator, dtype, needs_float=True)
    return dims, check_axis(operator, axis, len(dims))


def _largest(a: te.Tensor, dims: tuple[int, ...], axis: int) -> te.Tensor:
    k = te.reduce_axis((0, dims[axis]), name="k")
    return te.compute(
        _without(dims, axis), lambda *i: te.max(a[_with(i, axis, k)], axis=k), name="largest"
    )


def _axes(extents: tuple[int, ...]) -> list[te.ReduceAxis]:
    names = ["k"] if len(extents) == 1 else [f"k{n}" for n in range(len(extents))]
    return [te.reduce_axis((0, n), name=name) for n, name in zip(extents, names, strict=True)]


def _without(items: tuple, axis: int) -> tuple:  # type: ignore[type-arg]
    return (*items[:axis], *items[axis + 1 :])


def _with(items: tuple, axis: int, item: object) -> tuple:  # type: ignore[type-arg]
    return (*items[:axis], item, *items[axis:])
