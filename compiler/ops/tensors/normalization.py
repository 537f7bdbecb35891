"""Normalizations: softmax, and layer, group, batch and root-mean-square norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from compiler import te
from compiler.ir.core.dtypes import DType, sum_dtype
from compiler.ops.error import (
    OperatorError,
    check_axis,
    check_choice,
    check_dtype,
    check_number,
    check_range,
)
from compiler.ops.tensors.epilogue import ACTIVATIONS
from compiler.ops.tensors.join_axes import join_axes
from compiler.ops.tensors.lengths import check_lengths, is_within
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of

Elements: TypeAlias = tuple[tuple[int, ...], Callable[..., te.Value]]
"""A shape, and a function of indices that returns an element in the type of sums."""


def softmax(x: te.Tensor, lengths: te.Tensor | None = None, *, axis: int = -1) -> te.Tensor:
    """Return `exp(x - max(x)) / sum(...)` along an axis.

    Args:
        x: The tensor.
        lengths: `[batch]`, for `x[batch, ...]`: how many elements along the axis count. The later
            ones are padding, with result 0. A length below 1 counts as 1.
        axis: The axis.

    Raises:
        OperatorError: If a shape, a type or the axis does not fit.
    """
    dims, axis = _along("softmax", x, axis)
    if lengths is None:
        return converted_softmax(x, axis, x.dtype)
    check_lengths("softmax", lengths, dims[0])
    if not axis:
        raise OperatorError("softmax: axis is 0, along which lengths are: expected a later one")
    at, least = _widened(x), te.min_value(sum_dtype(x.dtype))
    masked = te.compute(
        dims,
        lambda *i: te.select(is_within(lengths, i[0], i[axis]), at(*i), least),
        name="masked",
    )
    return converted_softmax(masked, axis, x.dtype)


def converted_softmax(x: te.Tensor, axis: int, dtype: DType) -> te.Tensor:
    """Return the softmax of a tensor along an axis, from 0 on, converted to a type."""
    dims, at = dims_of("softmax", x), _widened(x)
    largest = _largest(x, dims, axis)
    powers = te.compute(dims, lambda *i: te.exp(at(*i) - largest[_without(i, axis)]), name="powers")
    k = te.reduce_axis((0, dims[axis]), name="k")
    total = te.compute(
        _without(dims, axis), lambda *i: te.sum(powers[_with(i, axis, k)], axis=k), name="total"
    )
    return te.compute(
        dims, lambda *i: (powers[i] / total[_without(i, axis)]).astype(dtype), name="B"
    )


def log_softmax(x: te.Tensor, *, axis: int = -1) -> te.Tensor:
    """Return `x - max(x) - log(sum(exp(x - max(x))))` along an axis.

    Raises:
        OperatorError: If the axis or the type is out of range.
    """
    dims, axis = _along("log_softmax", x, axis)
    at = _widened(x)
    largest = _largest(x, dims, axis)
    k = te.reduce_axis((0, dims[axis]), name="k")
    total = te.compute(
        _without(dims, axis),
        lambda *i: te.sum(te.exp(at(*_with(i, axis, k)) - largest[i]), axis=k),
        name="total",
    )

    def element(*i: te.Value) -> te.Value:
        row = _without(i, axis)
        return (at(*i) - largest[row] - te.log(total[row])).astype(x.dtype)

    return te.compute(dims, element, name="B")


def layer_norm(
    x: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    residual: te.Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Return `(x - mean) / sqrt(variance + epsilon) * gamma + beta` over `axis` and later axes.

    A residual of the same shape is added to `x` first.

    Raises:
        OperatorError: If a shape, a type, the axis or `epsilon` does not fit.
    """
    dims, axis = _along("layer_norm", x, axis, gamma, beta)
    check_number("layer_norm", epsilon=epsilon)
    inner = dims[axis:]
    for parameter in (gamma, beta):
        check_dims("layer_norm", parameter, inner)
    centred = _normalized(_with_residual("layer_norm", x, residual), axis, epsilon)

    def element(*i: te.Value) -> te.Value:
        column = i[axis:]
        scaled = centred(*i) * _widened(gamma)(*column) + _widened(beta)(*column)
        return scaled.astype(x.dtype)

    return te.compute(dims, element, name="B")


