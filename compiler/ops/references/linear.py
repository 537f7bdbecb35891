"""Matrix products by NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.ops.operator import Array, Options
from compiler.ops.references.elementwise import ACTIVATIONS


def with_epilogue(p: Options, total: Array, bias: Sequence[Array], axis: int) -> Array:
    """Return a sum of products with its bias and its activation."""
    if bias:
        shape = [1] * total.ndim
        shape[axis] = -1
        total = total + bias[0].reshape(shape)
    return ACTIVATIONS[getattr(p, "activation", None)](total)


def matmul(p: Options, a: Array, b: Array, *bias: Array) -> Array:
    """Multiply matrices, the last two dimensions of each."""
    left = a.swapaxes(-1, -2) if getattr(p, "transpose_a", False) else a
    right = b.swapaxes(-1, -2) if getattr(p, "transpose_b", False) else b
    return with_epilogue(p, left @ right, bias, -1)


def dense(p: Options, a: Array, w: Array, *bias: Array) -> Array:
    """Multiply by a matrix of weights, which is stored transposed."""
    return with_epilogue(p, a @ w.T, bias, -1)


def linear_relu(_: Options, x: Array, weight: Array) -> Array:
    """Return `max(x @ weight.T, 0)`."""
    return np.asarray(np.maximum(x @ weight.T, 0))


def matmul_bias_relu(_: Options, a: Array, b: Array, bias: Array) -> Array:
    """Return `max(a @ b + bias, 0)`."""
    return np.asarray(np.maximum(a @ b + bias, 0))


def mm_relu(_: Options, a: Array, b: Array) -> Array:
    """Return `max(a @ b, 0)`."""
    return np.asarray(np.maximum(a @ b, 0))
