"""Mutants of a generated product of warpgroups: a missing step of its ring is caught.

A mutant differs from the correct kernel in one statement of the text. It is caught if the report
has a fault, or if the result is wrong. Each block computes two tiles, so that the ring goes on.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.groups import Order
from compiler.backends.emulator.report import EmulationReport
from compiler.backends.emulator.tensor_copies import TensorMap
from compiler.passes.device.kernel import DeviceKernel, DeviceProgram
from compiler.passes.device.lower import lower_for_device
from compiler.target.gpus import ARCHS
from tests.warpgroup_matmul import RingTiles, matmul, scheduled

SHAPE = (256, 128, 128)
ORDERS: tuple[Order, ...] = ("lockstep", 1)
# The stages are 0 and 1; the barriers of empty ones are 2 and 3.
FULL, EMPTY = "&barriers[position[0]]", "&barriers[position[0] + 2]"


@pytest.fixture(scope="module")
def program() -> DeviceProgram:
    sch = scheduled(matmul(SHAPE), RingTiles((64, 128), 1, 2, blocks=2))
    return lower_for_device(sch.func, ARCHS["sm_90a"])


@pytest.fixture(scope="module")
def text(program: DeviceProgram) -> str:
    return emit_cuda(program)


def run(kernel: DeviceKernel, ptx: str, order: Order) -> tuple[EmulationReport, bool]:
    """Run a kernel; return its report, and whether its result is correct."""
    m, n, k = SHAPE
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    arrays = {"A": a, "B": b}
    maps = [TensorMap(arrays[tensor.buffer.name], tensor.box) for tensor in kernel.tensors]
    report = emulate(
        ptx,
        None,
        kernel.grid,
        kernel.block,
        [c, *maps],
        dynamic_shared_bytes=kernel.shared_bytes,
        order=order,
        max_steps=100_000,
    )
    return report, bool((c == a.astype(np.float32) @ b.astype(np.float32)).all())


def faults_of(program: DeviceProgram, text: str) -> set[FaultKind] | None:
    """Return the faults of a mutant, in the first order that shows it; None if it is not caught."""
    (kernel,) = program.kernels
    ptx = compile_cuda(text, "sm_90a").ptx
    for order in ORDERS:
        report, is_correct = run(kernel, ptx, order)
        if report.faults or not is_correct:
            return {fault.kind for fault in report.faults}
    return None


@pytest.mark.parametrize("order", ORDERS)
def test_the_generated_kernel_has_no_fault(program: DeviceProgram, text: str, order: Order) -> None:
    (kernel,) = program.kernels
    report, is_correct = run(kernel, compile_cuda(text, "sm_90a").ptx, order)
    assert not report.faults, report
    assert is_correct
    assert report.bank_conflicts == 1


@pytest.mark.parametrize(
    ("statement", "replacement", "kinds"),
    [
        ("  __syncthreads();", "", {FaultKind.UNINITIALIZED, FaultKind.RACE}),
        ("    mbarrier_fence();", "", {FaultKind.MISSING_FENCE}),
        (f"mbarrier_wait({FULL}, position[1]);", "", {FaultKind.EARLY_ACCESS}),
        (f"mbarrier_wait({EMPTY}, position[1]);", "", {FaultKind.RACE, FaultKind.EARLY_ACCESS}),
        (f"mbarrier_expect({FULL}, 24576);", f"mbarrier_arrive({FULL});", {FaultKind.EARLY_ACCESS}),
        ("24576);", "8192);", {FaultKind.EARLY_ACCESS, FaultKind.DEADLOCK}),
        ("24576);", "32768);", {FaultKind.DEADLOCK}),
        ("        wgmma_fence();", "", {FaultKind.MISSING_FENCE}),
        ("wgmma_wait_group<1>();", "", {FaultKind.RACE, FaultKind.EARLY_ACCESS}),
        (
            "wgmma_wait_group<1>();",
            "wgmma_wait_group<2>();",
            {FaultKind.RACE, FaultKind.EARLY_ACCESS},
        ),
        ("mbarrier_init(&barriers[stage + 2], 4);", "", {FaultKind.UNINITIALIZED}),
        (
            "mbarrier_init(&barriers[stage + 2], 4);",
            "mbarrier_init(&barriers[stage + 2], 3);",
            {FaultKind.INVALID_OPERAND, FaultKind.RACE},
        ),
        (
            "mbarrier_init(&barriers[stage + 2], 4);",
            "mbarrier_init(&barriers[stage + 2], 5);",
            {FaultKind.DEADLOCK},
        ),
        ("position[1] = position[1] ^ 1;", "", {FaultKind.DEADLOCK, FaultKind.EARLY_ACCESS}),
    ],
)
def test_the_ring_needs_each_step(
    program: DeviceProgram, text: str, statement: str, replacement: str, kinds: set[FaultKind]
) -> None:
    assert statement in text
    faults = faults_of(program, text.replace(statement, replacement, 1))
    assert faults is not None, "the mutant is not caught"
    assert faults & kinds, faults


@pytest.mark.parametrize("number", [0, 1])
def test_each_stage_is_marked_as_empty(program: DeviceProgram, text: str, number: int) -> None:
    parts = text.split("mbarrier_arrive(&barriers[")
    assert len(parts) == 3
    before, after = "mbarrier_arrive(&barriers[".join(parts[: number + 1]), parts[number + 1 :]
    rest = [after[0][after[0].index(";") + 1 :], *after[1:]]
    mutant = before + "mbarrier_arrive(&barriers[".join(rest)
    assert faults_of(program, mutant) == {FaultKind.DEADLOCK}


@pytest.mark.parametrize(
    ("statement", "replacement"),
    [
        ("wgmma_commit_group();\n", "\n"),
        ("wgmma_wait_group<0>();", ""),
        ("1ull << 62", "2ull << 62"),
        ("1024ull >> 4", "512ull >> 4"),
        ("8192ull >> 4", "4096ull >> 4"),
        ("wgmma_m64n128k16_bf16_f32<0, 1>", "wgmma_m64n128k16_bf16_f32<0, 0>"),
        ("step * 1024", "step * 512"),
    ],
)
def test_another_layout_or_an_early_read_is_a_wrong_result(
    program: DeviceProgram, text: str, statement: str, replacement: str
) -> None:
    position = text.rindex(statement)
    mutant = text[:position] + replacement + text[position + len(statement) :]
    assert faults_of(program, mutant) is not None