def group_norm(
    x: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    *,
    groups: int,
    epsilon: float = 1e-5,
    activation: str | None = None,
) -> te.Tensor:
    """Return `(x - mean) / sqrt(variance + epsilon) * gamma + beta` over groups of channels.

    Args:
        x: `[n, c, ...]`.
        gamma: `[c]`, the factor of each channel.
        beta: `[c]`, added to each channel.
        groups: The number of groups, which divides that of channels.
        epsilon: The number added to the variance.
        activation: The function applied last; see `ops.matmul`.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    operator = "group_norm"
    dims, _ = _along(operator, x, -1, gamma, beta)
    check_number(operator, epsilon=epsilon)
    check_range(operator, 1, groups=groups)
    if len(dims) < 3:
        raise OperatorError(
            f"{operator}: {x.name} has {len(dims)} dimension(s): expected 3 or more"
        )
    batch, channels, *sizes = dims
    if channels % groups:
        raise OperatorError(f"{operator}: {groups} groups do not divide {channels} channels")
    for parameter in (gamma, beta):
        check_dims(operator, parameter, (channels,))
    if activation is not None:
        check_choice(operator, "activation", activation, tuple(ACTIVATIONS))
    size = channels // groups

    def at(b: te.Value, g: te.Value, c: te.Value, *i: te.Value) -> te.Value:
        return _widened(x)(b, g * size + c, *i)

    shape = (batch, groups, size, *sizes)
    normalized = _normalized((shape, at), 2, epsilon)

    def element(b: te.Value, g: te.Value, c: te.Value, *i: te.Value) -> te.Value:
        channel = g * size + c
        scaled = normalized(b, g, c, *i) * _widened(gamma)(channel) + _widened(beta)(channel)
        return scaled if activation is None else ACTIVATIONS[activation](scaled)

    names = ("n", "g", "c", *(f"i{k}" for k in range(len(sizes))))
    scaled = te.compute(shape, element, name="scaled", varargs_names=names)
    return join_axes(scaled, 1, x.dtype, "B")


def _with_residual(operator: str, x: te.Tensor, residual: te.Tensor | None) -> Elements:
    """Return the shape and the elements of a tensor, with a residual in the type of sums."""
    dims = dims_of(operator, x)
    if residual is None:
        return dims, _widened(x)
    check_same_dtype(operator, x, residual)
    check_dims(operator, residual, dims)
    left, right = _widened(x), _widened(residual)
    added = te.compute(dims, lambda *i: left(*i) + right(*i), name="added")
    return dims, lambda *i: added[i]


def _normalized(x: Elements, axis: int, epsilon: float) -> Callable[..., te.Value]:
    """Return elements moved to mean 0 and scaled to variance 1 over `axis` and later axes."""
    dims, at = x
    rows, inner = dims[:axis], dims[axis:]
    count, k = math.prod(inner), _axes(inner)
    total = te.compute(rows, lambda *i: te.sum(at(*i, *k), axis=k), name="total")
    mean = te.compute(rows, lambda *i: total[i] / count, name="mean")
    r = _axes(inner)
    # Two passes: the mean of squares minus the square of the mean would cancel.
    spread = te.compute(
        rows,
        lambda *i: te.sum((at(*i, *r) - mean[i]) * (at(*i, *r) - mean[i]), axis=r),
        name="spread",
    )

    def element(*i: te.Value) -> te.Value:
        row = i[:axis]
        return (at(*i) - mean[row]) * te.rsqrt(spread[row] / count + epsilon)

    return element


def rms_norm(
    x: te.Tensor,
    weight: te.Tensor,
    residual: te.Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Return `x / sqrt(mean of squares + epsilon) * weight` over `axis` and later axes.

    A residual of the same shape is added to `x` first.

    Raises:
        OperatorError: If a shape, a type, the axis or `epsilon` does not fit.
    """
    dims, axis = _along("rms_norm", x, axis, weight)
    check_number("rms_norm", epsilon=epsilon)
    rows, inner = dims[:axis], dims[axis:]
    check_dims("rms_norm", weight, inner)
    count, (_, at) = math.prod(inner), _with_residual("rms_norm", x, residual)
    k = _axes(inner)
    squares = te.compute(rows, lambda *i: te.sum(at(*i, *k) * at(*i, *k), axis=k), name="squares")

    def element(*i: te.Value) -> te.Value:
        scaled = at(*i) * te.rsqrt(squares[i[:axis]] / count + epsilon)
        return (scaled * _widened(weight)(*i[axis:])).astype(x.dtype)

    return te.compute(dims, element, name="B")


def batch_norm(
    x: te.Tensor,
    gamma: te.Tensor,
    beta: te.Tensor,
    mean: te.Tensor,
    variance: te.Tensor,
    *,
    axis: int = 1,
    epsilon: float = 1e-5,
) -> te.Tensor:
    """Return `(x - mean) / sqrt(variance + epsilon) * gamma + beta`, for each channel on `axis`.

    Raises:
        OperatorError: If a shape, a type, the axis or `epsilon` does not fit.
    """
    dims, axis = _along("batch_norm", x, axis, gamma, beta, mean, variance)
    check_number("batch_norm", epsilon=epsilon)
    for parameter in (gamma, beta, mean, variance):
        check_dims("batch_norm", parameter, (dims[axis],))

    def element(*i: te.Value) -> te.Value:
        c = i[axis]
        return (x[i] - mean[c]) * te.rsqrt(variance[c] + epsilon) * gamma[c] + beta[c]

    return te.compute(dims, element, name="B")


def _along(
    operator: str, x: te.Tensor, axis: int, *parameters: te.Tensor
) -> tuple[tuple[int, ...], int]:
    check_dtype(operator, x.dtype, needs_float=True)
    check_same_dtype(operator, x, *parameters)
    dims = dims_of(operator, x)
    return dims, check_axis(operator, axis, len(dims))


def _widened(x: te.Tensor) -> Callable[..., te.Value]:
    """Return the elements of a tensor by their indices, in the type of sums."""
    return lambda *index: x[index].astype(sum_dtype(x.dtype))


def _largest(x: te.Tensor, dims: tuple[int, ...], axis: int) -> te.Tensor:
    k, at = te.reduce_axis((0, dims[axis]), name="k"), _widened(x)
    return te.compute(
        _without(dims, axis), lambda *i: te.max(at(*_with(i, axis, k)), axis=k), name="largest"
    )


def _axes(extents: tuple[int, ...]) -> list[te.ReduceAxis]:
    names = ["k"] if len(extents) == 1 else [f"k{n}" for n in range(len(extents))]
    return [te.reduce_axis((0, n), name=name) for n, name in zip(extents, names, strict=True)]


def _without(items: tuple, axis: int) -> tuple:  # type: ignore[type-arg]
    return (*items[:axis], *items[axis + 1 :])


def _with(items: tuple, axis: int, item: object) -> tuple:  # type: ignore[type-arg]
    return (*items[:axis], item, *items[axis:])
