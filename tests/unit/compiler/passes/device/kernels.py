"""Facts about kernels that tests compare."""

from __future__ import annotations

from compiler.ir.core.visit import walk_stmts
from compiler.passes.common.thread_loops import is_barrier
from compiler.passes.device.kernel import DeviceKernel


def barriers(kernel: DeviceKernel) -> int:
    """Return the number of barriers in the text of a kernel."""
    return sum(map(is_barrier, walk_stmts(kernel.body)))
