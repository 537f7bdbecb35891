"""Build one kernel of a model: its LLVM IR, and the packer of its constants."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.backends.backend import SplitSource, backend_of
from compiler.driver import Scheduled
from compiler.executor.artifact import Artifact
from compiler.executor.extents import fixed
from compiler.executor.params import Param
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.package.plan import PlannedKernel
from compiler.runtime.kernel_params import params_of
from compiler.schedule.legality.overwriting import overwriting
from compiler.target.cpu import CpuTarget

_HOST = "cpu -num-cores=1"


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel of a task, which any number of steps may call.

    Attributes:
        kernel: The kernel.
        func: The scheduled program of the task. The parameters of the kernel are some of its
            parameters, then packed copies of constants.
        packer: Writes the packed copies, on this host; None if the kernel reads no constants.
    """

    kernel: PlannedKernel
    func: PrimFunc
    packer: Artifact | None = None

    @property
    def operands(self) -> tuple[str, ...]:
        """Return the names of the parameters of the program, in order."""
        return tuple(buffer.name for buffer in self.func.buffers)

    @property
    def packed(self) -> tuple[Param, ...]:
        """Return the copies that the packer writes, which end the kernel's parameters."""
        params = () if self.packer is None else self.packer.params
        return tuple(param for param in params if param.is_output)


def build_kernel(
    scheduled: Scheduled, target: CpuTarget, *, name: str, task: str = "", sketch: str = ""
) -> CompiledKernel:
    """Return the kernel of a scheduled program.

    Args:
        scheduled: The program.
        target: The CPU.
        name: The name of the kernel, a C identifier.
        task: The key of its task.
        sketch: The name of its sketch.

    Raises:
        BuildError: If it can't be lowered, or is too large once expanded.
    """
    func = scheduled.func
    planned = PlannedKernel(name, "", (), 0, task=task, sketch=sketch)
    kernel, split = _emit(func, target, planned)
    if split is None:
        return CompiledKernel(kernel, func)
    host = CpuTarget(_HOST)
    packer = backend_of(target).compile(f"{name}_pack", split.packer_params, split.packer, host)
    return CompiledKernel(kernel, func, packer)


def build_overwriting(
    built: CompiledKernel, operand: str, result: str, target: CpuTarget
) -> CompiledKernel:
    """Return the kernel that reads an operand from the memory of a result, and overwrites it.

    Args:
        built: The kernel of the same schedule with separate memory.
        operand: The name of the operand, which is no parameter of the new kernel.
        result: The name of the result; `overwriting` has proved that they may share memory.
        target: The CPU.

    Raises:
        BuildError: If it can't be lowered.
    """
    func = overwriting(built.func, operand, result)
    assert func is not None, f"{built.kernel.name}: {result} can't be in the memory of {operand}"
    name = f"{built.kernel.name}_over_{operand}"
    planned = replace(built.kernel, name=name, in_place=(result,))
    kernel, _ = _emit(func, target, planned)
    num_packed = len(built.packed)
    assert (
        kernel.params[len(kernel.params) - num_packed :]
        == (built.kernel.params[len(built.kernel.params) - num_packed :])
    ), f"{name} reads other copies of constants"
    return replace(built, kernel=kernel)


def _emit(
    func: PrimFunc, target: CpuTarget, planned: PlannedKernel
) -> tuple[PlannedKernel, SplitSource | None]:
    """Return a kernel with its code, and that of its packer if it reads constants."""
    backend = backend_of(target)
    constants = constant_params(func)
    split = None
    if constants:
        split = backend.emit_with_constants(func, constants, target, CpuTarget(_HOST))
        source, params = split.kernel, split.kernel_params
    else:
        source = backend.emit(func, target)
        params = params_of(func.buffers, stored_buffers(func.body))
    kernel = replace(
        planned,
        text=source.text,
        params=params,
        workspace_bytes=fixed(source.workspace_bytes),
        num_threads=source.num_threads,
    )
    return kernel, split
