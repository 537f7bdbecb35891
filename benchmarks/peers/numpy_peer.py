"""NumPy with OpenBLAS; in float64 also the reference of every result."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from benchmarks.peers.library import Prepared
from benchmarks.workloads.workload import Array, BenchmarkWorkload, from_bfloat16


def start(threads: int) -> dict[str, str]:
    """Return versions; OpenBLAS reads its number of threads from the environment."""
    del threads
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {"numpy": np.__version__, str(blas["name"]): str(blas["version"])}


def prepare(workload: BenchmarkWorkload, backend: str) -> Prepared:
    """Prepare a workload."""
    del backend
    compute, inputs, result = OPS[workload.op], _readable(workload), np.empty(0)

    def run() -> None:
        nonlocal result
        result = compute(workload, *inputs)

    return Prepared(run, lambda: result)


def reference(workload: BenchmarkWorkload) -> Array:
    """Compute a workload in float64."""
    inputs = (_in_float64(array) for array in _readable(workload))
    result: Array = OPS[workload.op](workload, *inputs)
    return result


def _readable(workload: BenchmarkWorkload) -> list[Array]:
    """Return inputs; NumPy reads numbers of `bfloat16` as float32."""
    tensors = zip(workload.inputs(), workload.all_types, strict=False)
    return [from_bfloat16(array) if kind == "bfloat16" else array for array, kind in tensors]


def _in_float64(array: Array) -> Array:
    return array.astype("float64") if array.dtype.kind == "f" else array


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


def conv2d_transpose(w: BenchmarkWorkload, image: Array, weights: Array) -> Array:
    """Convolve an image with zeros between its pixels by the turned weights."""
    stride, padding = w.options["stride"], w.options["padding"]
    channels, height, width = image.shape[1:]
    around = weights.shape[2] - 1 - padding
    padded = np.zeros(
        (channels, *(stride * (n - 1) + 1 + 2 * around for n in (height, width))), image.dtype
    )
    inside = slice(around, padded.shape[1] - around), slice(around, padded.shape[2] - around)
    padded[:, inside[0], inside[1]][:, ::stride, ::stride] = image[0]
    windows = sliding_window_view(padded, weights.shape[2:], axis=(1, 2))
    columns = np.ascontiguousarray(windows.transpose(0, 3, 4, 1, 2))
    turned = weights.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1].reshape(w.out[1], -1)
    return np.asarray(turned @ columns.reshape(turned.shape[1], -1)).reshape(w.out)


def quantized_conv2d(w: BenchmarkWorkload, image: Array, weights: Array, scale: Array) -> Array:
    """Convolve bytes, exactly in floats, and scale the sums to bytes."""
    sums = conv2d(w, image.astype(scale.dtype), weights.astype(scale.dtype))
    return np.asarray(np.clip(np.rint(sums * scale[:, None, None]), 0, 255))


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


def grouped_query_attention(q: Array, k: Array, v: Array) -> Array:
    """Return attention of groups of neighbouring heads, which share keys and values."""
    batch, heads, m, depth = q.shape
    group = heads // k.shape[1]
    grouped = q.reshape(batch, k.shape[1], group * m, depth)
    return attention(grouped, k, v).reshape(q.shape)


def dense_int4(a: Array, packed: Array, scale: Array) -> Array:
    """Multiply by unpacked weights: the first half of a group is in the lower bits."""
    halves = np.concatenate([packed & 15, packed >> 4], axis=2).astype(a.dtype)
    weights = (halves - 8) * scale[:, :, None]
    return np.asarray(a @ weights.reshape(len(packed), -1).T)


def quantized_dense(a: Array, w: Array, scale: Array, bias: Array) -> Array:
    """Multiply bytes, exactly in floats, and scale the sums to bytes."""
    floats = scale.dtype
    sums = a.astype(floats) @ w.T.astype(floats) + bias
    return np.asarray(np.clip(np.rint(sums * scale), 0, 255))


def gelu(x: Array) -> Array:
    """Return the GELU by a rational approximation of erf, with errors below 2e-7.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26 has 1.5e-7.
    """
    z = np.abs(x) / sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    steps = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    erf = 1 - np.polyval(steps, t) * t * np.exp(-z * z)
    return np.asarray(x * (1 + np.copysign(erf, x)) / 2, dtype=x.dtype)


def conv1d(image: Array, weights: Array) -> Array:
    """Convolve rows with padding that keeps their length."""
    padding = weights.shape[2] // 2
    padded = np.pad(image[0], ((0, 0), (padding, padding)))
    windows = sliding_window_view(padded, weights.shape[2], axis=1)
    columns = np.ascontiguousarray(windows.transpose(0, 2, 1)).reshape(-1, image.shape[2])
    return np.asarray((weights.reshape(len(weights), -1) @ columns)[None])


def relu(x: Array) -> Array:
    """Replace negative elements by zero, in place."""
    return np.maximum(x, 0, out=x)


OPS: dict[str, Callable[..., Any]] = {
    "add_relu": lambda _, a, b: relu(a + b),
    "argmax": lambda _, x: x.argmax(1),
    "attention": lambda _, q, k, v: attention(q, k, v),
    "batch_matmul": lambda _, a, b: a @ b,
    "conv2d": conv2d,
    "conv2d_nhwc": conv2d_nhwc,
    "conv1d_gelu": lambda _, x, w, bias: gelu(conv1d(x, w) + bias[:, None]),
    "conv2d_transpose": conv2d_transpose,
    "cumsum": lambda _, x: x.cumsum(1),
    "dense": lambda _, a, b: a @ b.T,
    "dense_int4": lambda _, a, w, scale: dense_int4(a, w, scale),
    "grouped_query_attention": lambda _, q, k, v: grouped_query_attention(q, k, v),
    "layer_norm": lambda _, x, gamma, beta: layer_norm(x, gamma, beta),
    "layer_norm_residual": lambda _, x, gamma, beta, y: layer_norm(x + y, gamma, beta),
    "linear_relu": lambda _, a, b: relu(a @ b.T),
    "matmul": lambda _, a, b: a @ b,
    "matmul_bias_relu": lambda _, a, b, bias: relu(a @ b + bias),
    "mm_relu": lambda _, a, b: relu(a @ b),
    "quantized_conv2d": quantized_conv2d,
    "quantized_dense": lambda _, a, w, scale, bias: quantized_dense(a, w, scale, bias),
    "row_sum": lambda _, x: x.sum(1),
    "softmax": lambda _, x: softmax(x),
    "swiglu": lambda _, gate, up: gate / (1 + np.exp(-gate)) * up,
    "transpose": lambda _, x: np.ascontiguousarray(x.T),
}
