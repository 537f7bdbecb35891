"""Tensors that are known when the program is read."""

from __future__ import annotations

import numpy as np

from compiler.graph.nodes import Operand
from compiler.graph.read_torch.call import Number, TorchCall
from compiler.graph.read_torch.registry import aten


def _filled(call: TorchCall, number: Number) -> Operand:
    result = call.result()
    return call.expanded(call.scalar(number, result.dtype), result.static_shape)


@aten("full.default", "full_like.default")
def _full(call: TorchCall) -> Operand:
    return _filled(call, call.number("fill_value"))


@aten("scalar_tensor.default")
def _scalar_tensor(call: TorchCall) -> Operand:
    return _filled(call, call.number("s"))


@aten("zeros.default", "zeros_like.default", "empty.memory_format")
def _zeros(call: TorchCall) -> Operand:
    """Return zeros, also for memory without values: programs write it before they read it."""
    return _filled(call, 0)


@aten("ones.default", "ones_like.default")
def _ones(call: TorchCall) -> Operand:
    return _filled(call, 1)


@aten("arange.start_step")
def _arange(call: TorchCall) -> Operand:
    result = call.result()
    [count] = result.static_shape
    numbers = call.number("start") + np.arange(count) * call.number("step")
    return call.constant(numbers.astype(result.dtype))
