"""Kernels on a GPU of this host; skipped without one."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from compiler.backends.backend import Backend
from compiler.backends.cuda.backend import CudaBackend
from compiler.backends.cuda.device_call import DeviceCall
from compiler.backends.cuda.module import CudaModule
from compiler.backends.cuda.runtime.host_gpus import host_gpus
from compiler.target.cuda import CudaTarget
from compiler.target.target import Target
from tests.contracts.backend import BackendContract
from tests.warpgroup_matmul import RingTiles, matmul, scheduled

pytestmark = pytest.mark.skipif(not host_gpus(), reason="no GPU on this host")


def gpu_target() -> Target:
    target = host_gpus()[0].target
    assert target is not None
    return target


def gpu_kernel(func: lw.PrimFunc) -> CudaModule:
    kernel = lw.build(func, gpu_target())
    assert isinstance(kernel, CudaModule)
    return kernel


class TestCudaBackendOnAGpu(BackendContract):
    def backend(self) -> Backend:
        return CudaBackend()

    def target(self) -> Target:
        return gpu_target()


def test_arrays_of_the_gpu_are_used_in_place() -> None:
    cupy = pytest.importorskip("cupy")
    func = lw.ops.matmul(48, 40, 24)
    random = np.random.default_rng(0)
    a, b = random.random((48, 24), np.float32), random.random((24, 40), np.float32)
    c = cupy.zeros((48, 40), np.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    gpu_kernel(func)(cupy.asarray(a), cupy.asarray(b), c, stream=stream)
    stream.synchronize()
    np.testing.assert_allclose(cupy.asnumpy(c), a @ b, rtol=1e-5)


def test_tensors_of_pytorch_are_used_in_place() -> None:
    torch = pytest.importorskip("torch")
    func = lw.ops.from_spec("relu:1000:bfloat16")
    x = torch.linspace(-1, 1, 1000, dtype=torch.bfloat16, device="cuda")
    y = torch.empty_like(x)
    gpu_kernel(func)(x, y, stream=torch.cuda.current_stream())
    assert torch.equal(y, torch.relu(x))


def test_an_array_of_another_shape_is_refused() -> None:
    cupy = pytest.importorskip("cupy")
    kernel = gpu_kernel(lw.ops.from_spec("relu:8"))
    with pytest.raises(TypeError, match=r"parameter A is float32\[9\]: expected float32\[8\]"):
        kernel(cupy.zeros(9, np.float32), cupy.zeros(8, np.float32))


def test_an_array_that_vectors_cannot_access_is_refused() -> None:
    cupy = pytest.importorskip("cupy")
    kernel = gpu_kernel(lw.ops.from_spec("relu:8"))
    with pytest.raises(TypeError, match="no multiple of 16 bytes"):
        kernel(cupy.zeros(9, np.float32)[1:], cupy.zeros(8, np.float32))


@pytest.mark.parametrize("size", [1000, 1_000_000, 100_000_000])
def test_samples_have_the_conditions_of_the_gpu(size: int) -> None:
    arrays = [np.ones(size, np.float32), np.zeros(size, np.float32)]
    run = gpu_kernel(lw.ops.from_spec(f"relu:{size}")).bind(*arrays)
    assert isinstance(run, DeviceCall)
    samples = run.sample(None)
    assert len(samples.secs) >= 3
    assert all(1e-7 < secs < 1e-2 for secs in samples.secs)
    assert samples.conditions is not None
    # The copies of the smallest arrays fit into the cache of each GPU.
    assert samples.conditions.l2 == ("warm" if size == 1000 else "cold")
    assert samples.conditions.sm_mhz is None or samples.conditions.sm_mhz > 100
    if size == 100_000_000:
        assert len(run.sample(min(samples.secs) / 10).secs) == 1  # a loser
    np.testing.assert_array_equal(arrays[1], arrays[0])


def test_runs_in_a_row_are_timed() -> None:
    size = 1_000_000  # 8 MB, which each GPU's cache holds
    run = gpu_kernel(lw.ops.from_spec(f"relu:{size}")).bind(
        np.ones(size, np.float32), np.zeros(size, np.float32)
    )
    assert isinstance(run, DeviceCall)
    assert 1e-7 < run.warm_secs(100) < 1e-3


def test_a_kernel_is_timed_without_the_copies_of_its_arrays() -> None:
    kernel = gpu_kernel(lw.ops.from_spec("relu:1000000"))
    arrays = [np.ones(1_000_000, np.float32), np.zeros(1_000_000, np.float32)]
    run = kernel.bind(*arrays)
    assert 1e-6 < kernel.clock(run, 1, 3) < 1e-3
    np.testing.assert_array_equal(arrays[1], arrays[0])


def test_a_product_of_warpgroups_runs_on_a_gpu_that_has_them() -> None:
    target = CudaTarget.of(gpu_target())
    if not target.limits.has_wgmma:
        pytest.skip(f"{target.arch} has no products of warpgroups")
    func = matmul((200, 136, 104))
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, s).astype("bfloat16") for s in ((200, 104), (104, 136)))
    c = np.zeros((200, 136), np.float32)
    lw.build(scheduled(func, RingTiles((128, 128), 2, 3)), target)(a, b, c)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
