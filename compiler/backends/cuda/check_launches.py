"""Check launches against the limits of an architecture, before a device is touched.

The compiler accepts what no device can launch: a block of 2,048 threads, for instance.
"""

from __future__ import annotations

from math import prod

from compiler.backends.error import BuildError
from compiler.passes.device.kernel import DeviceKernel, DeviceProgram
from compiler.target.gpus import GpuArch

# The limits of a launch on every architecture of the table in `compiler/target/gpus.py`.
_MOST_BLOCKS = ((1 << 31) - 1, 65535, 65535)
_MOST_THREADS_OF_AXIS = (1024, 1024, 64)


def check_launches(program: DeviceProgram, limits: GpuArch, arch: str) -> None:
    """Check the kernels of a program.

    Raises:
        BuildError: If a kernel exceeds a limit of the architecture; it names the limit.
    """
    for kernel in program.kernels:
        for number, noun, most in _uses(kernel, limits):
            if number > most:
                raise BuildError(
                    f"kernel {kernel.name} needs {number:,} {noun}: {arch} has {most:,}",
                    "codegen",
                )


def _uses(kernel: DeviceKernel, limits: GpuArch) -> list[tuple[int, str, int]]:
    """Return what a kernel uses: numbers, what they count, and their limits."""
    uses = [
        (prod(kernel.block), "threads a block", limits.max_threads),
        (kernel.shared_bytes, "bytes of shared memory a block", limits.shared_bytes),
    ]
    for axis, blocks, threads, most_blocks, most_threads in zip(
        "xyz", kernel.grid, kernel.block, _MOST_BLOCKS, _MOST_THREADS_OF_AXIS, strict=True
    ):
        uses.append((blocks, f"blocks along {axis}", most_blocks))
        uses.append((threads, f"threads along {axis}", most_threads))
    return uses
