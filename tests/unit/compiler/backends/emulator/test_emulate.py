"""Kernels of NVRTC run on the CPU: results, faults, divergence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.errors import EmulatorError, UnsupportedInstructionError
from compiler.backends.emulator.faults import FaultKind

SOURCE = """
extern "C" __global__ void functions(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = a[i];
  b[i] = expf(x); b[n + i] = erff(x); b[2 * n + i] = tanhf(x); b[3 * n + i] = powf(fabsf(x), 2.5f);
  b[4 * n + i] = logf(fabsf(x)); b[5 * n + i] = sinf(x); b[6 * n + i] = sqrtf(fabsf(x));
  b[7 * n + i] = x / (x + 3.0f); b[8 * n + i] = fmodf(x, 0.3f); b[9 * n + i] = floorf(x);
}
extern "C" __global__ void integers(const int* a, long long* b, int n) {
  int i = threadIdx.x, x = a[i];
  b[i] = x / 7; b[32 + i] = x % n; b[64 + i] = (long long)x * n * n; b[96 + i] = __popc(x);
  b[128 + i] = __clz(x); b[160 + i] = (int)__brev(x); b[192 + i] = __ffs(x);
  b[224 + i] = __dp4a(x, n, 3); b[256 + i] = __byte_perm(x, n, 0x5410); b[288 + i] = x >> 3;
  b[320 + i] = __funnelshift_l(x, n, 5); b[352 + i] = b[64 + i] / n; b[384 + i] = __mulhi(x, n);
  b[416 + i] = min(max(x, -50), 50); b[448 + i] = (signed char)x; b[480 + i] = (x >> 2) & 0x1f;
}
extern "C" __global__ void warps(const int* a, int* b) {
  int i = threadIdx.x, x = a[i];
  b[i] = __ballot_sync(~0u, x > 3); b[32 + i] = __shfl_xor_sync(~0u, x, 5);
  b[64 + i] = __shfl_down_sync(~0u, x, 4, 8); b[96 + i] = __all_sync(~0u, x > -1000);
  b[128 + i] = __reduce_add_sync(~0u, x); b[160 + i] = __match_any_sync(~0u, x & 3);
  b[192 + i] = __shfl_sync(~0u, x, i * 3);
}
extern "C" __global__ void divergent(const int* a, int* b) {
  int i = threadIdx.x, x = a[i], steps = 0;
  while (x != 1) { x = x % 2 ? 3 * x + 1 : x / 2; steps++; if (steps > 100) break; }
  int total = steps;
  for (int d = 16; d; d >>= 1) total += __shfl_xor_sync(~0u, total, d);
  b[i] = steps; b[64 + i] = total;
}
extern "C" __global__ void table(const int* a, float* b) {
  float values[8];
  for (int j = 0; j < 8; j++) values[(j * 5 + a[threadIdx.x]) & 7] = j;
  b[threadIdx.x] = values[a[threadIdx.x + 32] & 7];
}
extern "C" __global__ void atomics(float* sum, int* extremes, const int* a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(sum, 1.0f); atomicMax(extremes, a[i]); atomicMin(extremes + 1, a[i]);
}
extern "C" __global__ void beyond(float* a, int n) { a[threadIdx.x + n] = 1.0f; }
extern "C" __global__ void crooked(float* a) {
  *(float4*)(a + threadIdx.x) = make_float4(1, 2, 3, 4);
}
extern "C" __global__ void unwritten(float* a) {
  __shared__ float tile[64];
  if (threadIdx.x < 32) tile[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void twice(const float* a, float* b) {
  b[threadIdx.x] = 2 * a[threadIdx.x];
}
extern "C" __global__ void endless(volatile int* a) { while (a[0] == 0) {} }
extern "C" __global__ void stuck(float* a) {
  if (threadIdx.x < 32) __syncthreads();
  else { a[threadIdx.x] = 1; __syncthreads(); }
}
extern "C" __global__ void doubles(const double* a, double* b, int n) {
  int i = threadIdx.x;
  b[i] = sin(a[i]); b[n + i] = exp(a[i]); b[2 * n + i] = pow(a[i] * a[i], 1.5);
}
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    return compile_cuda(SOURCE, "sm_90a").ptx


def test_float_functions_match_numpy(ptx: str) -> None:
    n = 300
    a = (np.random.default_rng(0).standard_normal(n) * 4).astype(np.float32)
    a[::7] *= 1e5  # The slow path of sinf, which indexes a local array.
    a = np.clip(a, -80, 1e6)
    b = np.zeros(10 * n, np.float32)
    report = emulate(ptx, "functions", (3, 1, 1), (128, 1, 1), [a, b, n])
    assert not report.faults, report
    magnitude = np.abs(a)
    expected: list[Any] = [
        np.array([math.exp(x) if x < 88 else math.inf for x in a]),
        np.array([math.erf(x) for x in a]),
        np.tanh(a),
        magnitude.astype(np.float64) ** 2.5,
        np.log(magnitude),
        np.sin(a.astype(np.float64)),
        np.sqrt(magnitude),
        a / (a + np.float32(3)),
        np.fmod(a, np.float32(0.3)),
        np.floor(a),
    ]
    for row, values in zip(b.reshape(10, n), expected, strict=True):
        np.testing.assert_allclose(row, values, rtol=5e-7, atol=1e-30)


def test_integer_instructions_match_python(ptx: str) -> None:
    a = np.random.default_rng(1).integers(-(10**9), 10**9, 32).astype(np.int32)
    n = 12345
    b = np.zeros(16 * 32, np.int64)
    report = emulate(ptx, "integers", (1, 1, 1), (32, 1, 1), [a, b, n])
    assert not report.faults, report

    def wrapped(value: int) -> int:
        return (value + 2**31) % 2**32 - 2**31

    def expected(x: int) -> list[int]:
        u = x % 2**32
        n_bytes = n.to_bytes(4, "little")
        products = [(u >> 8 * k & 255) for k in range(4)]
        signed = [value - 256 if value > 127 else value for value in products]
        n_signed = [value - 256 if value > 127 else value for value in n_bytes]
        return [
            int(x / 7),
            int(math.fmod(x, n)),
            x * n * n,
            u.bit_count(),
            32 - u.bit_length(),
            wrapped(int(f"{u:032b}"[::-1], 2)),
            (u & -u).bit_length(),
            sum(p * q for p, q in zip(signed, n_signed, strict=True)) + 3,
            (u & 0xFFFF) | (n & 0xFFFF) << 16,
            x >> 3,
            (n << 5 | u >> 27) % 2**32,
            x * n,
            x * n >> 32,
            min(max(x, -50), 50),
            signed[0],
            (x >> 2) & 0x1F,
        ]

    rows = b.reshape(16, 32)
    rows[10] %= 2**32
    assert rows.T.tolist() == [expected(x) for x in a.tolist()]


def test_warps_exchange_values(ptx: str) -> None:
    a = np.random.default_rng(2).integers(-20, 20, 32).astype(np.int32)
    b = np.zeros(7 * 32, np.int32)
    report = emulate(ptx, "warps", (1, 1, 1), (32, 1, 1), [a, b])
    assert not report.faults, report
    i = np.arange(32)
    ballot, butterfly, down, every, total, match, chosen = b.reshape(7, 32)
    mask = sum(1 << int(k) for k in np.flatnonzero(a > 3))
    assert (ballot.view(np.uint32) == mask).all()
    assert (butterfly == a[i ^ 5]).all()
    assert (down == a[np.where(i % 8 + 4 < 8, i + 4, i)]).all()
    assert (every == 1).all()
    assert (total == a.sum()).all()
    assert (chosen == a[i * 3 % 32]).all()
    groups = [sum(1 << k for k in range(32) if a[k] & 3 == a[j] & 3) for j in range(32)]
    assert match.view(np.uint32).tolist() == groups


def test_lanes_diverge_and_meet_again(ptx: str) -> None:
    a = np.arange(1, 65, dtype=np.int32)
    b = np.zeros(128, np.int32)
    report = emulate(ptx, "divergent", (1, 1, 1), (64, 1, 1), [a, b])
    assert not report.faults, report

    def steps(x: int) -> int:
        count = 0
        while x != 1 and count <= 100:
            x = 3 * x + 1 if x % 2 else x // 2
            count += 1
        return count

    expected = np.array([steps(int(x)) for x in a])
    assert (b[:64] == expected).all()
    assert (b[64:].reshape(2, 32) == expected.reshape(2, 32).sum(axis=1)[:, None]).all()


def test_local_arrays_belong_to_their_threads(ptx: str) -> None:
    a = np.random.default_rng(3).integers(0, 100, 64).astype(np.int32)
    b = np.zeros(32, np.float32)
    report = emulate(ptx, "table", (1, 1, 1), (32, 1, 1), [a, b])
    assert not report.faults, report
    for thread in range(32):
        values = [0.0] * 8
        for j in range(8):
            values[(j * 5 + int(a[thread])) & 7] = j
        assert b[thread] == values[int(a[thread + 32]) & 7]


def test_atomic_operations_of_all_blocks_add_up(ptx: str) -> None:
    a = np.random.default_rng(4).integers(-1000, 1000, 128).astype(np.int32)
    total, extremes = np.zeros(1, np.float32), np.zeros(2, np.int32)
    report = emulate(ptx, "atomics", (2, 1, 1), (64, 1, 1), [total, extremes, a])
    assert not report.faults, report
    assert total[0] == 128
    assert extremes.tolist() == [a.max(), a.min()]


def test_double_functions_match_numpy(ptx: str) -> None:
    n = 64
    a = np.random.default_rng(5).standard_normal(n) * 10
    a[::8] *= 1e9  # The slow path calls a function.
    a = np.clip(a, -1e10, 300)
    b = np.zeros(3 * n)
    report = emulate(ptx, "doubles", (1, 1, 1), (n, 1, 1), [a, b, n])
    assert not report.faults, report
    sine, exponential, power = b.reshape(3, n)
    np.testing.assert_allclose(sine, np.sin(a), rtol=1e-14)
    np.testing.assert_allclose(exponential, np.exp(a), rtol=1e-14)
    np.testing.assert_allclose(power, np.abs(a) ** 3, rtol=1e-14)


def test_an_access_behind_a_buffer_names_line_and_thread(ptx: str) -> None:
    a = np.zeros(32, np.float32)
    report = emulate(ptx, "beyond", (1, 1, 1), (32, 1, 1), [a, 2])
    (fault,) = report.faults
    assert fault.kind == FaultKind.OUT_OF_BOUNDS
    assert (fault.thread, fault.num_threads) == ((30, 0, 0), 2)
    assert "a[threadIdx.x + n] = 1.0f" in SOURCE.splitlines()[(fault.source_line or 0) - 1]
    assert "byte 128 of argument 0, which has 128 bytes" in fault.message
    assert a.tolist() == [0.0] * 2 + [1.0] * 30


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("crooked", FaultKind.MISALIGNED),
        ("unwritten", FaultKind.UNINITIALIZED),
        ("stuck", FaultKind.DIVERGENT_BARRIER),
    ],
)
def test_faults(ptx: str, kernel: str, kind: FaultKind) -> None:
    report = emulate(ptx, kernel, (1, 1, 1), (64, 1, 1), [np.zeros(256, np.float32)])
    assert kind in {fault.kind for fault in report.faults}


