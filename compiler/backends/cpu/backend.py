"""The backend of CPUs: LLVM IR as text, object code, kernels that are called by address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compiler.backends.backend import Backend, SourceCode
from compiler.backends.cpu.codegen.error import CodegenError
from compiler.backends.cpu.codegen.machine_code import compile_object, disassemble, llvm_version
from compiler.backends.cpu.codegen.module import emit_module
from compiler.backends.cpu.lower import lower_for_cpu, lower_split
from compiler.backends.cpu.runtime.module import CpuModule
from compiler.backends.cpu.runtime.peak import peak_of_cores
from compiler.backends.error import BuildError
from compiler.backends.host_device import HostDevice
from compiler.ir.core.nodes import Buffer, Load, Stmt, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.passes.common.error import LoweringError
from compiler.runtime.artifact import Artifact, Param, params_of
from compiler.runtime.memory import aligned_empty
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target

# Raise it when the code of some program changes: measurements of another version are outdated.
CODEGEN_VERSION = 3


class CpuBackend(Backend):
    """Builds kernels for CPUs by LLVM; see `Backend`."""

    kind = "cpu"
    module_class = CpuModule
    source_language = "LLVM IR"

    def toolchain(self) -> str:
        """Return the versions of the code generator and of LLVM."""
        return f"loopwright-codegen {CODEGEN_VERSION}, LLVM {llvm_version()}"

    def host_targets(self) -> Sequence[Target]:
        """Return the CPU of this host."""
        return (CpuTarget("cpu"),)

    def host_devices(self) -> Sequence[HostDevice]:
        """Return none: any number of workers share the cores of a host."""
        return ()

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
            return emit_module(func.buffers, lower_for_cpu(func, cpu), cpu)
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
            workspace_bytes=source.workspace_bytes,
            num_threads=source.num_threads,
            code=compile_object(source.text, cpu),
        )

    def assembly(self, source: str, target: Target) -> str:
        """Return the assembly of LLVM IR."""
        return disassemble(source, CpuTarget.of(target))

    def peak_flops(self, target: Target, num_cores: int) -> float:
        """Measure the float32 multiply-adds of all cores at once, as two operations each."""
        return peak_of_cores(CpuTarget.of(target), num_cores)

    def build_with_constants(
        self, func: PrimFunc, target: Target, arrays: Mapping[str, Any]
    ) -> CpuModule:
        """Build a kernel that keeps its constants, and packed copies of them.

        Raises:
            BuildError: If a constant is not a parameter, or is written, or the build fails.
            ArgumentError: If a constant is not an array of the parameter's shape and type.
        """
        cpu = CpuTarget.of(target)
        constants = {buffer for buffer in func.buffers if buffer.name in arrays}
        written = stored_buffers(func.body)
        _check_constants(func, constants, written, arrays)
        try:
            copies, packing, remaining = lower_split(func, constants, cpu)
            used = {node.buffer for node in walk(remaining) if isinstance(node, Load)}
            constant_buffers = tuple(b for b in func.buffers if b in constants)
            used_constants = tuple(b for b in constant_buffers if b in used)
            arguments = tuple(b for b in func.buffers if b not in constants)
            packers = emit_module((*constant_buffers, *copies), packing, cpu)
            kernel = emit_module((*arguments, *used_constants, *copies), remaining, cpu)
        except (CodegenError, LoweringError) as error:
            raise BuildError(f"{func.name}: {error}", error.code) from error
        params = params_of((*constant_buffers, *copies), set(copies))
        packer = CpuModule(self.compile(func.name, params, packers, cpu))
        packed = [aligned_empty(static_shape(b), b.dtype) for b in copies]
        for array in packed:
            array.fill(0)  # elements beyond the end are read, though never used
        packer(*(arrays[b.name] for b in constant_buffers), *packed)
        packer.close()
        used_as_they_are = [np.array(arrays[b.name]) for b in used_constants]
        params = params_of((*arguments, *used_constants, *copies), written)
        artifact = self.compile(func.name, params, kernel, cpu)
        return CpuModule(artifact, (*used_as_they_are, *packed), kernel.text)


def _check_constants(
    func: PrimFunc, constants: set[Buffer], written: set[Buffer], arrays: Mapping[str, Any]
) -> None:
    unknown = arrays.keys() - {buffer.name for buffer in constants}
    changed = {buffer.name for buffer in constants & written}
    if unknown or changed:
        names = ", ".join(sorted(unknown or changed))
        readable = ", ".join(buffer.name for buffer in func.buffers if buffer not in written)
        reason = "the program writes it" if changed else "not a parameter"
        message = f"{func.name}: const_params: {names}: {reason}; it reads {readable}"
        raise BuildError(message, "constants")
