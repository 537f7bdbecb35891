"""Normalizations, softmax and its relatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.extents import is_static, product, static
from compiler.graph.nodes import Operand, TensorType
from compiler.graph.operators.axes import check_axis
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import onnx_operator
from compiler.ir.core.dtypes import sum_dtype

_AXIS_ALONE = 13
"""The first version in which a softmax is along one axis, not over all later ones."""

_BY_CHANNEL = 21
"""The first version in which group norms have parameters for each channel, not for each group."""


@onnx_operator("Softmax", "LogSoftmax")
def _softmax(call: OnnxCall) -> Operand:
    op = "nn.softmax" if call.op_type == "Softmax" else "nn.log_softmax"
    x, axis, is_joined = _along_axis(call)
    result = call.add(op, x, axis=axis)
    return call.add("reshape", result, shape=call.type(0).shape) if is_joined else result


@onnx_operator("Hardmax")
def _hardmax(call: OnnxCall) -> Operand:
    x, axis, is_joined = _along_axis(call)
    positions = call.add("argmax", x, axis=axis, keepdims=True)
    extent = x.type.shape[axis]
    if not isinstance(extent, int):
        raise ModelError(f"the extent of axis {axis} is symbolic")
    shape = [1] * x.type.rank
    shape[axis] = extent
    call.check_size(extent)
    counted = call.constant(np.arange(extent, dtype=positions.type.dtype).reshape(shape))
    is_largest = call.add("equal", positions, counted)
    result = call.add("astype", is_largest, dtype=x.type.dtype)
    return call.add("reshape", result, shape=call.type(0).shape) if is_joined else result


def _along_axis(call: OnnxCall) -> tuple[Operand, int, bool]:
    """Return the operand, the axis, and whether the operand is one with joined axes instead."""
    x, is_alone = call.operand(0), call.opset >= _AXIS_ALONE
    axis = check_axis(call.op_type, call.int_attr("axis", -1 if is_alone else 1), x.type.rank)
    if is_alone or axis == x.type.rank - 1:
        return x, axis, False
    rows = product(x.type.shape[:axis])
    columns = product(x.type.shape[axis:])
    return call.add("reshape", x, shape=(rows, columns)), 1, True


@onnx_operator("BatchNormalization")
def _batch_norm(call: OnnxCall) -> Operand:
    if call.int_attr("training_mode", 0) or any(map(call.wants, range(1, 5))):
        raise ModelError(
            "a batch norm in training mode has no fixed statistics",
            advice="export the model for inference",
        )
    if not call.int_attr("spatial", 1):
        raise ModelError("statistics for each element (spatial=0) are not supported")
    x = call.operand(0)
    parameters = [_converted(call, call.operand(k), x.type) for k in range(1, 5)]
    epsilon = call.float_attr("epsilon", 1e-5)
    return call.add("nn.batch_norm", x, *parameters, axis=1, epsilon=epsilon)


def _converted(call: OnnxCall, operand: Operand, like: TensorType) -> Operand:
    if operand.type.dtype == like.dtype:
        return operand
    return call.add("astype", operand, dtype=like.dtype)


@onnx_operator("LayerNormalization")
def _layer_norm(call: OnnxCall) -> Sequence[Operand]:
    x, axes = call.operand(0), _last_axes(call)
    gamma, beta = (_parameter(call, k, axes) for k in (1, 2))
    epsilon = call.float_attr("epsilon", 1e-5)
    result = call.add("nn.layer_norm", x, gamma, beta, axes=axes, epsilon=epsilon)
    return [result, *_statistics(call, axes, epsilon)]


def _statistics(call: OnnxCall, axes: tuple[int, ...], epsilon: float) -> Sequence[Operand]:
    """Return the means and the inverse standard deviations, if they are used."""
    if not call.wants(1) and not call.wants(2):
        return ()
    x = call.operand(0)
    wide = _converted(call, x, TensorType(x.type.shape, sum_dtype(x.type.dtype)))
    mean = call.add("mean", wide, axis=axes, keepdims=True)
    centred = call.add("subtract", wide, mean)
    squares = call.add("multiply", centred, centred)
    variance = call.add("mean", squares, axis=axes, keepdims=True)
    shifted = call.add("add", variance, call.like(variance, epsilon))
    return mean, call.add("rsqrt", shifted)


@onnx_operator("RMSNormalization")
def _rms_norm(call: OnnxCall) -> Operand:
    axes = _last_axes(call)
    weight, epsilon = _parameter(call, 1, axes), call.float_attr("epsilon", 1e-5)
    return call.add("nn.rms_norm", call.operand(0), weight, axes=axes, epsilon=epsilon)


def _last_axes(call: OnnxCall) -> tuple[int, ...]:
    rank = call.type(0).rank
    return tuple(range(check_axis(call.op_type, call.int_attr("axis", -1), rank), rank))


def _parameter(call: OnnxCall, position: int, axes: Sequence[int]) -> Operand:
    """Return a factor or an addend of each element of a row; a missing addend is zero."""
    inner = call.type(0).shape[axes[0] :]
    operand = call.optional(position)
    if operand is None:
        if not is_static(inner):
            raise ModelError(f"the extents {inner} are symbolic, and the addend is missing")
        return call.constant(np.zeros(static(inner), call.type(0).dtype))
    if operand.type.shape == inner:
        return operand
    return call.add("broadcast_to", operand, shape=inner)


@onnx_operator("InstanceNormalization")
def _instance_norm(call: OnnxCall) -> Operand:
    scale = call.static_type(1)
    if scale.rank != 1:
        raise ModelError(f"the scale is a {scale}: expected one number for each channel")
    return _group_norm_of(call, call.operand(1), call.operand(2), scale.static_shape[0])


@onnx_operator("GroupNormalization")
def _group_norm(call: OnnxCall) -> Operand:
    groups, x = call.int_attr("num_groups"), call.type(0)
    if x.rank < 2:
        raise ModelError(f"a normalization of {x}: expected extents (batch, channels, ...)")
    channels = x.shape[1]
    gamma, beta = call.operand(1), call.operand(2)
    if call.opset < _BY_CHANNEL:
        if not isinstance(channels, int) or groups < 1 or channels % groups:
            raise ModelError(f"{groups} groups of {channels} channels")
        gamma, beta = (
            call.add("repeat", each, repeats=channels // groups, axis=0) for each in (gamma, beta)
        )
    return _group_norm_of(call, gamma, beta, groups)


def _group_norm_of(call: OnnxCall, gamma: Operand, beta: Operand, groups: int) -> Operand:
    epsilon = call.float_attr("epsilon", 1e-5)
    return call.add(
        "nn.group_norm", call.operand(0), gamma, beta, num_groups=groups, epsilon=epsilon
    )


@onnx_operator("LRN")
def _lrn(call: OnnxCall) -> Operand:
    return call.add(
        "nn.lrn",
        call.operand(0),
        size=call.int_attr("size"),
        alpha=call.float_attr("alpha", 1e-4),
        beta=call.float_attr("beta", 0.75),
        bias=call.float_attr("bias", 1.0),
    )


@onnx_operator("LpNormalization")
def _lp_normalization(call: OnnxCall) -> Operand:
    x, axis, p = call.operand(0), call.int_attr("axis", -1), call.int_attr("p", 2)
    if p not in {1, 2}:
        raise ModelError(f"p is {p}: expected 1 or 2")
    powers = call.add("abs", x) if p == 1 else call.add("multiply", x, x)
    total = call.add("sum", powers, axis=(axis,), keepdims=True)
    norm = total if p == 1 else call.add("sqrt", total)
    # A row of zeros stays one.
    is_zero = call.add("equal", norm, call.like(norm, 0))
    divisor = call.add("where", is_zero, call.like(norm, 1), norm)
    return call.add("divide", x, divisor)
