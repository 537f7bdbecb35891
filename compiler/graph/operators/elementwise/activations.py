"""Activations of neural networks, defined as ONNX defines them."""

from __future__ import annotations

import numpy as np

from compiler import te
from compiler.graph.nodes import Array
from compiler.graph.operators.elementwise.maps import declare_map
from compiler.ir.core.intrinsics import INTRINSICS
from compiler.ops.tensors import epilogue

_SELU_ALPHA = 1.67326319217681884765625
_SELU_GAMMA = 1.05070102214813232421875
"""The defaults of ONNX: the constants of the paper (Klambauer et al. 2017) in float32."""


def _above_zero(x: te.Value, negative: te.Value) -> te.Value:
    """Return `x` if it is positive, else another value."""
    return te.select(x > 0, x, negative)


def _leaky_relu(x: te.Value, *, alpha: float) -> te.Value:
    return epilogue.leaky_relu(x, alpha)


def _elu(x: te.Value, *, alpha: float) -> te.Value:
    return _above_zero(x, (te.exp(x) - 1) * alpha)


def _softplus(x: te.Value) -> te.Value:
    # The logarithm of 1 + exp(x), by an exponential that can't overflow.
    return te.max(x, 0) + te.log1p(te.exp(-te.abs(x)))


def _shrink(x: te.Value, *, lambd: float, bias: float) -> te.Value:
    zero = te.const(0, x.dtype)
    return te.select(x < -lambd, x + bias, te.select(x > lambd, x - bias, zero))


def _hard_sigmoid(x: te.Value, *, alpha: float, beta: float) -> te.Value:
    return te.max(te.min(x * alpha + beta, 1), 0)


def _normal_probability(x: Array) -> Array:
    return np.asarray((1 + INTRINSICS["erf"].reference(x / np.sqrt(2.0))) / 2)


def _tanh_gelu(x: Array) -> Array:
    return np.asarray(x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2)


def _hard_sigmoid_reference(x: Array, *, alpha: float, beta: float) -> Array:
    return np.asarray(np.clip(alpha * x + beta, 0, 1))


def _prelu_reference(x: Array, slope: Array) -> Array:
    return np.asarray(np.where(x > 0, x, x * slope))


def _elu_reference(x: Array, *, alpha: float) -> Array:
    return np.asarray(np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))))


def _shrink_reference(x: Array, *, lambd: float, bias: float) -> Array:
    return np.asarray(np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)))


declare_map("nn.prelu", lambda x, slope: _above_zero(x, x * slope), _prelu_reference, operands=2)
declare_map("nn.relu", epilogue.relu, lambda x: np.maximum(x, 0))
declare_map("nn.silu", epilogue.silu, lambda x: x * np.exp(-np.logaddexp(0, -x)), "float")
declare_map("nn.gelu", epilogue.gelu, lambda x: x * _normal_probability(x), "float")
declare_map("nn.gelu_tanh", epilogue.gelu_tanh, _tanh_gelu, "float")
declare_map(
    "nn.leakyrelu",
    _leaky_relu,
    lambda x, alpha: np.where(x > 0, x, alpha * x),
    "float",
    alpha=0.01,
)
declare_map("nn.elu", _elu, _elu_reference, "float", alpha=1.0)
declare_map(
    "nn.celu",
    lambda x, alpha: _above_zero(x, (te.exp(x * (1 / alpha)) - 1) * alpha),
    lambda x, alpha: np.maximum(0, x) + np.minimum(0, alpha * np.expm1(x / alpha)),
    "float",
    alpha=1.0,
)
declare_map(
    "nn.selu",
    lambda x, alpha, gamma: _above_zero(x, (te.exp(x) - 1) * alpha) * gamma,
    lambda x, alpha, gamma: gamma * _elu_reference(x, alpha=alpha),
    "float",
    alpha=_SELU_ALPHA,
    gamma=_SELU_GAMMA,
)
declare_map("nn.hard_sigmoid", _hard_sigmoid, _hard_sigmoid_reference, "float", alpha=0.2, beta=0.5)
declare_map(
    "nn.hard_swish",
    lambda x: x * _hard_sigmoid(x, alpha=1 / 6, beta=0.5),
    lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "float",
)
declare_map("nn.softplus", _softplus, lambda x: np.logaddexp(x, 0), "float")
declare_map(
    "nn.mish",
    lambda x: x * te.tanh(_softplus(x)),
    lambda x: x * np.tanh(np.logaddexp(x, 0)),
    "float",
)
declare_map("nn.softsign", lambda x: x / (te.abs(x) + 1), lambda x: x / (1 + np.abs(x)), "float")
declare_map(
    "nn.thresholded_relu",
    lambda x, alpha: te.select(x > alpha, x, te.const(0, x.dtype)),
    lambda x, alpha: np.where(x > alpha, x, 0),
    "float",
    alpha=1.0,
)
declare_map("nn.shrink", _shrink, _shrink_reference, lambd=0.5, bias=0.0)
