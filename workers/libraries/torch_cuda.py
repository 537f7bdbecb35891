"""PyTorch, eager, on a GPU: cuBLAS, cuDNN and its own kernels on plain arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cupy
import torch

from compiler.backends.cuda.runtime.device_arrays import DeviceArray
from compiler.backends.cuda.runtime.gpu_function import GpuFunction, gpu_clock
from workers.libraries.kernel_sets import LibraryCode
from workers.libraries.library import LibraryCall, LibraryError
from workers.libraries.torch import prepare_tensors


def start(num_threads: int) -> str:
    """Choose exact float32; return the version.

    Raises:
        LibraryError: If this PyTorch was built for CPUs only.
    """
    del num_threads  # a GPU does not depend on the threads of the host
    if not torch.cuda.is_available():
        raise LibraryError("this PyTorch has no CUDA")
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True  # the fastest algorithm of each convolution
    return f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}"


def kernel_set() -> LibraryCode:
    """Return nothing: PyTorch chooses its kernels by call."""
    return LibraryCode()


def prepare(operator: str, inputs: Sequence[DeviceArray]) -> LibraryCall:
    """Return the call of an operator.

    Raises:
        LibraryError: If there is no function for it.
    """
    call = prepare_tensors(operator, [tensor_of(array) for array in inputs])
    return on_stream(call.run, call.result)


def tensor_of(array: DeviceArray) -> Any:
    """Return a tensor of PyTorch in the memory of an array."""
    dtype = getattr(torch, array.dtype)
    return torch.from_dlpack(array.raw()).view(dtype).reshape(array.shape)


def on_stream(function: Callable[[], Any], result: Callable[[Any], Any]) -> LibraryCall:
    """Return the call of a function of PyTorch, which then runs on the current stream of CuPy.

    Args:
        function: Returns a tensor, in any layout.
        result: Converts it to the layout of the workload.
    """
    device = cupy.cuda.Device().id

    def run() -> Any:
        with torch.cuda.stream(torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr)):
            return function()

    call = GpuFunction(run, device)
    return LibraryCall(
        call,
        lambda output: result(output).contiguous().reshape(-1).view(torch.uint8),
        gpu_clock,
    )
