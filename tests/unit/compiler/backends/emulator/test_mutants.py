"""Mutants of pipelines with tensor cores: a missing wait, barrier, fence or swizzle is caught.

A mutant differs from the correct kernel in one statement of the PTX, or in one macro of the text.
It is caught if the report has a fault, or if the result is wrong.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.groups import Order
from compiler.backends.emulator.report import EmulationReport
from compiler.backends.emulator.tensor_copies import TensorMap
from compiler.backends.emulator.types import Array
from tests.unit.compiler.backends.emulator.tensor_kernels import PIPELINE, STORE, WARPGROUP


@pytest.fixture(scope="module")
def pipeline() -> str:
    return compile_cuda(PIPELINE, "sm_80").ptx


@pytest.fixture(scope="module")
def warpgroup() -> str:
    return compile_cuda(WARPGROUP, "sm_90a").ptx


def run_pipeline(ptx: str, order: Order = "lockstep") -> tuple[EmulationReport, bool]:
    k = 160
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, k)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((k, 64)).astype(ml_dtypes.bfloat16)
    c = np.zeros((64, 64), np.float32)
    report = emulate(
        ptx, None, (1, 1, 1), (128, 1, 1), [a, b, c, k], dynamic_shared_bytes=3 * 8192, order=order
    )
    return report, _close(c, a.astype(np.float64) @ b.astype(np.float64))


def run_warpgroup(ptx: str, order: Order = "lockstep") -> tuple[EmulationReport, bool]:
    k = 320
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, k)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((64, k)).astype(ml_dtypes.bfloat16)
    c = np.zeros((64, 64), np.float32)
    maps = [TensorMap(a, (64, 64)), TensorMap(b, (64, 64))]
    report = emulate(
        ptx,
        None,
        (1, 1, 1),
        (256, 1, 1),
        [*maps, c, k],
        dynamic_shared_bytes=2 * 16384,
        order=order,
    )
    return report, _close(c, a.astype(np.float64) @ b.astype(np.float64).T)


def _close(result: Array, expected: Array) -> bool:
    return bool(np.allclose(result, expected, rtol=1e-4, atol=1e-4))


def replaced(ptx: str, pattern: str, replacement: str, number: int) -> str:
    """Replace one occurrence of a pattern."""
    match = list(re.finditer(pattern, ptx))[number]
    return ptx[: match.start()] + match.expand(replacement) + ptx[match.end() :]


@pytest.mark.parametrize("order", ["lockstep", 0, 1])
def test_the_correct_pipelines_have_no_fault(pipeline: str, warpgroup: str, order: Order) -> None:
    for report, is_correct in (run_pipeline(pipeline, order), run_warpgroup(warpgroup, order)):
        assert not report.faults, report
        assert is_correct
        assert report.bank_conflicts == 1


@pytest.mark.parametrize(
    ("pattern", "replacement", "number", "kind"),
    [
        (r"bar\.sync\s+0;", "", 0, FaultKind.RACE),
        (r"cp\.async\.wait_group 1;", "", 0, FaultKind.EARLY_ACCESS),
        (r"cp\.async\.wait_group 1;", "cp.async.wait_group 2;", 0, FaultKind.EARLY_ACCESS),
        (r"cp\.async\.commit_group;", "", 0, FaultKind.EARLY_ACCESS),
        (r"cp\.async\.commit_group;", "", 1, FaultKind.EARLY_ACCESS),
        (r"cp\.async\.commit_group;", "", 2, FaultKind.EARLY_ACCESS),
    ],
)
def test_the_pipeline_of_copies_needs_each_wait(
    pipeline: str, pattern: str, replacement: str, number: int, kind: FaultKind
) -> None:
    report, _ = run_pipeline(replaced(pipeline, pattern, replacement, number))
    assert kind in {fault.kind for fault in report.faults}, report


@pytest.mark.parametrize(
    "macro", ["SWIZZLE_WRITE_A", "SWIZZLE_READ_A", "SWIZZLE_WRITE_B", "SWIZZLE_READ_B"]
)
def test_a_swizzle_on_one_side_only_is_a_wrong_result(macro: str) -> None:
    text = re.sub(rf"#define {macro}\(r, c\).*", f"#define {macro}(r, c) (c)", PIPELINE)
    _, is_correct = run_pipeline(compile_cuda(text, "sm_80").ptx)
    assert not is_correct


def test_a_pipeline_without_a_swizzle_has_bank_conflicts() -> None:
    text = re.sub(r"#define (SWIZZLE_\w+)\(r, c\).*", r"#define \1(r, c) (c)", PIPELINE)
    report, is_correct = run_pipeline(compile_cuda(text, "sm_80").ptx)
    assert is_correct
    assert not report.faults
    loads = [access for access in report.accesses if "ldmatrix" in access.instruction]
    assert {access.ratio for access in loads} == {4, 8}


_WAIT = r"mbarrier\.try_wait\.parity\.shared::cta\.b64 (\S+), \[(\S+)\], (\S+);"
_NO_WAIT = r"setp.eq.u32 \1, 0, 0;"
_EXPECT = r"mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[(\S+)\], \S+;"


@pytest.mark.parametrize(
    ("pattern", "replacement", "number", "kinds"),
    [
        (r"bar\.sync\s+0;", "", 0, {FaultKind.RACE, FaultKind.UNINITIALIZED}),
        (_WAIT, _NO_WAIT, 0, {FaultKind.RACE, FaultKind.EARLY_ACCESS}),
        (_WAIT, _NO_WAIT, 1, {FaultKind.EARLY_ACCESS, FaultKind.UNINITIALIZED}),
        (_EXPECT, r"mbarrier.arrive.shared::cta.b64 _, [\1];", 0, {FaultKind.EARLY_ACCESS}),
        (_EXPECT, "", 0, {FaultKind.DEADLOCK}),
        (r"mbarrier\.arrive\.shared::cta\.b64 _, \[\S+\];", "", 0, {FaultKind.DEADLOCK}),
        (r"(mbarrier\.init\.shared::cta\.b64 \[\S+\]), 1;", r"\1, 2;", 1, {FaultKind.DEADLOCK}),
        (r"mbarrier\.init\.shared::cta\.b64 \[\S+\], 1;", "", 3, {FaultKind.UNINITIALIZED}),
        (r"wgmma\.fence\.sync\.aligned;", "", 0, {FaultKind.MISSING_FENCE}),
        (r"fence\.mbarrier_init\.release\.cluster;", "", 0, {FaultKind.MISSING_FENCE}),
    ],
)
def test_the_pipeline_of_warpgroups_needs_each_step(
    warpgroup: str, pattern: str, replacement: str, number: int, kinds: set[FaultKind]
) -> None:
    report, _ = run_warpgroup(replaced(warpgroup, pattern, replacement, number))
    assert kinds & {fault.kind for fault in report.faults}, report


@pytest.mark.parametrize("name", ["commit_group", "wait_group"])
def test_products_that_are_not_waited_for_have_no_result(warpgroup: str, name: str) -> None:
    report, is_correct = run_warpgroup(replaced(warpgroup, rf"wgmma\.{name}\.[^;]*;", "", 0))
    assert report.faults or not is_correct


@pytest.mark.parametrize("order", ["lockstep", 0, 1])
def test_a_stage_that_is_freed_before_its_products_end_is_a_race(
    warpgroup: str, order: Order
) -> None:
    wait = re.search(r"wgmma\.wait_group\.sync\.aligned 0;", warpgroup)
    arrive = re.search(r"mbarrier\.arrive\.shared::cta\.b64 _, \[\S+\];", warpgroup)
    assert wait is not None
    assert arrive is not None
    # Exchange the two: the wait now follows the arrival, for the thread that arrives.
    text = warpgroup[: wait.start()] + warpgroup[wait.end() : arrive.end()]
    end = warpgroup.index("$L__", arrive.end())
    label_end = warpgroup.index(":", end) + 1
    text += warpgroup[arrive.end() : label_end] + "\n" + wait[0] + warpgroup[label_end:]
    report, _ = run_warpgroup(text, order)
    kinds = {fault.kind for fault in report.faults}
    assert kinds & {FaultKind.RACE, FaultKind.EARLY_ACCESS}, report


@pytest.mark.parametrize("swizzle", [0, 64])
def test_a_box_with_another_swizzle_than_the_descriptor_is_a_wrong_result(swizzle: int) -> None:
    # The tensor maps have a swizzle of 128.
    text = WARPGROUP.replace("(u64)1 << 62", f"(u64){2 if swizzle else 0} << 62")
    report, is_correct = run_warpgroup(compile_cuda(text, "sm_90a").ptx)
    assert not report.faults, report
    assert not is_correct


def test_a_box_must_be_aligned_for_its_swizzle(warpgroup: str) -> None:
    text = warpgroup.replace(".align 1024", ".align 16")
    report, _ = run_warpgroup(text.replace("[16]", "[24]"))
    assert {fault.kind for fault in report.faults} == {FaultKind.MISALIGNED}, report


def run_store(ptx: str) -> tuple[EmulationReport, bool]:
    a = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    b = np.zeros_like(a)
    report = emulate(ptx, None, (2, 1, 1), (64, 1, 1), [a, TensorMap(b, (16, 32), swizzle=0)])
    return report, bool((b == 2 * a).all())


@pytest.fixture(scope="module")
def store() -> str:
    return compile_cuda(STORE, "sm_90a").ptx


def test_a_tile_that_threads_compute_is_stored_by_the_copy_engine(store: str) -> None:
    report, is_correct = run_store(store)
    assert not report.faults, report
    assert is_correct
    assert (report.bytes_written, report.bytes_transferred) == (4096, 4096)


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        (r"fence\.proxy\.async[^;]*;", FaultKind.MISSING_FENCE),
        (r"bar\.sync\s+0;", FaultKind.RACE),
    ],
)
def test_the_copy_engine_needs_a_fence_and_a_barrier(
    store: str, pattern: str, kind: FaultKind
) -> None:
    report, _ = run_store(replaced(store, pattern, "", 0))
    assert kind in {fault.kind for fault in report.faults}, report
