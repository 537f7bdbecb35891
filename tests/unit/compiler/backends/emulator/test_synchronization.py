"""Barriers, masks and copies of single threads: what is legal runs, what is not is a fault."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.report import EmulationReport
from compiler.backends.emulator.types import Array

SOURCE = r"""
extern "C" __global__ void count(const int* a, int* b) {
  int x = a[threadIdx.x];
  b[threadIdx.x] = __syncthreads_count(x > 10);
  b[128 + threadIdx.x] = __syncthreads_and(x > 3) + 2 * __syncthreads_or(x > 60);
}
extern "C" __global__ void handover(const int* a, int* b) {
  __shared__ int tile[64];
  if (threadIdx.x < 64) {  // The first two warps produce, and go on.
    tile[threadIdx.x] = a[threadIdx.x];
    asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    b[threadIdx.x] = tile[127 - threadIdx.x];
  }
}
extern "C" __global__ void guarded(const int* a, int* b) {
  __shared__ int tile[128];
  if (threadIdx.x >= 100) return;
  tile[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = tile[99 - threadIdx.x];
}
extern "C" __global__ void partial_shuffle(const int* a, int* b) {
  int x = a[threadIdx.x];
  if (threadIdx.x % 32 < 16) x += __shfl_xor_sync(0xffff, x, 8);
  b[threadIdx.x] = x;
}
extern "C" __global__ void wrong_mask(const int* a, int* b) {
  int x = a[threadIdx.x];
  if (threadIdx.x % 32 < 16) x += __shfl_xor_sync(0xffffffff, x, 8);
  b[threadIdx.x] = x;
}
extern "C" __global__ void inactive_lane(const int* a, int* b) {
  int x = a[threadIdx.x];
  if (threadIdx.x % 32 < 16) x += __shfl_xor_sync(0xffff, x, 16);
  b[threadIdx.x] = x;
}
extern "C" __global__ void odd_block(const int* a, int* b) {
  int x = a[threadIdx.x];
  int other = __shfl_xor_sync(__activemask(), x, 1);
  __syncthreads();
  b[threadIdx.x] = x + other;
}
extern "C" __global__ void padded_copy(const float* a, float* b, int n) {
  __shared__ __align__(16) float tile[512];
  int size = min(max(n - 4 * (int)threadIdx.x, 0), 4) * 4;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;"
               :: "r"((unsigned)__cvta_generic_to_shared(tile + 4 * threadIdx.x)),
                  "l"(a + 4 * threadIdx.x), "r"(size) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (int i = 0; i < 4; i++) b[4 * threadIdx.x + i] = tile[4 * threadIdx.x + i];
}
extern "C" __global__ void generic(const int* a, int* b, int n) {
  __shared__ int tile[128];
  int mine[4];
  for (int i = 0; i < 4; i++) mine[(i + n) & 3] = 1000 + i;
  tile[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  int* places[3] = {tile + 127 - threadIdx.x, mine + (threadIdx.x & 3), (int*)a + 5};
  volatile int* place = places[(threadIdx.x + n) % 3];
  b[threadIdx.x] = *place;
}
extern "C" __global__ void add_doubles(double* sum) {
  unsigned long long* bits = (unsigned long long*)sum;
  unsigned long long old = *(volatile unsigned long long*)bits, expected;
  do {
    expected = old;
    old = atomicCAS(bits, expected, __double_as_longlong(__longlong_as_double(expected) + 0.5));
  } while (old != expected);
}
"""
A = np.arange(128, dtype=np.int32)


@pytest.fixture(scope="module")
def ptx() -> str:
    return compile_cuda(SOURCE, "sm_80").ptx


def run(ptx: str, kernel: str, threads: int = 128, *scalars: int) -> tuple[EmulationReport, Array]:
    b = np.full(256, -1, np.int32)
    return emulate(ptx, kernel, (1, 1, 1), (threads, 1, 1), [A.copy(), b, *scalars]), b


def test_barriers_reduce_predicates(ptx: str) -> None:
    report, b = run(ptx, "count")
    assert not report.faults, report
    assert (b[:128] == 117).all()
    assert (b[128:] == 2).all()


def test_threads_that_only_arrive_hand_their_data_over(ptx: str) -> None:
    report, b = run(ptx, "handover")
    assert not report.faults, report
    assert b[64:128].tolist() == list(range(63, -1, -1))
    without = ptx.replace("bar.sync 1, 128;", "").replace("bar.arrive 1, 128;", "")
    report, _ = run(without, "handover")
    assert {fault.kind for fault in report.faults} <= {FaultKind.RACE, FaultKind.UNINITIALIZED}
    assert report.faults


def test_a_barrier_does_not_wait_for_threads_that_have_returned(ptx: str) -> None:
    report, b = run(ptx, "guarded")
    assert not report.faults, report
    assert b[:100].tolist() == list(range(99, -1, -1))


def test_a_mask_may_name_a_part_of_a_warp(ptx: str) -> None:
    report, b = run(ptx, "partial_shuffle", 64)
    assert not report.faults, report
    expected = np.where(A % 32 < 16, A + (A ^ 8), A)
    assert (b[:64] == expected[:64]).all()


@pytest.mark.parametrize("kernel", ["wrong_mask", "inactive_lane"])
def test_a_shuffle_needs_the_lanes_that_it_names(ptx: str, kernel: str) -> None:
    report, _ = run(ptx, kernel, 64)
    assert {fault.kind for fault in report.faults} == {FaultKind.DIVERGENT_WARP}


def test_the_last_warp_of_a_block_may_be_partial(ptx: str) -> None:
    report, b = run(ptx, "odd_block", 48)
    assert not report.faults, report
    assert (b[:48] == (A + (A ^ 1))[:48]).all()


@pytest.mark.parametrize("size", [0, 4, 37, 512])
def test_a_copy_fills_what_it_does_not_read_with_zeros(ptx: str, size: int) -> None:
    a = np.arange(1, size + 1, dtype=np.float32)
    b = np.full(512, -1, np.float32)
    report = emulate(ptx, "padded_copy", (1, 1, 1), (128, 1, 1), [a, b, size])
    assert not report.faults, report
    assert (b == np.pad(a, (0, 512 - size))).all()


def test_generic_addresses_reach_each_memory(ptx: str) -> None:
    report, b = run(ptx, "generic", 128, 3)
    assert not report.faults, report
    choices = [127 - A, 1000 + (A + 1) % 4, np.full(128, 5)]
    assert (b[:128] == np.choose(A % 3, choices)).all()


def test_loops_of_compare_and_swap_end(ptx: str) -> None:
    total = np.zeros(1)
    report = emulate(ptx, "add_doubles", (2, 1, 1), (64, 1, 1), [total])
    assert total[0] == 64
    assert not report.faults, report
