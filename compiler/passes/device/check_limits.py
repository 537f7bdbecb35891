"""Check kernels against the limits of a GPU, before a device or a compiler sees them.

The limits are those of the table "Technical Specifications per Compute Capability" in the CUDA C++
Programming Guide; those that differ between architectures are in `GpuArch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from compiler.ir.core.nodes import Allocate, Call, For, Stmt, static_int
from compiler.ir.core.visit import walk, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.passes.device.kernel import DeviceKernel
from compiler.passes.device.shared_memory import size_bytes
from compiler.passes.device.virtual_threads import is_virtual
from compiler.target.gpus import GpuArch
from compiler.target.tensor_cores import MMA_INSTRUCTIONS

MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
MAX_LOCAL_BYTES = 512 << 10
MAX_VTHREADS = 8  # TVM's: the code of a kernel grows with it, and so do its registers


def check_virtual_threads(stmt: Stmt) -> None:
    """Refuse loops over too many virtual threads.

    Raises:
        LoweringError: With the loop and the limit.
    """
    for loop in walk_stmts(stmt):
        if isinstance(loop, For) and is_virtual(loop) and static_int(loop.extent) > MAX_VTHREADS:
            raise LoweringError(
                f"loop {loop.var.name} runs {static_int(loop.extent)} virtual threads: at most "
                f"{MAX_VTHREADS} are unrolled; split the loop"
            )


def check_limits(kernels: Iterable[DeviceKernel], limits: GpuArch) -> None:
    """Refuse kernels that a GPU can't run.

    Raises:
        LoweringError: With the limit, the number and what to do.
    """
    for kernel in kernels:
        for problem in _problems(kernel, limits):
            raise LoweringError(f"kernel {kernel.name} {problem}")


def _problems(kernel: DeviceKernel, limits: GpuArch) -> Iterator[str]:
    threads = prod(kernel.block)
    if threads > limits.max_threads:
        shape = " x ".join(str(extent) for extent in kernel.block if extent > 1)
        yield (
            f"has blocks of {threads} threads ({shape}): at most {limits.max_threads} are "
            "possible; split the loops that are bound to threadIdx"
        )
    for letter, extent, limit in zip("xyz", kernel.block, MAX_BLOCK, strict=True):
        if extent > limit:
            yield (
                f"has {extent} threads along threadIdx.{letter}: at most {limit} are possible; "
                "bind the loop to threadIdx.x"
            )
    for letter, extent, limit in zip("xyz", kernel.grid, MAX_GRID, strict=True):
        if extent > limit:
            yield (
                f"has {extent} blocks along blockIdx.{letter}: at most {limit} are possible; bind "
                "the loop to blockIdx.x, or split it"
            )
    if kernel.shared_bytes > limits.shared_bytes:
        yield (
            f"needs {kernel.shared_bytes} bytes of shared memory: a block has at most "
            f"{limits.shared_bytes}; use smaller tiles or fewer stages"
        )
    if kernel.tensors and not limits.has_wgmma:
        yield (
            "computes products of warpgroups, which only sm_90a has; use an instruction of warps, "
            "such as mma.m16n8k16.bf16.f32"
        )
    yield from _missing_instructions(kernel, limits)
    local = sum(
        size_bytes(node.buffer)
        for node in walk_stmts(kernel.body)
        if isinstance(node, Allocate) and node.buffer.scope == "local"
    )
    if local > MAX_LOCAL_BYTES:
        yield (
            f"needs {local} bytes of local memory in each thread: at most {MAX_LOCAL_BYTES} are "
            "possible; compute fewer elements in a thread, or keep them in global memory"
        )


def _missing_instructions(kernel: DeviceKernel, limits: GpuArch) -> Iterator[str]:
    """Yield the instructions of tensor cores that the architecture lacks."""
    for name in sorted({node.name for node in walk(kernel.body) if isinstance(node, Call)}):
        instruction = MMA_INSTRUCTIONS.get(name)
        if instruction is not None and instruction.min_capability > limits.capability:
            yield (
                f"runs {name}, which exists from sm_{instruction.min_capability} on; use another "
                "type, or another GPU"
            )
