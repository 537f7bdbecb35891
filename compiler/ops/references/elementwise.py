"""What activations and elementwise operators compute, by NumPy; see `reference`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    """Return the logistic function."""
    return np.asarray(1 / (1 + np.exp(-x)))


def gelu(x: Array) -> Array:
    """Return the Gaussian error linear unit."""
    return np.asarray(x / 2 * (1 + erf(x / math.sqrt(2))))


def gelu_tanh(x: Array) -> Array:
    """Return `gelu` by its approximation."""
    return np.asarray(x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def leaky_relu(x: Array, negative_slope: float = 0.01) -> Array:
    """Return `x`, or a part of it where it is negative."""
    return np.where(x > 0, x, x * negative_slope)


ACTIVATIONS: dict[str | None, Callable[[Array], Array]] = {
    None: lambda x: x,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "leaky_relu": leaky_relu,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "tanh": np.tanh,
}
UNARY: dict[str, Callable[[Array], Array]] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "cos": np.cos,
    "erf": erf,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "negative": np.negative,
    "relu": ACTIVATIONS["relu"],
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": sigmoid,
    "silu": ACTIVATIONS["silu"],
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "power": np.power,
    "subtract": np.subtract,
}
