"""Counts of instructions, bank conflicts and sectors, against numbers that follow from the text."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.emulator.counters import InstructionClass
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.report import EmulationReport
from tests.unit.compiler.backends.emulator.simt_kernels import TRANSPOSE

SOURCE = """
extern "C" __global__ void strided(float* a, float* b, int step) {
  __shared__ float tile[32 * 33];
  tile[threadIdx.x * step] = a[threadIdx.x * step];
  __syncthreads();
  b[threadIdx.x] = tile[threadIdx.x * step];
}
extern "C" __global__ void wide(float4* a, float4* b) {
  __shared__ float4 tile[64];
  tile[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = tile[0];
}
extern "C" __global__ void shifted(float* a, float* b) { b[threadIdx.x] = a[threadIdx.x + 1]; }
extern "C" __global__ void sums(float* a, int n) {
  float x = a[threadIdx.x], y = 0;
  for (int i = 0; i < n; i++) y = fmaf(x, y, x);
  a[threadIdx.x] = y;
}
extern "C" __global__ void guarded(float4* a, float4* b, int n) {
  __shared__ float4 tile[32];
  const unsigned target = __cvta_generic_to_shared(&tile[threadIdx.x]);
  const int size = threadIdx.x < n ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(target), "l"(&a[threadIdx.x]), "r"(size) : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  b[threadIdx.x] = tile[threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    return compile_cuda(SOURCE, "sm_80").ptx


def run(ptx: str, kernel: str, threads: int, *scalars: int) -> EmulationReport:
    arrays = [np.zeros(32 * 33, np.float32), np.zeros(512, np.float32)]
    if kernel == "sums":
        arrays.pop()
    report = emulate(ptx, kernel, (1, 1, 1), (threads, 1, 1), [*arrays, *scalars])
    assert not report.faults, report
    return report


@pytest.mark.parametrize(("step", "degree"), [(1, 1), (2, 2), (4, 4), (32, 32), (33, 1), (17, 1)])
def test_strides_have_known_bank_conflicts_and_sectors(ptx: str, step: int, degree: int) -> None:
    report = run(ptx, "strided", 32, step)
    assert [access.units for access in report.accesses if access.memory == "shared"] == [
        degree,
        degree,
    ]
    loads = next(access for access in report.accesses if access.memory == "global")
    assert loads.units == len({4 * step * lane // 32 for lane in range(32)})
    assert (loads.requests, loads.ideal) == (1, 4)
    assert report.bytes_read == 32 * loads.units
    assert report.bytes_written == 128


def test_wide_accesses_take_a_wavefront_for_each_quarter_of_a_warp(ptx: str) -> None:
    report = run(ptx, "wide", 64)
    store, load = (access for access in report.accesses if access.memory == "shared")
    assert (store.requests, store.units, store.ideal) == (2, 8, 8)
    assert load.units == load.ideal == 8
    assert [a.units for a in report.accesses if a.memory == "global"] == [32, 32]


def test_a_shifted_access_touches_one_more_sector(ptx: str) -> None:
    report = run(ptx, "shifted", 32)
    load, store = report.accesses
    assert (load.units, load.ideal, store.units) == (5, 4, 4)
    assert report.sector_ratio == pytest.approx(9 / 8)
    assert "1.25x sectors" in str(report)


@pytest.mark.parametrize(("copied", "sectors"), [(32, 16), (8, 4), (5, 3), (0, 0)])
def test_a_copy_that_fills_with_zeros_reads_no_sector(ptx: str, copied: int, sectors: int) -> None:
    report = run(ptx, "guarded", 32, copied)
    assert report.bytes_read == 32 * sectors
    copies = [a for a in report.accesses if "cp.async" in a.instruction and a.memory == "global"]
    assert sum(access.units for access in copies) == sectors


def test_instructions_are_counted_for_each_warp(ptx: str) -> None:
    report = run(ptx, "sums", 96, 100)
    assert report.instructions[InstructionClass.FMA] == 3 * 100
    assert report.instructions[InstructionClass.GLOBAL_LOAD] == 3


@pytest.mark.parametrize(("stride", "conflicts"), [(33, 1), (32, 32), (34, 2)])
def test_padding_removes_the_conflicts_of_a_transpose(stride: int, conflicts: int) -> None:
    text = TRANSPOSE.replace("#define STRIDE 33", f"#define STRIDE {stride}")
    ptx = compile_cuda(text, "sm_80").ptx
    a, b = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    report = emulate(ptx, None, (1, 1, 1), (256, 1, 1), [a, b, 32, 32])
    loads = [x for x in report.accesses if x.memory == "shared" and "ld.shared" in x.instruction]
    assert {access.ratio for access in loads} == {conflicts}
