"""NumPy with OpenBLAS; in float64 also the reference of every result."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.peers.library import Prepared
from benchmarks.workloads import Array, BenchmarkWorkload


def start(threads: int) -> dict[str, str]:
    """Return versions; OpenBLAS reads its number of threads from the environment."""
    del threads
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {"numpy": np.__version__, str(blas["name"]): str(blas["version"])}


def prepare(workload: BenchmarkWorkload, backend: str) -> Prepared:
    """Prepare a workload."""
    del backend
    compute, inputs, result = OPS[workload.op], workload.inputs(), np.empty(0)

    def run() -> None:
        nonlocal result
        result = compute(workload, *inputs)

    return Prepared(run, lambda: result)


def reference(workload: BenchmarkWorkload) -> Array:
    """Compute a workload in float64."""
    result: Array = OPS[workload.op](
        workload, *(array.astype("float64") for array in workload.inputs())
    )
    return result


def conv2d(w: BenchmarkWorkload, image: Array, weights: Array) -> Array:
    """Convolve by a matrix product with copies of the windows of each group."""
    stride, padding, groups = (w.options[name] for name in ("stride", "padding", "groups"))
    padded = np.pad(image[0], ((0, 0), (padding, padding), (padding, padding)))
    windows = sliding_window_view(padded, weights.shape[2:], axis=(1, 2))
    windows = windows[:, ::stride, ::stride]  # channels, height, width, kernel, kernel
    columns = np.ascontiguousarray(windows.transpose(0, 3, 4, 1, 2))
    columns = columns.reshape(groups, -1, w.out[2] * w.out[3])
    product: Array = weights.reshape(groups, w.out[1] // groups, -1) @ columns
    result: Array = product.reshape(w.out)
    return result


def conv2d_nhwc(w: BenchmarkWorkload, image: Array, weights: Array) -> Array:
    """As `conv2d`, with channels last."""
    padding = w.options["padding"]
    padded = np.pad(image[0], ((padding, padding), (padding, padding), (0, 0)))
    windows = sliding_window_view(padded, weights.shape[:2], axis=(0, 1))
    columns = np.ascontiguousarray(windows.transpose(0, 1, 3, 4, 2))
    product: Array = columns.reshape(w.out[1] * w.out[2], -1) @ weights.reshape(-1, w.out[3])
    result: Array = product.reshape(w.out)
    return result


def softmax(x: Array) -> Array:
    """Return the softmax of rows."""
    e: Array = np.exp(x - x.max(-1, keepdims=True))
    e /= e.sum(-1, keepdims=True)
    return e


def layer_norm(x: Array, gamma: Array, beta: Array) -> Array:
    """Return rows at mean 0 and variance 1, scaled and shifted."""
    centred = x - x.mean(-1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(-1, keepdims=True) + x.dtype.type(1e-5))
    centred /= spread
    centred *= gamma
    centred += beta
    return np.asarray(centred)


def attention(q: Array, k: Array, v: Array) -> Array:
    """Return scaled dot-product attention."""
    scale = q.dtype.type(1 / sqrt(q.shape[-1]))
    return np.asarray(softmax(q @ k.swapaxes(-1, -2) * scale) @ v)


def relu(x: Array) -> Array:
    """Replace negative elements by zero, in place."""
    return np.maximum(x, 0, out=x)


OPS: dict[str, Callable[..., Any]] = {
    "add_relu": lambda _, a, b: relu(a + b),
    "attention": lambda _, q, k, v: attention(q, k, v),
    "batch_matmul": lambda _, a, b: a @ b,
    "conv2d": conv2d,
    "conv2d_nhwc": conv2d_nhwc,
    "dense": lambda _, a, b: a @ b.T,
    "layer_norm": lambda _, x, gamma, beta: layer_norm(x, gamma, beta),
    "linear_relu": lambda _, a, b: relu(a @ b.T),
    "matmul": lambda _, a, b: a @ b,
    "matmul_bias_relu": lambda _, a, b, bias: relu(a @ b + bias),
    "mm_relu": lambda _, a, b: relu(a @ b),
    "row_sum": lambda _, x: x.sum(1),
    "softmax": lambda _, x: softmax(x),
    "transpose": lambda _, x: np.ascontiguousarray(x.T),
}
