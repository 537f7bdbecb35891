"""Kernels of operators by their default binding: many programs as one source, compiled once.

A compilation of NVRTC costs 30 ms before it reads the first kernel. `python -m` this module runs
every case of `tests/unit/compiler/ops/specs.py` on sm_80, sm_90a and sm_120: a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace

from compiler import ops
from compiler.backends.cuda.device_code import DeviceCode, LaunchPlan, launch_plan
from compiler.backends.cuda.emulated_call import EmulatedCall
from compiler.backends.cuda.nvrtc import CompiledSource, compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.host_arrays import HostArrays
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.error_growth import check_case
from compiler.passes.device.kernel import DeviceProgram
from compiler.passes.device.lower import lower_for_device
from compiler.target.cuda import CudaTarget
from tests.unit.compiler.ops.specs import SPECS

ARCHS = ("sm_80", "sm_90a", "sm_120")


def first_of_each_operator(specs: Iterable[str]) -> list[str]:
    """Return the first spec of each operator."""
    first: dict[str, str] = {}
    for spec in specs:
        first.setdefault(spec.partition(":")[0], spec)
    return list(first.values())


class CompiledPrograms:
    """The kernels of several programs, compiled as one source.

    Args:
        programs: The programs by name.
        target: An emulated GPU.
    """

    def __init__(self, programs: Mapping[str, PrimFunc], target: CudaTarget) -> None:
        self._target = target
        self._programs = programs
        device_programs = {
            name: _renamed(lower_for_device(func, target.limits), number)
            for number, (name, func) in enumerate(programs.items())
        }
        self._plans = {name: launch_plan(program) for name, program in device_programs.items()}
        kernels = [kernel for program in device_programs.values() for kernel in program.kernels]
        launches = [launch for program in device_programs.values() for launch in program.launches]
        text = emit_cuda(DeviceProgram((), (), tuple(kernels), tuple(launches)))
        self._compiled = compile_cuda(text, target.arch)

    def largest_error(self, name: str) -> float:
        """Run a program in the emulator, and return its largest error against the oracle.

        Raises:
            WrongResultError: If the error is above the tolerance.
            EmulationError: If a kernel has a fault.
        """
        func = self._programs[name]
        case = check_case(func, 0)
        arrays = HostArrays(func, case)
        code = _code_of(self._plans[name], self._compiled)
        EmulatedCall(code, arrays.fresh_arrays(), self._target)()
        return arrays.check()


def compile_operators(specs: Iterable[str], target: CudaTarget) -> CompiledPrograms:
    """Return the kernels of operators without schedules."""
    return CompiledPrograms({spec: ops.from_spec(spec) for spec in specs}, target)


def _renamed(program: DeviceProgram, number: int) -> DeviceProgram:
    """Return a program with kernels of other names than those of programs with other numbers."""
    kernels = (replace(kernel, name=f"{kernel.name}_{number}") for kernel in program.kernels)
    launches = (replace(launch, kernel=f"{launch.kernel}_{number}") for launch in program.launches)
    return replace(program, kernels=tuple(kernels), launches=tuple(launches))


def _code_of(plan: LaunchPlan, compiled: CompiledSource) -> DeviceCode:
    """Return the code of one program; of the PTX only its own kernels, which are parsed."""
    header, *entries = compiled.ptx.split("\n.visible .entry ")
    names = {launch.kernel for launch in plan.launches}
    own = [entry for entry in entries if entry.partition("(")[0].strip() in names]
    ptx = "\n.visible .entry ".join([header, *own])
    return DeviceCode(plan, compiled.cubin, ptx, compiled.resources)


def main() -> int:
    """Run all operators on all architectures; return an exit code of 1 if one fails."""
    num_failed = 0
    for arch in ARCHS:
        compiled = compile_operators(SPECS, CudaTarget(f"cuda -arch={arch} -emulated"))
        for spec in SPECS:
            try:
                compiled.largest_error(spec)
            except Exception as error:  # each operator is checked, whatever happens to another
                num_failed += 1
                sys.stdout.write(f"{arch}: {spec}: {type(error).__name__}: {error}\n")
    sys.stdout.write(f"{len(ARCHS) * len(SPECS)} cases, {num_failed} failed\n")
    return int(num_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
