"""The backend of CPUs: LLVM IR as text, object code, kernels that are called by address."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from compiler.backends.backend import Backend, SourceCode, SplitSource
from compiler.backends.cpu.codegen.error import CodegenError
from compiler.backends.cpu.codegen.machine_code import compile_object, disassemble, llvm_version
from compiler.backends.cpu.codegen.module import emit_module
from compiler.backends.cpu.codegen.operations.dot_instructions import dot_group
from compiler.backends.cpu.lower import lower_for_cpu, lower_split
from compiler.backends.cpu.runner_devices import runner_devices
from compiler.backends.cpu.runtime.cold_call import ColdCall
from compiler.backends.cpu.runtime.module import CpuModule
from compiler.backends.cpu.runtime.peak import peak_of_cores
from compiler.backends.cpu.runtime.pool import compiled_pool
from compiler.backends.error import BuildError
from compiler.backends.host_device import HostDevice
from compiler.codegen_version import CODEGEN_VERSION
from compiler.executor.artifact import Artifact
from compiler.executor.params import Param
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.core.nodes import Allocate, Buffer, Load, Stmt, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.passes.common.error import LoweringError
from compiler.runtime.kernel_params import params_of
from compiler.runtime.time_calls import Clock, time_calls
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target


class CpuBackend(Backend):
    """Builds kernels for CPUs by LLVM; see `Backend`."""

    kind = "cpu"
    module_class = CpuModule
    source_language = "LLVM IR"
    packs_constants = True
    calls_functions = True

    def toolchain(self) -> str:
        """Return the versions of the code generator and of LLVM."""
        return f"loopwright-codegen {CODEGEN_VERSION}, LLVM {llvm_version()}"

    def host_targets(self) -> Sequence[Target]:
        """Return the CPU of this host."""
        return (CpuTarget("cpu"),)

    def host_devices(self) -> Sequence[HostDevice]:
        """Return the devices behind runners: any number of workers share the cores of a host."""
        return runner_devices()

    def lower(self, func: PrimFunc, target: Target) -> Stmt:
        """Return loops over small buffers.

        Raises:
            LoweringError: If extents are symbolic, or threads can't run one after another.
        """
        return lower_for_cpu(func, CpuTarget.of(target))

    def emit(self, func: PrimFunc, target: Target) -> SourceCode:
        """Return LLVM IR.

        Raises:
            BuildError: If the program can't be lowered, or is too large once expanded.
        """
        cpu = CpuTarget.of(target)
        try:
            return emit_module(func.params, lower_for_cpu(func, cpu), cpu, _sizes(func))
        except (CodegenError, LoweringError) as error:
            raise BuildError(f"{func.name}: {error}", error.code) from error

    def compile(
        self, name: str, params: tuple[Param, ...], source: SourceCode, target: Target
    ) -> Artifact:
        """Return object code, with the CPU features that it requires."""
        cpu = CpuTarget.of(target)
        return Artifact(
            name=name,
            target=cpu.name,
            triple=cpu.triple,
            features=cpu.features,
            toolchain=self.toolchain(),
            params=params,
            symbols=source.symbols,
            workspace_bytes=source.workspace_bytes,
            num_threads=source.num_threads,
            code=compile_object(source.text, cpu),
            pool=compiled_pool(cpu.name) if source.num_threads > 1 else b"",
        )

    def assembly(self, source: str, target: Target) -> str:
        """Return the assembly of LLVM IR."""
        return disassemble(source, CpuTarget.of(target))

    def time_calls(self, run: Callable[[], object], num_threads: int, calls: int) -> float:
        """Return the mean seconds a call; a `ColdCall` is timed with its arrays evicted."""
        if isinstance(run, ColdCall):
            return run.mean_secs(num_threads, calls)
        return time_calls(run, num_threads, calls)

    def clock_of_library(self, clock: Clock, operands: Sequence[Any], target: Target) -> Clock:
        """Return the clock of a library; for a cold target it evicts the operands."""
        if not target.is_cold:
            return clock
        return lambda run, num_threads, calls: ColdCall(run, operands).mean_secs(num_threads, calls)

    def peak_flops(self, target: Target, num_cores: int) -> float:
        """Measure the float32 multiply-adds of all cores at once, as two operations each."""
        return peak_of_cores(CpuTarget.of(target), num_cores)

    def peak_share(self, target: Target, dtype: str) -> float | None:
        """Return the peak rate of a type as a multiple of float32's; None if it is unknown.

        A core is assumed to start as many dot products as multiply-adds, each with some products:
        measured on Zen 4. That is unknown if a dot product takes several instructions.
        """
        cpu = CpuTarget.of(target)
        if dtype == "int8":
            group = dot_group(cpu, "uint8", "int8", "int32")
        elif dtype == "bfloat16":
            group = dot_group(cpu, "bfloat16", "bfloat16", "float32")
        else:
            return super().peak_share(target, dtype)
        return float(group.size) if group.instructions == 1 else None

    def emit_with_constants(
        self,
        func: PrimFunc,
        constants: Collection[Buffer],
        target: Target,
        packer_target: Target | None = None,
    ) -> SplitSource:
        """Return LLVM IR of a kernel that reads packed copies, and of the packer.

        Raises:
            BuildError: As `emit` does.
        """
        cpu, written = CpuTarget.of(target), stored_buffers(func.body)
        try:
            copies, packing, remaining = lower_split(func, set(constants), cpu)
            used = {node.buffer for node in walk(remaining) if isinstance(node, Load)}
            constant_buffers = tuple(b for b in func.buffers if b in constants)
            used_constants = tuple(b for b in constant_buffers if b in used)
            arguments = tuple(param for param in func.params if param not in constants)
            for copy in copies:
                if copy not in used:  # other copies are made of it
                    packing = Allocate(copy, packing)
            copies = tuple(copy for copy in copies if copy in used)
            packer_buffers = (*constant_buffers, *copies)
            kernel_params = (*arguments, *used_constants, *copies)
            return SplitSource(
                packer=emit_module(packer_buffers, packing, CpuTarget.of(packer_target or cpu)),
                packer_params=params_of(packer_buffers, set(copies)),
                kernel=emit_module(kernel_params, remaining, cpu, _sizes(func)),
                kernel_params=params_of(kernel_params, written - set(copies)),
            )
        except (CodegenError, LoweringError) as error:
            raise BuildError(f"{func.name}: {error}", error.code) from error


def _sizes(func: PrimFunc) -> tuple[Var, ...]:
    """Return the symbolic extents of a program, which are no parameters of their own."""
    return tuple(var for var in symbolic_vars(func) if var not in func.params)
