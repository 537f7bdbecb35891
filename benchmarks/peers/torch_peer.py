"""PyTorch, eager and compiled (`torch.compile`, which needs a C++ compiler).

Weights are ordinary arguments, so that nothing is packed in advance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from benchmarks.peers.library import Prepared
from benchmarks.workloads import BenchmarkWorkload


def start(threads: int) -> dict[str, str]:
    """Set the number of threads; return versions."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)  # once: entering `inference_mode` at each call costs 5 us
    return {"torch": torch.__version__}


def prepare(workload: BenchmarkWorkload, backend: str) -> Prepared:
    """Prepare a workload for the backend "torch" or "torch.compile"."""
    inputs = [torch.from_numpy(array) for array in workload.inputs()]
    if workload.op == "conv2d_nhwc":
        image, weights = inputs
        inputs = [image.permute(0, 3, 1, 2), _channels_last(weights.permute(3, 2, 0, 1))]
    compute, result = OPS[workload.op], torch.empty(0)
    if backend == "torch.compile":
        torch._dynamo.reset()
        compute = torch.compile(compute, dynamic=False)

    def run() -> None:
        nonlocal result
        result = compute(workload, *inputs)

    def output() -> Any:
        is_nhwc = workload.op == "conv2d_nhwc"
        return np.asarray(result.permute(0, 2, 3, 1) if is_nhwc else result)

    return Prepared(run, output)


def _channels_last(tensor: Any) -> Any:
    return tensor.contiguous(memory_format=torch.channels_last)


def _conv2d(w: BenchmarkWorkload, image: Any, weights: Any) -> Any:
    o = w.options
    return F.conv2d(image, weights, None, o["stride"], o["padding"], groups=o["groups"])


OPS: dict[str, Callable[..., Any]] = {
    "add_relu": lambda _, a, b: torch.relu_(a + b),
    "attention": lambda _, q, k, v: F.scaled_dot_product_attention(q, k, v),
    "batch_matmul": lambda _, a, b: torch.bmm(a, b),
    "conv2d": _conv2d,
    "conv2d_nhwc": _conv2d,
    "dense": lambda _, a, b: F.linear(a, b),
    "layer_norm": lambda _, x, gamma, beta: F.layer_norm(x, x.shape[-1:], gamma, beta, 1e-5),
    "linear_relu": lambda _, a, b: torch.relu_(F.linear(a, b)),
    "matmul": lambda _, a, b: a @ b,
    "matmul_bias_relu": lambda _, a, b, bias: torch.relu_(torch.addmm(bias, a, b)),
    "mm_relu": lambda _, a, b: torch.relu_(a @ b),
    "row_sum": lambda _, x: x.sum(1),
    "softmax": lambda _, x: torch.softmax(x, -1),
    "transpose": lambda _, x: x.t().contiguous(),
}