def test_an_endless_loop_ends_as_a_fault(ptx: str) -> None:
    a = np.zeros(1, np.int32)
    report = emulate(ptx, "endless", (1, 1, 1), (32, 1, 1), [a], max_steps=1000)
    assert [fault.kind for fault in report.faults] == [FaultKind.ENDLESS_LOOP]


def test_a_kernel_must_exist_and_take_the_arguments(ptx: str) -> None:
    with pytest.raises(EmulatorError, match="no kernel 'missing'"):
        emulate(ptx, "missing", (1, 1, 1), (32, 1, 1), [])
    with pytest.raises(EmulatorError, match="has 2 parameters, not 1"):
        emulate(ptx, "beyond", (1, 1, 1), (32, 1, 1), [np.zeros(4, np.float32)])


def test_an_unknown_instruction_is_an_error(ptx: str) -> None:
    with pytest.raises(UnsupportedInstructionError, match="frobnicate"):
        emulate(
            ptx.replace("popc.b32", "frobnicate.b32"),
            "integers",
            (1, 1, 1),
            (32, 1, 1),
            [np.zeros(32, np.int32), np.zeros(512, np.int64), 1],
        )


def test_two_arguments_may_be_one_array(ptx: str) -> None:
    a = np.arange(32, dtype=np.float32)
    assert not emulate(ptx, "twice", (1, 1, 1), (32, 1, 1), [a, a]).faults
    assert (a == 2 * np.arange(32)).all()


def test_an_array_that_is_read_only_may_be_an_input(ptx: str) -> None:
    a, b = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    a.flags.writeable = False
    assert not emulate(ptx, "twice", (1, 1, 1), (32, 1, 1), [a, b]).faults
    assert (b == 2 * a).all()


def test_a_launch_without_threads_is_refused(ptx: str) -> None:
    with pytest.raises(EmulatorError, match="no thread"):
        emulate(ptx, "twice", (1, 0, 1), (32, 1, 1), [])
