"""The operators that are tuned, at full size and at one that the emulator runs in a second."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

import loopwright as lw
from compiler.ir.analysis.flops import flops
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import static_shape


@dataclass(frozen=True)
class Case:
    """An operator.

    Attributes:
        spec: The operator, as `lw.ops.from_spec` reads it.
        unit: The unit of its rate: operations if they are the limit, else bytes.
    """

    spec: str
    unit: Literal["TFLOP/s", "TB/s"]

    @property
    def func(self) -> lw.PrimFunc:
        """The program."""
        return lw.ops.from_spec(self.spec)

    def rate(self, secs: float) -> float:
        """Return the rate in the case's unit; inputs and outputs count once."""
        func = self.func
        if self.unit == "TFLOP/s":
            return flops(func) / secs / 1e12
        moved = sum(prod(static_shape(b)) * size_bytes(b.dtype) for b in func.buffers)
        return moved / secs / 1e12


def _cases(unit: Literal["TFLOP/s", "TB/s"], *specs: str) -> tuple[Case, ...]:
    return tuple(Case(spec, unit) for spec in specs)


PRODUCTS = _cases(
    "TFLOP/s",
    "matmul:4096,4096,4096:float32",
    "matmul:4096,4096,4096,acc_dtype=float32:bfloat16",
    "matmul:8192,8192,8192,acc_dtype=float32:bfloat16",
    "matmul:16,8192,8192,acc_dtype=float32:bfloat16",
    "matmul:4096,11008,4096,acc_dtype=float32:bfloat16",
    "matmul:4095,4097,1023,acc_dtype=float32:bfloat16",
)
TINY_PRODUCTS = _cases("TFLOP/s", "matmul:32,32,32,acc_dtype=float32:bfloat16")
# The convolutions of ResNet-50 with 3 by 3 filters, one with 1 by 1, and the first one; batch 32.
OPERATORS = (
    *_cases(
        "TB/s",
        "softmax:8192,8192",
        "layer_norm:8192,8192",
        "rms_norm:8192,8192",
        "add:8192,8192",
        "transpose:8192,8192",
        "sum:8192,8192,axis=1",
    ),
    *_cases(
        "TFLOP/s",
        "conv2d:32,64,56,56,64,3,1,1,layout=NHWC,acc_dtype=float32:bfloat16",
        "conv2d:32,128,28,28,128,3,1,1,layout=NHWC,acc_dtype=float32:bfloat16",
        "conv2d:32,256,14,14,256,3,1,1,layout=NHWC,acc_dtype=float32:bfloat16",
        "conv2d:32,512,7,7,512,3,1,1,layout=NHWC,acc_dtype=float32:bfloat16",
        "conv2d:32,256,56,56,64,1,1,0,layout=NHWC,acc_dtype=float32:bfloat16",
        "conv2d:32,3,224,224,64,7,2,3,layout=NHWC,acc_dtype=float32:bfloat16",
        "attention:4,16,2048,2048,64:bfloat16",
    ),
)
TINY_OPERATORS = _cases("TB/s", "softmax:32,64")
