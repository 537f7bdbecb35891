"""cuBLAS, NVIDIA's library of matrix products, called by CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np
from cupy.cuda import cublas

from compiler.backends.cuda.runtime.device_arrays import DeviceArray
from compiler.backends.cuda.runtime.gpu_function import GpuFunction, gpu_clock
from compiler.ops.spec import parse_spec
from workers.libraries.kernel_sets import LibraryCode
from workers.libraries.library import LibraryCall, LibraryError

_TYPES = {
    "float16": "CUDA_R_16F",
    "bfloat16": "CUDA_R_16BF",
    "float32": "CUDA_R_32F",
    "float64": "CUDA_R_64F",
}
# `cublasComputeType_t` and `cublasGemmAlgo_t` in the reference of cuBLAS. Products of float32 are
# computed in float32, not in tf32.
_COMPUTE_32F, _COMPUTE_64F = 68, 70
_DEFAULT_ALGORITHM = -1


def start(num_threads: int) -> str:
    """Return the version; a GPU does not depend on the threads of the host."""
    del num_threads
    version = cublas.getVersion(cupy.cuda.device.get_cublas_handle())
    return f"cuBLAS {version // 10000}.{version // 100 % 100}.{version % 100}"


def kernel_set() -> LibraryCode:
    """Return nothing: cuBLAS chooses its kernels by call."""
    return LibraryCode()


def prepare(operator: str, inputs: Sequence[DeviceArray]) -> LibraryCall:
    """Return the call of a plain product.

    Raises:
        LibraryError: If the operator is another one, or of other types.
    """
    spec = parse_spec(operator)
    bound = spec.bound()
    dtype = bound.get("dtype")
    is_plain = (
        spec.name == "matmul"
        and not bound["bias"]
        and bound["activation"] is None
        and bound["out_dtype"] in (None, dtype)
        and not bound["batch"]
    )
    if not is_plain or dtype not in _TYPES:
        raise LibraryError("cuBLAS has plain products of floating-point numbers only")
    return product(
        inputs[0],
        inputs[1],
        (bound["m"], bound["n"], bound["k"]),
        dtype,
        is_a_transposed=bound["transpose_a"],
        is_b_transposed=bound["transpose_b"],
    )


def product(
    a: DeviceArray,
    b: DeviceArray,
    shape: tuple[int, int, int],
    dtype: str,
    *,
    is_a_transposed: bool = False,
    is_b_transposed: bool = False,
) -> LibraryCall:
    """Return the call of a product of an m by k and a k by n matrix, stored row by row."""
    m, n, k = shape
    device = cupy.cuda.Device().id
    code = getattr(cupy.cuda.runtime, _TYPES[dtype])
    is_double = dtype == "float64"
    one, zero = (np.array(value, "float64" if is_double else "float32") for value in (1, 0))
    compute = _COMPUTE_64F if is_double else _COMPUTE_32F
    c = cupy.empty(m * n * np.dtype(dtype).itemsize, cupy.uint8)

    def run() -> Any:
        handle = cupy.cuda.device.get_cublas_handle()
        cublas.setStream(handle, cupy.cuda.get_current_stream().ptr)
        # cuBLAS stores matrices column by column: it computes the transposed product, B A.
        cublas.gemmEx(
            handle,
            *(int(is_b_transposed), int(is_a_transposed), n, m, k, one.ctypes.data),
            *(b.address, code, k if is_b_transposed else n),
            *(a.address, code, m if is_a_transposed else k),
            *(zero.ctypes.data, c.data.ptr, code, n, compute, _DEFAULT_ALGORITHM),
        )
        return c

    call = GpuFunction(run, device)
    return LibraryCall(call, lambda result: result, gpu_clock)
