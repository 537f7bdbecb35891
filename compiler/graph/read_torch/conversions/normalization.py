"""Normalizations and softmax."""

from __future__ import annotations

import math

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.registry import aten
from compiler.ir.core.dtypes import DType


def _parameter(
    call: TorchCall, name: str, shape: tuple[int, ...], number: float, dtype: DType
) -> Operand:
    """Return a parameter, or one that changes nothing if it is left out."""
    operand = call.optional(name)
    if operand is None:
        return call.constant(np.full(shape, number).astype(dtype))
    return call.cast(operand, dtype)


def _scale_and_shift(
    call: TorchCall, x: Operand, shape: tuple[int, ...]
) -> tuple[Operand, Operand]:
    dtype = x.type.dtype
    return _parameter(call, "weight", shape, 1, dtype), _parameter(call, "bias", shape, 0, dtype)


@aten("_native_batch_norm_legit_no_training.default")
def _batch_norm(call: TorchCall) -> list[Operand]:
    x = call.operand("input")
    channels = x.type.static_shape[1:2]
    dtype = x.type.dtype
    scale_and_shift = _scale_and_shift(call, x, channels)
    mean, variance = (
        call.cast(call.operand(name), dtype) for name in ("running_mean", "running_var")
    )
    epsilon = float(call.number("eps"))
    return [call.add("nn.batch_norm", x, *scale_and_shift, mean, variance, epsilon=epsilon)]


@aten("layer_norm.default", "native_layer_norm.default")
def _layer_norm(call: TorchCall) -> list[Operand]:
    x, shape = call.operand("input"), call.integers("normalized_shape")
    axes = tuple(range(-len(shape), 0))
    parameters = _scale_and_shift(call, x, shape)
    return [call.add("nn.layer_norm", x, *parameters, axes=axes, epsilon=float(call.number("eps")))]


@aten("rms_norm.default", "_fused_rms_norm.default")
def _rms_norm(call: TorchCall) -> list[Operand]:
    x, shape = call.operand("input"), call.integers("normalized_shape")
    axes = tuple(range(-len(shape), 0))
    weight = _parameter(call, "weight", shape, 1, x.type.dtype)
    epsilon = call.argument("eps")
    if epsilon is None:  # the machine epsilon of the type
        epsilon = {"float64": 2.0**-52, "float16": 2.0**-10}.get(x.type.dtype, 2.0**-23)
    assert isinstance(epsilon, float)
    return [call.add("nn.rms_norm", x, weight, axes=axes, epsilon=epsilon)]


@aten("group_norm.default", "native_group_norm.default")
def _group_norm(call: TorchCall) -> list[Operand]:
    x = call.operand("input")
    groups = call.integer("num_groups" if call.overload == "group_norm.default" else "group")
    return [_by_groups(call, x, groups)]


@aten("instance_norm.default")
def _instance_norm(call: TorchCall) -> Operand:
    x = call.operand("input")
    if not call.flag("use_input_stats"):
        raise ModelError("instance_norm by recorded statistics is not supported")
    return _by_groups(call, x, x.type.static_shape[1])


def _by_groups(call: TorchCall, x: Operand, groups: int) -> Operand:
    shape = x.type.static_shape
    image = call.reshaped(x, (*shape, 1)) if len(shape) == 2 else x
    parameters = _scale_and_shift(call, x, shape[1:2])
    epsilon = float(call.number("eps"))
    result = call.add("nn.group_norm", image, *parameters, num_groups=groups, epsilon=epsilon)
    return call.reshaped(result, shape)


@aten("_safe_softmax.default")
def _safe_softmax(call: TorchCall) -> Operand:
    """Return 0 for a row of negative infinities, of which softmax is NaN."""
    x = call.operand("self")
    x = call.cast(x, call.result().dtype)
    is_closed = call.add("equal", x, call.like(x, -math.inf))
    weights = call.add("nn.softmax", x, axis=call.integer("dim"))
    return call.add("where", is_closed, call.like(x, 0), weights)


@aten("_softmax.default", "softmax.int", "_log_softmax.default", "log_softmax.int")
def _softmax(call: TorchCall) -> Operand:
    op = "nn.log_softmax" if "log_softmax" in call.overload else "nn.softmax"
    x = call.cast(call.operand("self"), call.result().dtype)
    if x.type.rank == 0:
        return call.scalar(0 if op == "nn.log_softmax" else 1, x.type.dtype)
    return call.add(op, x, axis=call.integer("dim"))
