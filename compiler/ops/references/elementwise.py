"""Activations and elementwise operators by NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from compiler.ops.operator import Array, Options

erf = np.vectorize(math.erf, otypes=[np.float64])


def relu(x: Array) -> Array:
    """Return `x` or zero, whichever is larger."""
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    """Return the logistic function."""
    return np.asarray(1 / (1 + np.exp(-x)))


def silu(x: Array) -> Array:
    """Return `x` times its logistic function."""
    return x * sigmoid(x)


def gelu(x: Array) -> Array:
    """Return the Gaussian error linear unit."""
    return np.asarray(x / 2 * (1 + erf(x / math.sqrt(2))))


def gelu_tanh(x: Array) -> Array:
    """Return `gelu` by its approximation."""
    return np.asarray(x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    """Return `x`, or a part of it if it is negative."""
    return np.where(x > 0, x, x * negative_slope)


ACTIVATIONS: dict[str | None, Callable[[Array], Array]] = {
    None: lambda x: x,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "leaky_relu": leaky_relu,
    "relu": relu,
    "sigmoid": sigmoid,
    "silu": silu,
    "tanh": np.tanh,
}


def rsqrt(x: Array) -> Array:
    """Return one over the square root."""
    return np.asarray(1 / np.sqrt(x))


def gelu_of(p: Options, x: Array) -> Array:
    """Return `gelu`, or its approximation if the options ask for it."""
    return gelu(x) if p.approximate == "none" else gelu_tanh(x)
