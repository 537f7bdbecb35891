"""Normalizations, softmax and its relatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.arrays import widened
from compiler.graph.operators.axes import check_axis
from compiler.graph.operators.checks import check_shape
from compiler.graph.operators.types import check_accepts, check_same_dtype
from compiler.ir.core.dtypes import sum_dtype
from compiler.ir.core.nodes import static_shape
from compiler.ops.tensors import normalization as library
from compiler.ops.tensors.windows import pad


def _softmax(x: te.Tensor, *, axis: int) -> te.Tensor:
    return library.softmax(x, axis=axis)


def _softmax_arrays(x: Array, *, axis: int) -> Array:
    x = widened(x)
    powers = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


@graph_operator("nn.softmax", "row", tensors=_softmax, reference=_softmax_arrays)
def softmax(x: TensorType, *, axis: int = -1) -> TensorType:
    """Infer `exp(x) / sum(exp(x))` along an axis."""
    check_accepts("nn.softmax", "float", x)
    check_axis("nn.softmax", axis, x.rank)
    return x


def _log_softmax(x: te.Tensor, *, axis: int) -> te.Tensor:
    return library.log_softmax(x, axis=axis)


def _log_softmax_arrays(x: Array, *, axis: int) -> Array:
    x = widened(x)
    shifted = x - x.max(axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis, keepdims=True)))


@graph_operator("nn.log_softmax", "row", tensors=_log_softmax, reference=_log_softmax_arrays)
def log_softmax(x: TensorType, *, axis: int = -1) -> TensorType:
    """Infer the logarithm of `nn.softmax`."""
    check_accepts("nn.log_softmax", "float", x)
    check_axis("nn.log_softmax", axis, x.rank)
    return x


def _layer_norm(
    x: te.Tensor, gamma: te.Tensor, beta: te.Tensor, *, axes: tuple[int, ...], epsilon: float
) -> te.Tensor:
    return library.layer_norm(x, gamma, beta, axis=min(axes, key=_from_first(x)), epsilon=epsilon)


def _from_first(x: te.Tensor) -> Any:
    return lambda axis: axis % x.ndim


def _layer_norm_arrays(
    x: Array, gamma: Array, beta: Array, *, axes: tuple[int, ...], epsilon: float
) -> Array:
    x = widened(x)
    centred = x - x.mean(axes, keepdims=True)
    variance = (centred * centred).mean(axes, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + epsilon) * widened(gamma) + widened(beta))


@graph_operator("nn.layer_norm", "row", tensors=_layer_norm, reference=_layer_norm_arrays)
def layer_norm(
    x: TensorType,
    gamma: TensorType,
    beta: TensorType,
    *,
    axes: tuple[int, ...] = (-1,),
    epsilon: float = 1e-5,
) -> TensorType:
    """Infer `(x - mean) / sqrt(variance + epsilon) * gamma + beta` over the last axes."""
    _check_inner("nn.layer_norm", x, axes, gamma, beta)
    return x


def _rms_norm(
    x: te.Tensor, weight: te.Tensor, *, axes: tuple[int, ...], epsilon: float
) -> te.Tensor:
    return library.rms_norm(x, weight, axis=min(axes, key=_from_first(x)), epsilon=epsilon)


def _rms_norm_arrays(x: Array, weight: Array, *, axes: tuple[int, ...], epsilon: float) -> Array:
    x = widened(x)
    squares = (x * x).mean(axes, keepdims=True)
    return np.asarray(x / np.sqrt(squares + epsilon) * widened(weight))


@graph_operator("nn.rms_norm", "row", tensors=_rms_norm, reference=_rms_norm_arrays)
def rms_norm(
    x: TensorType, weight: TensorType, *, axes: tuple[int, ...] = (-1,), epsilon: float = 1e-5
) -> TensorType:
    """Infer `x / sqrt(mean of squares + epsilon) * weight` over the last axes."""
    _check_inner("nn.rms_norm", x, axes, weight)
    return x


def _check_inner(
    operator: str, x: TensorType, axes: Sequence[int], *parameters: TensorType
) -> None:
    check_accepts(operator, "float", x)
    check_same_dtype(operator, x, *parameters)
    ordered = sorted(check_axis(operator, axis, x.rank) for axis in axes)
    if not ordered or ordered != list(range(ordered[0], x.rank)):
        raise ModelError(
            f"{operator}: axes are {tuple(axes)}: expected the last of {x.rank} dimensions"
        )
    for parameter in parameters:
        check_shape(operator, "a parameter", parameter, x.shape[ordered[0] :])


def _batch_norm(x: te.Tensor, *parameters: te.Tensor, axis: int, epsilon: float) -> te.Tensor:
    gamma, beta, mean, variance = parameters
    return library.batch_norm(x, gamma, beta, mean, variance, axis=axis, epsilon=epsilon)


def _batch_norm_arrays(x: Array, *parameters: Array, axis: int, epsilon: float) -> Array:
    shape = [1] * x.ndim
    shape[axis] = -1
    gamma, beta, mean, variance = (widened(each).reshape(shape) for each in parameters)
    return np.asarray((widened(x) - mean) / np.sqrt(variance + epsilon) * gamma + beta)


@graph_operator("nn.batch_norm", "map", tensors=_batch_norm, reference=_batch_norm_arrays)
def batch_norm(
    x: TensorType,
    gamma: TensorType,
    beta: TensorType,
    mean: TensorType,
    variance: TensorType,
    *,
    axis: int = 1,
    epsilon: float = 1e-5,
) -> TensorType:
    """Infer `(x - mean) / sqrt(variance + epsilon) * gamma + beta`, for each channel on `axis`."""
    check_accepts("nn.batch_norm", "float", x)
    check_same_dtype("nn.batch_norm", x, gamma, beta, mean, variance)
    channels = x.shape[check_axis("nn.batch_norm", axis, x.rank)]
    for parameter in (gamma, beta, mean, variance):
        check_shape("nn.batch_norm", "a parameter", parameter, (channels,))
    return x


def _group_norm(
    x: te.Tensor, gamma: te.Tensor, beta: te.Tensor, *, num_groups: int, epsilon: float
) -> te.Tensor:
    return library.group_norm(x, gamma, beta, groups=num_groups, epsilon=epsilon)


def _group_norm_arrays(
    x: Array, gamma: Array, beta: Array, *, num_groups: int, epsilon: float
) -> Array:
    rows = widened(x).reshape(x.shape[0], num_groups, -1)
    centred = rows - rows.mean(2, keepdims=True)
    variance = (centred * centred).mean(2, keepdims=True)
    normal = (centred / np.sqrt(variance + epsilon)).reshape(x.shape)
    shape = (-1, *[1] * (x.ndim - 2))
    return np.asarray(normal * widened(gamma).reshape(shape) + widened(beta).reshape(shape))


@graph_operator("nn.group_norm", "row", tensors=_group_norm, reference=_group_norm_arrays)
def group_norm(
    x: TensorType,
    gamma: TensorType,
    beta: TensorType,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
) -> TensorType:
    """Infer `(x - mean) / sqrt(variance + epsilon) * gamma + beta` over groups of channels.

    An instance norm is one with as many groups as channels.
    """
    check_accepts("nn.group_norm", "float", x)
    check_same_dtype("nn.group_norm", x, gamma, beta)
    channels = x.shape[1] if x.rank > 2 else None
    if not isinstance(channels, int) or num_groups < 1 or channels % num_groups:
        raise ModelError(
            f"nn.group_norm: {num_groups} groups of the channels of {x.shape}: expected 3 or more"
            " dimensions, and groups that divide the second"
        )
    for parameter in (gamma, beta):
        check_shape("nn.group_norm", "a parameter", parameter, (channels,))
    return x


def _lrn(x: te.Tensor, *, size: int, alpha: float, beta: float, bias: float) -> te.Tensor:
    dims, dtype = static_shape(x.buffer), sum_dtype(x.dtype)
    before, rest = (size - 1) // 2, (0,) * (len(dims) - 2)
    padded = pad(x, dims, (0, before, *rest), (0, size - 1 - before, *rest))
    k = te.reduce_axis((0, size), name="k")

    def total(*i: te.Value) -> te.Reduction:
        value = padded[(i[0], i[1] + k, *i[2:])].astype(dtype)
        return te.sum(value * value, axis=k)

    squares = te.compute(dims, total, name="squares")

    def element(*i: te.Value) -> te.Value:
        scale = te.power(squares[i] * (alpha / size) + bias, te.const(-beta, dtype))
        return (x[i].astype(dtype) * scale).astype(x.dtype)

    return te.compute(dims, element, name="lrn")


def _lrn_arrays(x: Array, *, size: int, alpha: float, beta: float, bias: float) -> Array:
    x = widened(x)
    squares, channels = np.zeros_like(x), x.shape[1]
    for channel in range(channels):
        first = max(0, channel - (size - 1) // 2)
        end = min(channels, channel + math.ceil((size - 1) / 2) + 1)
        squares[:, channel] = (x[:, first:end] ** 2).sum(1)
    return np.asarray(x / (bias + alpha / size * squares) ** beta)


@graph_operator("nn.lrn", "window", tensors=_lrn, reference=_lrn_arrays)
def lrn(
    x: TensorType,
    *,
    size: int,
    alpha: float = 1e-4,
    beta: float = 0.75,
    bias: float = 1.0,
) -> TensorType:
    """Infer `x / (bias + alpha * mean of squares) ** beta` over windows of channels."""
    check_accepts("nn.lrn", "float", x)
    if x.rank < 2 or size < 1:
        raise ModelError(f"nn.lrn of {x.shape} over {size} channels: expected [n, c, ...]")
    return x
