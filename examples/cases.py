"""The workloads of the demo and of the benchmarks, each with the same computation in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

import loopwright as lw
from loopwright import te

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A workload as a user submits it, and the same computation in NumPy."""

    name: str
    given_as: str
    workload: lw.PrimFunc | str
    func: lw.PrimFunc
    numpy: Callable[[Array, Array], Array]


def mm_relu() -> Case:
    """A matrix product and a rectifier, as the text of a script in its oldest spelling."""
    text = Path(__file__).with_name("mm_relu.script").read_text(encoding="utf-8")

    def numpy(a: Array, b: Array) -> Array:
        product: Array = np.maximum(a @ b, 0)
        return product

    return Case("mm_relu 128x128x128", "script text", text, lw.parse(text), numpy)


def matmul(n: int = 512) -> Case:
    """A square matrix product, as tensor expressions."""
    A = te.placeholder((n, n), "float32", name="A")
    B = te.placeholder((n, n), "float32", name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    func = te.create_prim_func([A, B, C], name="matmul")

    def numpy(a: Array, b: Array) -> Array:
        product: Array = a @ b
        return product

    return Case(f"matmul {n}x{n}x{n}", "tensor expressions", func, func, numpy)


def conv2d() -> Case:
    """A layer of ResNet-50 (64 channels of 56x56 to 64, 3x3, padding 1), by operator name."""
    operator = "conv2d:1,64,56,56,64,3,1,1"

    def numpy(image: Array, weights: Array) -> Array:
        padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = sliding_window_view(padded, (3, 3), axis=(2, 3))  # n, c, y, x, ky, kx
        columns = windows.transpose(0, 1, 4, 5, 2, 3).reshape(64 * 9, 56 * 56)
        result: Array = weights.reshape(64, 64 * 9) @ columns
        return result.reshape(1, 64, 56, 56)

    return Case("conv2d 64x56x56, 3x3", "an operator", operator, lw.ops.from_spec(operator), numpy)


def cases() -> tuple[Case, ...]:
    """Return the three workloads of the demo."""
    return mm_relu(), matmul(), conv2d()
