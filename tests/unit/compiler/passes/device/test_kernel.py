"""Kernels know their grid and their blocks."""

from __future__ import annotations

from compiler.ir.core.nodes import IntImm, Store, Var, make_buffer
from compiler.passes.device.kernel import Axis, DeviceKernel


def test_axes_give_the_grid_and_the_blocks() -> None:
    out = make_buffer("out", (64, 16))
    rows, columns = Var("rows"), Var("columns")
    kernel = DeviceKernel(
        name="fill",
        axes=(Axis("blockIdx.y", rows, 64), Axis("threadIdx.x", columns, 16)),
        buffers=(out,),
        written=frozenset((out,)),
        scalars=(),
        body=Store(out, (rows, columns), IntImm(0)),
        shared_offsets={},
        shared_bytes=0,
    )
    assert kernel.grid == (1, 64, 1)
    assert kernel.block == (16, 1, 1)
