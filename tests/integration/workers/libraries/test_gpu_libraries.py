"""Libraries of GPUs compute what kernels do; skipped without a GPU."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any, cast

import numpy as np
import pytest

import loopwright as lw
from compiler.backends.cuda.backend import CudaBackend
from compiler.backends.cuda.runtime.host_gpus import host_gpus
from compiler.ir.interpret.error_growth import check_case
from tests.contracts.library import LibraryContract
from workers.libraries.library import Library, LibraryError
from workers.libraries.load import load_library
from workers.measure.timed_run import run_of_library

pytestmark = pytest.mark.skipif(not host_gpus(), reason="no GPU on this host")
CUBLAS = ["matmul:48,40,24", "matmul:48,40,24:bfloat16", "matmul:48,40,24,transpose_b=true:float16"]
TORCH = [*CUBLAS, "softmax:8,40", "conv2d:1,8,9,9,16,3,1,1,layout=NHWC"]


@pytest.mark.parametrize("name", ["cublas", "torch_cuda"])
class TestGpuLibraries(LibraryContract):
    lacking = "gather:4,2"

    @pytest.fixture
    def library(self, name: str) -> Library:
        pytest.importorskip("torch" if name == "torch_cuda" else "cupy")
        loaded: Any = import_module(f"workers.libraries.{name}")
        loaded.start(1)
        return cast(Library, loaded)

    def to_device(self, array: np.ndarray) -> Any:
        device_arrays: Any = import_module("compiler.backends.cuda.runtime.device_arrays")
        cupy: Any = import_module("cupy")
        memory = device_arrays.copy_of(np.ascontiguousarray(array))
        memory.upload(cupy.cuda.get_current_stream())
        cupy.cuda.runtime.deviceSynchronize()
        return replace(memory, host=None, dtype=array.dtype.name, shape=array.shape)

    def product_of(self, result: Any) -> np.ndarray:
        cupy: Any = import_module("cupy")
        raw: np.ndarray = cupy.asnumpy(cupy.from_dlpack(result))
        return raw.view(np.float32).reshape(2, 4)


def time_library(name: str, spec: str) -> float:
    func, target = lw.ops.from_spec(spec), host_gpus()[0].target
    assert target is not None
    case = check_case(func, 0)
    arrays = CudaBackend().arrays(func, target, case)
    library = load_library(name)
    library.start(1)
    run = run_of_library(library, spec, target, arrays)
    run.check()
    return run.sample()


@pytest.mark.parametrize("spec", CUBLAS)
def test_cublas_is_correct_and_timed(spec: str) -> None:
    assert 1e-7 < time_library("cublas", spec) < 1e-2


def test_cublas_lacks_other_operators() -> None:
    with pytest.raises(LibraryError, match="plain products"):
        time_library("cublas", "softmax:8,40")


@pytest.mark.parametrize("spec", TORCH)
def test_pytorch_is_correct_and_timed(spec: str) -> None:
    pytest.importorskip("torch")
    assert 1e-7 < time_library("torch-cuda", spec) < 1e-2
