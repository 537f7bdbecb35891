"""Kernels for AArch64 and RISC-V compute correct results, in an emulator."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from compiler import ops
from compiler.ir.interpret.evaluator.evaluate import poisoned
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.target.cpu import CpuTarget
from tests.integration.compiler.backends.cpu.emulated_cpus import EmulatedCpu
from tuner.space.generate import design_space
from tuner.task import Task

CPUS = ["neoverse-n1", "neoverse-v2", "sifive-x280"]
SPECS = [
    "matmul:13,45,17",
    "matmul:13,45,18:bfloat16",
    "softmax:5,37",
    "conv2d:1,5,9,9,7,3,1,1",
]
# The emulator of Debian 12 has no vectors of float16 for RISC-V.
HALF_SUMS = [(cpu, "matmul:13,45,18,acc_dtype=float16:float16") for cpu in CPUS[:2]]


@pytest.mark.parametrize(("cpu", "spec"), [*product(CPUS, SPECS), *HALF_SUMS])
def test_candidates_are_correct(cpu: str, spec: str, tmp_path: Path) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    emulated = EmulatedCpu(target, tmp_path)
    func = ops.from_spec(spec)
    inputs = random_inputs(func, 0)
    expected = interpret(func, inputs)
    arrays = {buffer.name: poisoned(buffer) for buffer in func.buffers} | inputs
    space = design_space(Task(func, target))
    # Linking takes longest, so only two sketches are tested.
    for index in {0, len(space.sketches) - 1}:
        sketch = space.sketches[index]
        (choices,) = space.draw(index, 1, np.random.default_rng(0))
        scheduled = sketch.candidate(choices).trace.apply_to(func).func
        results = emulated.call(scheduled, arrays)
        compare(func, {name: results[name] for name in expected}, expected)
