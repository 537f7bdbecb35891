"""Kernels written in CUDA C++: the ceilings of a GPU, and kernels with planted faults."""

from __future__ import annotations

from compiler.backends.cuda.device_code import DeviceCode, KernelLaunch, LaunchPlan
from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.fragments import FRAGMENT_HELPERS
from compiler.backends.module import Module
from compiler.driver import toolchain
from compiler.executor.artifact import Artifact
from compiler.executor.params import Param
from compiler.target.cuda import CudaTarget

COPY = """\
extern "C" __global__ void copy(const float4* __restrict__ a, float4* __restrict__ b) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  b[i] = a[i];
}
"""
# Sixteen independent sums a thread: enough to hide the latency of four cycles of a multiply-add.
FFMA = """\
extern "C" __global__ void ffma(const float* a, float* b) {
  float sums[16];
  const float factor = a[threadIdx.x];
#pragma unroll
  for (int i = 0; i < 16; ++i) sums[i] = i;
#pragma unroll 1
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int i = 0; i < 16; ++i) sums[i] = sums[i] * factor + factor;
  }
  float total = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) total += sums[i];
  b[blockIdx.x * blockDim.x + threadIdx.x] = total;
}
"""
# Eight independent tiles of sums a warp.
MMA = """\
extern "C" __global__ void mma(const unsigned* a, float* b) {
  float sums[8][4] = {};
  unsigned left[4], right[2];
  for (int i = 0; i < 4; ++i) left[i] = a[threadIdx.x + 128 * i];
  for (int i = 0; i < 2; ++i) right[i] = a[threadIdx.x + 128 * i];
#pragma unroll 1
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int i = 0; i < 8; ++i) mma_m16n8k16_bf16_f32(sums[i], left, right);
  }
  float total = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) total += sums[i / 4][i % 4];
  b[blockIdx.x * blockDim.x + threadIdx.x] = total;
}
"""
MMA_HELPER = FRAGMENT_HELPERS["mma_m16n8k16_bf16_f32"]
ILLEGAL = """\
extern "C" __global__ void illegal(const float* a, float* b) {
  b[threadIdx.x + (1ll << 40)] = a[threadIdx.x];
}
"""
HANG = """\
extern "C" __global__ void hang(const volatile float* a, float* b) {
  while (a[0] == 0) {}
  b[threadIdx.x] = 1;
}
"""


def kernel(
    name: str, text: str, target: CudaTarget, sizes: tuple[int, int], launch: tuple[int, int]
) -> Module:
    """Return a kernel that reads an array of float32, and writes another.

    Args:
        name: The name of the kernel.
        text: CUDA C++.
        target: The GPU.
        sizes: The numbers of elements of both arrays.
        launch: The numbers of blocks, and of threads of a block.
    """
    blocks, threads = launch
    plan = LaunchPlan((KernelLaunch(name, (blocks, 1, 1), (threads, 1, 1), 0, (0, 1)),))
    return Module(
        Artifact(
            name=name,
            target=target.name,
            triple="",
            features="",
            toolchain=toolchain("cuda"),
            params=(
                Param("a", (sizes[0],), "float32", is_output=False),
                Param("b", (sizes[1],), "float32", is_output=True),
            ),
            workspace_bytes=0,
            num_threads=1,
            code=DeviceCode.of(plan, compile_cuda(text, target.arch)).to_bytes(),
            backend="cuda",
        )
    )
