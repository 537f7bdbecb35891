"""Programs that contract, and how they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler import te
from compiler.ir.core.program import PrimFunc
from tests.unit.compiler.ir.interpret.oracle.oracle_strategies import way as way

SPECS = [
    "matmul:5,6,7",
    "matmul:4,5,6:int8",
    "matmul:4,5,6:float64",
    "batch_matmul:2,3,4,5",
    "conv2d:2,4,7,7,6,3,2,1",
    "conv2d:1,4,7,7,6,3,1,2,2,2",
    "conv2d:1,1,1,1,1,1",
    "depthwise_conv2d:1,3,8,8,3,2,1",
    "softmax:5,9",
    "layer_norm:4,6",
    "transpose:3,5:int32",
    "row_sum:4,9",
    "relu:2,3,4",
    "matmul_bias_relu:3,4,5",
]


def compute(shape: tuple[int, ...], element: Callable[..., Any], *inputs: te.Tensor) -> PrimFunc:
    return te.create_prim_func([*inputs, te.compute(shape, element, name="out")])
