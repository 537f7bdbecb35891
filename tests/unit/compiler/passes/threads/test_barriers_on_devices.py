"""The barriers of a kernel are enough, and none is too many: without one, there are races."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.faults import FaultKind
from compiler.passes.device.lower import lower_for_device
from compiler.target.gpus import ARCHS
from tests.unit.compiler.passes.threads.programs import tiled_matmul

BARRIER = "__syncthreads();"
ARCH = "sm_80"
SIZE = 32


def without_barrier(text: str, number: int) -> str:
    parts = text.split(BARRIER)
    return BARRIER.join(parts[: number + 1]) + BARRIER.join(parts[number + 1 :])


@pytest.mark.parametrize("stages", [1, 2])
def test_a_product_without_one_of_its_barriers_races(stages: int) -> None:
    program = lower_for_device(tiled_matmul(SIZE, stages), ARCHS[ARCH])
    (kernel,) = program.kernels
    text = emit_cuda(program)
    # With two versions in shared memory, a step is written while the one before is read.
    num_barriers = {1: 2, 2: 1}[stages]
    assert text.count(BARRIER) == num_barriers

    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((SIZE, SIZE), np.float32) for _ in "AB")
    for source in (text, *(without_barrier(text, number) for number in range(num_barriers))):
        c = np.zeros((SIZE, SIZE), np.float32)
        report = emulate(
            compile_cuda(source, ARCH).ptx,
            kernel.name,
            kernel.grid,
            kernel.block,
            [a, b, c],
            dynamic_shared_bytes=kernel.shared_bytes,
        )
        if source is text:
            assert not report.faults, report
            np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
        else:
            assert any(fault.kind == FaultKind.RACE for fault in report.faults)
