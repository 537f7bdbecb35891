"""PyTorch, eager and compiled (`torch.compile`, which needs a C++ compiler).

Weights are arguments, so that nothing is packed in advance, except for constant ones: a compiled
module holds them as parameters, which `torch.compile` freezes, and operators on packed weights have
them packed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from benchmarks.peers.library import NotTunedError, Prepared
from benchmarks.workloads.workload import Array, BenchmarkWorkload


def start(threads: int) -> dict[str, str]:
    """Set the number of threads; return versions."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)  # once: entering `inference_mode` at each call costs 5 us
    return {"torch": torch.__version__}


def prepare(workload: BenchmarkWorkload, backend: str) -> Prepared:
    """Prepare a workload for the backend "torch" or "torch.compile".

    Raises:
        NotTunedError: If the operator has packed weights; a compiler changes nothing.
    """
    inputs = [_tensor(*pair) for pair in zip(workload.inputs(), workload.all_types, strict=False)]
    if workload.op == "conv2d_nhwc":
        image, weights = inputs
        inputs = [image.permute(0, 3, 1, 2), _channels_last(weights.permute(3, 2, 0, 1))]
    compute = partial(OPS[workload.op], workload)
    if workload.op in PACKED:
        if backend == "torch.compile":
            raise NotTunedError("the operator on packed weights is not compiled")
        inputs = PACKED[workload.op](workload, *inputs)
    elif backend == "torch.compile":
        torch._dynamo.reset()
        torch._inductor.config.freezing = workload.has_constants
        if workload.has_constants:
            compute, inputs = _WithConstants(compute, inputs[1:]).eval(), inputs[:1]
        compute = torch.compile(compute, dynamic=False)
    result = torch.empty(0)

    def run() -> None:
        nonlocal result
        result = compute(*inputs)

    def output() -> Any:
        is_nhwc = workload.op == "conv2d_nhwc"
        numbers = result.int_repr() if result.is_quantized else result
        return np.asarray((numbers.permute(0, 2, 3, 1) if is_nhwc else numbers).float())

    return Prepared(run, output)


class _WithConstants(torch.nn.Module):  # type: ignore[misc]
    """A computation whose inputs, except for the first, are parameters."""

    def __init__(self, compute: Callable[..., Any], constants: list[Any]) -> None:
        super().__init__()
        self._compute = compute
        self._constants = torch.nn.ParameterList(constants)

    def forward(self, x: Any) -> Any:
        return self._compute(x, *self._constants)


def _tensor(array: Array, kind: str) -> Any:
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if kind == "bfloat16" else tensor


def _channels_last(tensor: Any) -> Any:
    return tensor.contiguous(memory_format=torch.channels_last)


def _conv2d(w: BenchmarkWorkload, image: Any, weights: Any) -> Any:
    o = w.options
    return F.conv2d(image, weights, None, o["stride"], o["padding"], groups=o["groups"])


def _pack_int4(workload: BenchmarkWorkload, a: Any, packed: Any, scale: Any) -> list[Any]:
    """Pack weights of 4 bits for operators in `bfloat16`, the only fast ones."""
    rows, groups, half = packed.shape
    nibbles = torch.cat([packed & 15, packed >> 4], dim=2).reshape(rows, -1).to(torch.int32)
    weights = torch.ops.aten._convert_weight_to_int4pack_for_cpu(nibbles, 1)
    scales_and_zeros = torch.stack([scale.T, torch.zeros(groups, rows)], dim=2)
    return [a.bfloat16(), weights, 2 * half, scales_and_zeros.bfloat16().contiguous()]


def _pack_quantized(
    workload: BenchmarkWorkload, a: Any, weights: Any, scale: Any, bias: Any
) -> list[Any]:
    """Quantize tensors such that one unit of the result is 1; the bias is in its units."""
    values = torch._make_per_tensor_quantized_tensor(a, 1.0, 0)
    zeros = torch.zeros(len(weights), dtype=torch.int64)
    channels = torch._make_per_channel_quantized_tensor(weights, scale.double(), zeros, 0)
    return [values, torch.ops.quantized.linear_prepack(channels, bias * scale), 1.0, 0]


def _pack_convolution(
    workload: BenchmarkWorkload, image: Any, weights: Any, scale: Any
) -> list[Any]:
    """Quantize tensors such that one unit of the result is 1."""
    options = workload.options
    values = torch._make_per_tensor_quantized_tensor(image, 1.0, 0)
    zeros = torch.zeros(len(weights), dtype=torch.int64)
    channels = torch._make_per_channel_quantized_tensor(weights, scale.double(), zeros, 0)
    packed = torch.ops.quantized.conv2d_prepack(
        channels, None, [options["stride"]] * 2, [options["padding"]] * 2, [1, 1], 1
    )
    return [values, packed, 1.0, 0]


PACKED: dict[str, Callable[..., list[Any]]] = {
    "dense_int4": _pack_int4,
    "quantized_conv2d": _pack_convolution,
    "quantized_dense": _pack_quantized,
}
OPS: dict[str, Callable[..., Any]] = {
    "add_relu": lambda _, a, b: torch.relu_(a + b),
    "argmax": lambda _, x: x.argmax(1),
    "attention": lambda _, q, k, v: F.scaled_dot_product_attention(q, k, v),
    "batch_matmul": lambda _, a, b: torch.bmm(a, b),
    "conv1d_gelu": lambda _, x, w, bias: F.gelu(F.conv1d(x, w, bias, padding=w.shape[2] // 2)),
    "conv2d": _conv2d,
    "conv2d_nhwc": _conv2d,
    "conv2d_transpose": lambda w, x, weights: F.conv_transpose2d(
        x, weights, None, w.options["stride"], w.options["padding"]
    ),
    "cumsum": lambda _, x: x.cumsum(1),
    "dense": lambda _, a, b: F.linear(a, b),
    "dense_int4": lambda _, *packed: torch.ops.aten._weight_int4pack_mm_for_cpu(*packed),
    "grouped_query_attention": lambda _, q, k, v: F.scaled_dot_product_attention(
        q, k, v, enable_gqa=True
    ),
    "layer_norm": lambda _, x, gamma, beta: F.layer_norm(x, x.shape[-1:], gamma, beta, 1e-5),
    "layer_norm_residual": lambda _, x, gamma, beta, y: F.layer_norm(
        x + y, x.shape[-1:], gamma, beta, 1e-5
    ),
    "linear_relu": lambda _, a, b: torch.relu_(F.linear(a, b)),
    "matmul": lambda _, a, b: a @ b,
    "matmul_bias_relu": lambda _, a, b, bias: torch.relu_(torch.addmm(bias, a, b)),
    "mm_relu": lambda _, a, b: torch.relu_(a @ b),
    "quantized_conv2d": lambda _, *packed: torch.ops.quantized.conv2d(*packed),
    "quantized_dense": lambda _, *packed: torch.ops.quantized.linear(*packed),
    "row_sum": lambda _, x: x.sum(1),
    "softmax": lambda _, x: torch.softmax(x, -1),
    "swiglu": lambda _, gate, up: F.silu(gate) * up,
    "transpose": lambda _, x: x.t().contiguous(),
}
