"""Conversions of narrow floats by kernels, on each of their values, as the oracle's types do them.

An architecture before sm_89 has no instructions for 8-bit floats, so both texts are run.
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.ir.core.dtypes import DType, bits, is_narrow_float
from compiler.ir.core.nodes import BinOp, Cast, Expr, IntImm, Load, Store, Var, make_buffer
from compiler.passes.device.kernel import Axis, DeviceKernel, DeviceProgram, Launch

NARROW: list[DType] = [dtype for dtype in get_args(DType) if is_narrow_float(dtype)]
THREADS = 256


def converter(source: DType, target: DType, size: int) -> DeviceKernel:
    """Return a kernel that converts an element a thread."""
    a, b = make_buffer("A", (size,), source), make_buffer("B", (size,), target)
    block, thread = Var("bx"), Var("tx")
    index = BinOp("+", BinOp("*", block, IntImm(THREADS)), thread)
    value: Expr = Cast(target, Load(a, (index,)))
    axes = (Axis("blockIdx.x", block, size // THREADS), Axis("threadIdx.x", thread, THREADS))
    name = f"{source}_to_{target}"
    return DeviceKernel(name, axes, (a, b), frozenset({b}), (), Store(b, (index,), value), {}, 0)


def every(dtype: DType) -> NDArray[Any]:
    return np.arange(1 << bits(dtype)).astype(f"u{bits(dtype) // 8}").view(dtype)


def floats(dtype: DType) -> NDArray[np.float32]:
    """Return the values of a type, halves between them, neighbours of both, and random bits."""
    exact = every(dtype).astype(np.float32)
    finite = np.sort(exact[np.isfinite(exact)])
    halves = finite[1:] / 2 + finite[:-1] / 2
    near = [np.nextafter(x, np.float32(s)) for x in (finite, halves) for s in (np.inf, -np.inf)]
    special = np.array([np.inf, -np.inf, np.nan, 464, 480, -61440, 65520, 1e38, 1e-45], np.float32)
    some = np.random.default_rng(0).integers(0, 1 << 32, 1 << 12, np.uint32).view(np.float32)
    values = np.concatenate([exact, halves, *near, special, some])
    return np.concatenate([values, np.zeros(-len(values) % THREADS, np.float32)])


def converted(ptx: str, kernel: DeviceKernel, values: NDArray[Any]) -> NDArray[np.float32]:
    """Return the result of a kernel on the emulator, as 32-bit floats."""
    target = kernel.buffers[1].dtype
    result = np.zeros(len(values), f"u{bits(target) // 8}")
    raw = values.view(f"u{values.itemsize}")
    report = emulate(ptx, kernel.name, kernel.grid, kernel.block, [raw, result])
    assert not report.faults, report
    return result.view(target).astype(np.float32)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_every_narrow_float_is_read_and_rounded_as_the_oracle_does(arch: str) -> None:
    wide = {dtype: floats(dtype) for dtype in NARROW}
    pairs = [(converter(dtype, "float32", 1 << bits(dtype)), every(dtype)) for dtype in NARROW] + [
        (converter("float32", dtype, len(wide[dtype])), wide[dtype]) for dtype in NARROW
    ]
    kernels = tuple(kernel for kernel, _ in pairs)
    program = DeviceProgram(
        tuple(b for k in kernels for b in k.buffers),
        (),
        kernels,
        tuple(Launch(k.name) for k in kernels),
    )
    ptx = compile_cuda(emit_cuda(program), arch).ptx
    assert ("e4m3x2" in ptx) == (arch == "sm_90a")
    for kernel, values in pairs:
        with np.errstate(all="ignore"):
            expected = values.astype(kernel.buffers[1].dtype).astype(np.float32)
        got = converted(ptx, kernel, values)
        np.testing.assert_array_equal(got, expected, err_msg=kernel.name)
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))
