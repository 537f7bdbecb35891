"""Print a device program: the prelude that it needs, then one function for each kernel."""

from __future__ import annotations

from math import prod

from compiler.backends.cuda.text.prelude import prelude
from compiler.backends.cuda.text.scope import KernelScope
from compiler.backends.cuda.text.statements import CudaStatements
from compiler.backends.cuda.text.unrolling import loops_to_unroll
from compiler.backends.cuda.text.writer import Writer
from compiler.ir.arith.bounds import Interval
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Buffer, Var
from compiler.passes.device.kernel import DeviceKernel, DeviceProgram, TensorBox

# The alignment of shared memory in bytes: that of the largest tile that hardware moves at once. The
# copy engine and the products of warpgroups swizzle groups of eight rows of 128 bytes.
SHARED_ALIGNMENT = 128
SWIZZLED_ALIGNMENT = 1024


def emit_cuda(program: DeviceProgram) -> str:
    """Return the CUDA C++ text of a program, one function for each kernel.

    Raises:
        BuildError: If CUDA can't express a construct of it.
    """
    helpers: set[str] = set()
    kernels = [_kernel(kernel, program, helpers) for kernel in program.kernels]
    return "\n\n".join(filter(None, [prelude(helpers), *kernels])) + "\n"


def _kernel(kernel: DeviceKernel, program: DeviceProgram, helpers: set[str]) -> str:
    num_threads = prod(kernel.block)
    scope = KernelScope(num_threads, kernel.shared_offsets, helpers)
    scope.ranges.update(_scalar_ranges(kernel, program))
    arguments = [
        *(_pointer(buffer, kernel, scope) for buffer in kernel.buffers),
        *(_tensor(tensor, scope) for tensor in kernel.tensors),
        *(f"{scope.value_type(dtype_of(var))} {scope.names.bind(var)}" for var in kernel.scalars),
    ]
    writer = Writer(scope.names)
    if kernel.shared_bytes:
        alignment = SWIZZLED_ALIGNMENT if kernel.tensors else SHARED_ALIGNMENT
        writer.line(f"extern __shared__ __align__({alignment}) unsigned char shared_memory[];")
    for axis in kernel.axes:
        scope.ranges[axis.var] = (0, axis.extent - 1)
        type_ = scope.value_type(dtype_of(axis.var))
        writer.line(f"const {type_} {scope.names.bind(axis.var)} = {axis.thread};")
    CudaStatements(writer, scope, loops_to_unroll(kernel.body)).emit(kernel.body)
    signature = ",\n    ".join(arguments)
    # The registers of warpgroups change only if the kernel states its blocks a multiprocessor.
    bounds = f"{num_threads}, 1" if kernel.tensors else str(num_threads)
    head = f'extern "C" __global__ void __launch_bounds__({bounds}) {kernel.name}('
    return "\n".join(
        (
            _comment(kernel),
            f"{head}\n    {signature}) {{",
            *writer.lines,
            "}",
        )
    )


def _comment(kernel: DeviceKernel) -> str:
    shared = f", {kernel.shared_bytes} bytes of shared memory" if kernel.shared_bytes else ""
    grid, block = (" x ".join(map(str, extents)) for extents in (kernel.grid, kernel.block))
    return f"// {kernel.name}: {grid} blocks of {block} threads{shared}"


def _pointer(buffer: Buffer, kernel: DeviceKernel, scope: KernelScope) -> str:
    const = "" if buffer in kernel.written else "const "
    name = scope.names.bind(buffer.data)
    return f"{const}{scope.storage_type(buffer.dtype)}* __restrict__ {name}"


def _tensor(tensor: TensorBox, scope: KernelScope) -> str:
    name = scope.names.bind(Var(f"{tensor.buffer.name}_tensor"))
    scope.tensors[tensor] = name
    return f"const __grid_constant__ {scope.helper('tensor_map')} {name}"


def _scalar_ranges(kernel: DeviceKernel, program: DeviceProgram) -> dict[Var, Interval]:
    """Return the values that the launches give to the integer arguments."""
    launches = [launch.scalars for launch in program.launches if launch.kernel == kernel.name]
    return {
        var: (min(values), max(values))
        for var, values in zip(kernel.scalars, zip(*launches, strict=True), strict=False)
    }
