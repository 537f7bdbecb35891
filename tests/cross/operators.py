"""The operators of the library on one target: each compiled, run and compared with the oracle."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from compiler import ops
from compiler.driver import compile_kernel
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import poisoned
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.target.cpu import CpuTarget
from tests.cross.kernel_program import Arrays, KernelProgram
from tests.cross.tools import CrossTools
from tuner.space.generate import design_space
from tuner.task import Task

# An assertion of QEMU's own code: Debian 12's ends by one at conversions of vectors of RISC-V.
_EMULATOR_FAULT = re.compile(r"qemu-\w+: \S+\.c:\d+: \w+: Assertion")

# One of each instruction set that code generation tells apart.
TARGETS = (
    "x86-64",
    "x86-64-v2",
    "x86-64-v3",
    "x86-64-v4",
    "cortex-a53",
    "neoverse-n1",
    "neoverse-v2",
    "cortex-a9",
    "cortex-a15",
    "spacemit-x60",
    "sifive-x280",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one kernel.

    Attributes:
        spec: The operator, as text.
        problem: Why it is not correct; empty if it is.
        is_of_emulator: Whether the emulator itself crashed: nothing is known of the kernel.
    """

    spec: str
    problem: str = ""
    is_of_emulator: bool = False

    @property
    def is_wrong(self) -> bool:
        """Return whether the kernel is wrong."""
        return bool(self.problem) and not self.is_of_emulator

    @property
    def operator(self) -> str:
        """Return the name of the operator."""
        return self.spec.partition(":")[0]


def target_of(cpu: str, tools: CrossTools | None = None) -> CpuTarget:
    """Return the target of a CPU, without a feature that its emulator lacks."""
    lacks = f" -mattr=-{tools.missing_feature}" if tools and tools.missing_feature else ""
    return CpuTarget(f"cpu -mcpu={cpu}{lacks} -num-cores=1")


def run_operators(
    specs: Sequence[str], target: CpuTarget, tools: CrossTools, seed: int = 0
) -> Iterator[Outcome]:
    """Yield the outcomes of each operator: as written, and by a random schedule of the search.

    Args:
        specs: The operators, as text.
        target: The CPU, on one core.
        tools: Builds and runs programs for it.
        seed: Of the schedules.
    """
    rng = np.random.default_rng(seed)
    built: list[tuple[str, PrimFunc, Artifact]] = []
    for spec in specs:
        func = ops.from_spec(spec)
        try:
            kernels = [compile_kernel(func, target), *_scheduled(func, target, rng)]
        except Exception as error:
            yield Outcome(spec, f"{type(error).__name__}: {error}")
            continue
        built += [(spec, func, kernel) for kernel in kernels]
    with tempfile.TemporaryDirectory() as folder:
        program = KernelProgram([kernel for _, _, kernel in built], tools, Path(folder))
        for number, (spec, func, _) in enumerate(built):
            problem = _problem(program, number, func, spec)
            yield Outcome(spec, problem, bool(_EMULATOR_FAULT.search(problem)))


def _scheduled(func: PrimFunc, target: CpuTarget, rng: np.random.Generator) -> Iterator[Artifact]:
    """Yield the kernel of a random candidate; nothing if the program is too small for a search."""
    space = design_space(Task(func, target))
    if space.sketches:
        index = len(space.sketches) - 1
        (choices,) = space.draw(index, 1, rng)
        trace = space.sketches[index].candidate(choices).trace
        yield compile_kernel(trace.apply_to(func), target)


@cache
def _case(spec: str) -> tuple[Arrays, Arrays]:
    """Return random inputs of an operator, and its outputs by the oracle."""
    func = ops.from_spec(spec)
    inputs = random_inputs(func, 0)
    return inputs, interpret(func, inputs)


def _problem(program: KernelProgram, number: int, func: PrimFunc, spec: str) -> str:
    inputs, expected = _case(spec)
    arrays = {**{buffer.name: poisoned(buffer) for buffer in func.buffers}, **inputs}
    try:
        results = program.call(number, arrays)
        compare(func, {name: results[name] for name in expected}, expected)
    except (AssertionError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
