"""JAX: functions compiled by XLA for the CPU, with arrays on the device."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.peers.library import Prepared
from benchmarks.workloads.workload import BenchmarkWorkload


def start(threads: int) -> dict[str, str]:
    """Return versions; XLA reads its number of threads from the environment."""
    del threads
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # the benchmark waits for every call
    return {"jax": jax.__version__}


def prepare(workload: BenchmarkWorkload, backend: str) -> Prepared:
    """Prepare a workload."""
    del backend
    inputs, result = [jnp.asarray(array) for array in workload.inputs()], jnp.empty(0)
    compute = jax.jit(lambda *arrays: OPS[workload.op](workload, *arrays))

    def run() -> None:
        nonlocal result
        result = compute(*inputs).block_until_ready()

    return Prepared(run, lambda: np.asarray(result))


def _conv2d(w: BenchmarkWorkload, image: Any, weights: Any, layout: tuple[str, str, str]) -> Any:
    stride, padding = w.options["stride"], w.options["padding"]
    return lax.conv_general_dilated(
        image,
        weights,
        (stride, stride),
        [(padding, padding)] * 2,
        dimension_numbers=layout,
        feature_group_count=w.options["groups"],
    )


def _layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta


def _attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / sqrt(q.shape[-1]), -1) @ v


def _relu(x: Any) -> Any:
    return jnp.maximum(x, 0)


OPS: dict[str, Callable[..., Any]] = {
    "add_relu": lambda _, a, b: _relu(a + b),
    "attention": lambda _, q, k, v: _attention(q, k, v),
    "batch_matmul": lambda _, a, b: a @ b,
    "conv2d": lambda w, x, k: _conv2d(w, x, k, ("NCHW", "OIHW", "NCHW")),
    "conv2d_nhwc": lambda w, x, k: _conv2d(w, x, k, ("NHWC", "HWIO", "NHWC")),
    "dense": lambda _, a, b: a @ b.T,
    "layer_norm": lambda _, x, gamma, beta: _layer_norm(x, gamma, beta),
    "linear_relu": lambda _, a, b: _relu(a @ b.T),
    "matmul": lambda _, a, b: a @ b,
    "matmul_bias_relu": lambda _, a, b, bias: _relu(a @ b + bias),
    "mm_relu": lambda _, a, b: _relu(a @ b),
    "row_sum": lambda _, x: x.sum(1),
    "softmax": lambda _, x: jax.nn.softmax(x, -1),
    "transpose": lambda _, x: x.T,
}
