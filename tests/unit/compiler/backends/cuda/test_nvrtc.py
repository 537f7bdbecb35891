"""NVRTC compiles without a GPU, and reports what a kernel uses."""

from __future__ import annotations

import pytest

from compiler.backends.cuda.nvrtc import compile_cuda, nvrtc_version
from compiler.backends.error import BuildError

SCALE = """
extern "C" __global__ void __launch_bounds__(256) scale(float* __restrict__ data) {
  __shared__ float tile[256];
  tile[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = 2.0f * tile[255 - threadIdx.x];
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120"])
def test_source_becomes_machine_code(arch: str) -> None:
    compiled = compile_cuda(SCALE, arch)
    assert compiled.cubin.startswith(b"\x7fELF")
    assert f".target {arch}" in compiled.ptx
    (resources,) = compiled.resources.values()
    assert list(compiled.resources) == ["scale"]
    assert 0 < resources.registers <= 32
    assert (resources.stack_bytes, resources.spill_bytes) == (0, 0)
    assert resources.shared_bytes >= 1024


def test_what_the_compiler_rejects_is_an_error_with_its_message() -> None:
    with pytest.raises(BuildError, match=r"identifier \"dat\" is undefined"):
        compile_cuda(SCALE.replace("= data[", "= dat["), "sm_90a")


def test_an_unknown_architecture_is_an_error() -> None:
    with pytest.raises(BuildError, match="gpu-architecture"):
        compile_cuda(SCALE, "sm_1")


def test_it_has_a_version() -> None:
    assert nvrtc_version() >= (13, 0)
