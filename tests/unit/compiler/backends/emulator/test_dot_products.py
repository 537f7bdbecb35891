"""Products of packed integers, of a kernel for an architecture whose PTX describes pointers."""

from __future__ import annotations

import numpy as np

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.emulator.emulate import emulate

SOURCE = """
extern "C" __global__ void products(
    const int* __restrict__ a, const int* __restrict__ b, int* __restrict__ c) {
  const int i = threadIdx.x;
  c[i] = __dp2a_lo(a[i], b[i], 3);
  c[32 + i] = __dp2a_hi(a[i], b[i], 3);
  c[64 + i] = (int)__dp2a_hi((unsigned)a[i], (unsigned)b[i], 3u);
  c[96 + i] = __dp4a(a[i], b[i], 3);
}
"""


def test_dot_products_match_numpy() -> None:
    a, b = np.random.default_rng(0).integers(-(2**31), 2**31, (2, 32)).astype(np.int32)
    c = np.zeros((4, 32), np.int32)
    ptx = compile_cuda(SOURCE, "sm_120").ptx
    report = emulate(ptx, "products", (1, 1, 1), (32, 1, 1), [a, b, c])
    assert not report.faults, report
    halves = a.view(np.int16).reshape(32, 2).astype(np.int64)
    parts = b.view(np.int8).reshape(32, 4).astype(np.int64)
    unsigned = (
        a.view(np.uint16).reshape(32, 2).astype(np.int64) * b.view(np.uint8).reshape(32, 4)[:, 2:]
    )
    expected = [
        (halves * parts[:, :2]).sum(1) + 3,
        (halves * parts[:, 2:]).sum(1) + 3,
        unsigned.sum(1) + 3,
        (a.view(np.int8).reshape(32, 4) * parts).sum(1) + 3,
    ]
    np.testing.assert_array_equal(c, expected)
