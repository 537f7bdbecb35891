"""Build one kernel of a model: its LLVM IR, and the packer of its constants."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.backends.backend import backend_of
from compiler.driver import Scheduled
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.package.plan import PlannedKernel
from compiler.runtime.artifact import Artifact, Param, params_of
from compiler.target.cpu import CpuTarget


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel of a task, which any number of steps may call.

    Attributes:
        kernel: The kernel.
        operands: The names of the parameters of the program, in order; those of the kernel are
            some of them, then packed copies of constants.
        packer: Writes the packed copies, on this host; None if the kernel reads no constants.
    """

    kernel: PlannedKernel
    operands: tuple[str, ...]
    packer: Artifact | None = None

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
    backend = backend_of(target)
    constants = constant_params(func)
    operands = tuple(buffer.name for buffer in func.buffers)
    if not constants:
        source = backend.emit(func, target)
        params = params_of(func.buffers, stored_buffers(func.body))
        planned = PlannedKernel(
            name, source.text, params, source.workspace_bytes, source.num_threads, task, sketch
        )
        return CompiledKernel(planned, operands)
    host = CpuTarget("cpu -num-cores=1")
    split = backend.emit_with_constants(func, constants, target, host)
    packer = backend.compile(f"{name}_pack", split.packer_params, split.packer, host)
    planned = PlannedKernel(
        name,
        split.kernel.text,
        split.kernel_params,
        split.kernel.workspace_bytes,
        split.kernel.num_threads,
        task,
        sketch,
    )
    return CompiledKernel(planned, operands, packer)
