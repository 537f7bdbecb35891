"""Races: a kernel without one of its barriers is caught, and the correct one has no fault."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.report import EmulationReport
from compiler.backends.emulator.types import Array
from tests.unit.compiler.backends.emulator.simt_kernels import MATMUL, SOFTMAX, TRANSPOSE

GLOBAL_RACES = """
extern "C" __global__ void one_element(float* a) { a[0] = blockIdx.x; }
extern "C" __global__ void lost_update(float* a) { a[threadIdx.x & 7] += 1; }
extern "C" __global__ void other_block(const float* a, float* b) {
  b[blockIdx.x] = 1; a = b;
  b[8 + blockIdx.x] = a[blockIdx.x ^ 1];
}
extern "C" __global__ void atomic_and_store(int* a) {
  if (threadIdx.x == 40) a[0] = 1; else atomicAdd(a, 1);
}
extern "C" __global__ void neighbours(signed char* a) { a[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void one_warp(const float* a, float* b) {
  __shared__ float tile[32];
  tile[threadIdx.x] = a[threadIdx.x];
  __syncwarp();
  b[threadIdx.x] = tile[threadIdx.x ^ 1];
}
extern "C" __global__ void named(const float* a, float* b) {
  __shared__ float tile[128];
  int group = threadIdx.x / 64;
  tile[threadIdx.x] = a[threadIdx.x];
  if (group) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 2, 64;" ::: "memory");
  b[threadIdx.x] = tile[OTHER];
}
"""


def run_matmul(text: str) -> tuple[EmulationReport, Array, Array]:
    n = 32
    a, b = np.random.default_rng(0).standard_normal((2, n, n)).astype(np.float32)
    c = np.zeros((n, n), np.float32)
    shared = 4 * (16 * 36 + 16 * 32)
    ptx = compile_cuda(text, "sm_80").ptx
    arguments = [a, b, c, n]
    report = emulate(ptx, None, (1, 1, 1), (64, 1, 1), arguments, dynamic_shared_bytes=shared)
    return report, c, a @ b


def run_transpose(text: str) -> tuple[EmulationReport, Array, Array]:
    a = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    b = np.zeros((32, 64), np.float32)
    ptx = compile_cuda(text, "sm_80").ptx
    return emulate(ptx, None, (1, 2, 1), (256, 1, 1), [a, b, 64, 32]), b, a.T


def run_softmax(text: str) -> tuple[EmulationReport, Array, Array]:
    a = np.random.default_rng(0).standard_normal((3, 200)).astype(np.float32)
    b = np.zeros_like(a)
    ptx = compile_cuda(text, "sm_80").ptx
    exponentials = np.exp(a - a.max(axis=1, keepdims=True))
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    return emulate(ptx, None, (3, 1, 1), (128, 1, 1), [a, b, 200]), b, expected


KERNELS = {
    "matmul": (MATMUL, run_matmul),
    "transpose": (TRANSPOSE, run_transpose),
    "softmax": (SOFTMAX, run_softmax),
}
BARRIERS = [
    (name, line)
    for name, (text, _) in KERNELS.items()
    for line in text.splitlines()
    if "__syncthreads" in line
]


@pytest.mark.parametrize("name", KERNELS)
def test_a_correct_kernel_has_no_fault(name: str) -> None:
    text, run = KERNELS[name]
    report, result, expected = run(text)
    assert not report.faults, report
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "barrier"), BARRIERS, ids=[f"{n}: {b}" for n, b in BARRIERS])
def test_a_missing_barrier_is_a_race(name: str, barrier: str) -> None:
    text, run = KERNELS[name]
    report, _, _ = run(text.replace(barrier, "", 1))
    races = [fault for fault in report.faults if fault.kind == FaultKind.RACE]
    assert races, report
    assert all(fault.source_line for fault in races)


@pytest.fixture(scope="module")
def ptx() -> str:
    return compile_cuda(GLOBAL_RACES.replace("OTHER", "threadIdx.x ^ 33"), "sm_80").ptx


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("one_element", "several threads write one element of global memory at once"),
        ("lost_update", "several blocks read, and nothing orders the two"),
        ("other_block", "reads global memory that thread (0, 0, 0) of block"),
        ("atomic_and_store", "global memory that thread"),
    ],
)
def test_threads_that_write_one_element_race(ptx: str, kernel: str, message: str) -> None:
    b = np.zeros(64, np.float32)
    arguments = [np.zeros(64, np.float32), b] if kernel == "other_block" else [b]
    report = emulate(
        ptx, kernel, (4, 1, 1), (1 if kernel == "other_block" else 64, 1, 1), arguments
    )
    assert FaultKind.RACE in {fault.kind for fault in report.faults}
    assert message in str(report)


def test_a_race_between_blocks_that_run_one_after_the_other_is_seen(ptx: str) -> None:
    a = np.zeros(64, np.float32)
    report = emulate(ptx, "one_element", (4, 1, 1), (32, 1, 1), [a], blocks=[0, 3])
    assert FaultKind.RACE in {fault.kind for fault in report.faults}
    assert not emulate(ptx, "one_element", (4, 1, 1), (1, 1, 1), [a], blocks=[2]).faults
    assert a[0] == 2


def test_neighbouring_bytes_do_not_race(ptx: str) -> None:
    a = np.zeros(64, np.int8)
    assert not emulate(ptx, "neighbours", (1, 1, 1), (64, 1, 1), [a]).faults
    assert a.tolist() == list(range(64))


def test_a_barrier_of_a_warp_orders_its_lanes(ptx: str) -> None:
    a, b = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    assert not emulate(ptx, "one_warp", (1, 1, 1), (32, 1, 1), [a, b]).faults
    assert (b == a[np.arange(32) ^ 1]).all()
    start = ptx.index("bar.warp.sync")
    without = ptx[:start] + ptx[ptx.index(";", start) :]
    report = emulate(without, "one_warp", (1, 1, 1), (32, 1, 1), [a, b])
    assert {fault.kind for fault in report.faults} == {FaultKind.RACE}


@pytest.mark.parametrize(
    ("other", "races"), [("threadIdx.x ^ 33", False), ("threadIdx.x ^ 64", True)]
)
def test_a_named_barrier_orders_its_threads_alone(other: str, races: bool) -> None:
    ptx = compile_cuda(GLOBAL_RACES.replace("OTHER", other), "sm_80").ptx
    a, b = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    report = emulate(ptx, "named", (1, 1, 1), (128, 1, 1), [a, b])
    assert bool(report.faults) == races
    assert all(fault.kind == FaultKind.RACE for fault in report.faults)


JOINED_LOADS = """
extern "C" __global__ void joined(float* b, int written) {
  __shared__ __align__(16) float tile[32][4];
  for (int n = 0; n < written; ++n) tile[threadIdx.x][n] = n;
  __syncthreads();
  float x, y, z, w;
  unsigned address = __cvta_generic_to_shared(tile[threadIdx.x]);
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
    : "=f"(x), "=f"(y), "=f"(z), "=f"(w) : "r"(address) : "memory");
  b[threadIdx.x] = written > 2 ? x + y + z : x;
}
"""


@pytest.mark.parametrize(("written", "kinds"), [(3, set()), (0, {FaultKind.UNINITIALIZED})])
def test_a_wide_read_is_a_fault_if_all_its_elements_are_missing(
    written: int, kinds: set[FaultKind]
) -> None:
    b = np.zeros(32, np.float32)
    ptx = compile_cuda(JOINED_LOADS, "sm_80").ptx
    report = emulate(ptx, None, (1, 1, 1), (32, 1, 1), [b, written])
    assert {fault.kind for fault in report.faults} == kinds
    assert written == 0 or (b == 3).all()
