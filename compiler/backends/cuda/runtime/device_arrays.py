"""The memory of arrays on a GPU, from arrays of any library, or from those of the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from compiler.backends.cuda.text.vectorized import GLOBAL_ALIGNMENT
from compiler.executor import dlpack
from compiler.executor.arrays import ArrayCheck
from compiler.executor.error import ArgumentError
from compiler.executor.named_type import named_type
from compiler.executor.params import Param

_ON_GPU = (2, 13)  # kDLCUDA and kDLCUDAManaged


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """An array in the memory of a GPU.

    Attributes:
        address: The address of its first element.
        size_bytes: Its size.
        owner: Keeps the memory alive.
        host: The array of the host that it is a copy of; None if the caller's array is on the GPU.
        dtype: The type of its elements, for libraries; empty if it is not known.
        shape: Its extents, for libraries.
    """

    address: int
    size_bytes: int
    owner: Any
    host: NDArray[Any] | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()

    @property
    def caller_address(self) -> int:
        """Return the address of the caller's array, on the host or on the GPU."""
        return self.address if self.host is None else int(self.host.ctypes.data)

    def raw(self) -> Any:
        """Return its bytes as an array of CuPy, which lacks types such as bfloat16."""
        return cupy.ndarray(self.size_bytes, cupy.uint8, self.owner)

    def copy_on_gpu(self) -> DeviceArray:
        """Return a copy in new memory of the current GPU, made before this call returns."""
        copy = allocate(self.size_bytes)
        runtime = cupy.cuda.runtime
        runtime.memcpy(copy.address, self.address, self.size_bytes, runtime.memcpyDeviceToDevice)
        runtime.deviceSynchronize()  # a copy within a device returns before it is done
        return copy

    def upload(self, stream: Any) -> None:
        """Copy the array of the host to the GPU."""
        assert self.host is not None
        self._copy(self.address, self.host.ctypes.data, stream, "memcpyHostToDevice")

    def download(self, stream: Any) -> None:
        """Copy the array on the GPU to the host."""
        assert self.host is not None
        self._copy(self.host.ctypes.data, self.address, stream, "memcpyDeviceToHost")

    def _copy(self, to: int, source: int, stream: Any, direction: str) -> None:
        runtime = cupy.cuda.runtime
        kind = getattr(runtime, direction)
        runtime.memcpyAsync(to, source, self.size_bytes, kind, stream.ptr)


def allocate(size_bytes: int) -> DeviceArray:
    """Return new memory on the current GPU."""
    memory = cupy.cuda.alloc(max(size_bytes, 1))
    return DeviceArray(memory.ptr, size_bytes, memory)


def copy_of(host: NDArray[Any]) -> DeviceArray:
    """Return memory on the current GPU for an array of the host; nothing is copied yet."""
    memory = allocate(host.nbytes)
    return DeviceArray(memory.address, memory.size_bytes, memory.owner, host)


def device_arrays(
    checks: Sequence[ArrayCheck], arrays: Sequence[Any], device: int, stream: Any
) -> list[DeviceArray]:
    """Return the memory of a caller's arrays on a GPU; those of the host get room there.

    Args:
        checks: One for each parameter.
        arrays: One for each parameter: of CuPy, PyTorch or another library with DLPack, or NumPy.
        device: The index of the GPU.
        stream: The stream of CuPy on which they are used.

    Raises:
        ArgumentError: If an array does not fit its parameter, or is on another GPU.
    """
    return [
        _memory(check, array, device, stream) for check, array in zip(checks, arrays, strict=True)
    ]


def _memory(check: ArrayCheck, array: Any, device: int, stream: Any) -> DeviceArray:
    if isinstance(array, DeviceArray):
        return array  # of `gpu_trial_arrays`, which makes one for each parameter
    if _is_on_gpu(array):
        return _exported(check.param, array, device, stream)
    return copy_of(check.array(array))


def _is_on_gpu(array: Any) -> bool:
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] in _ON_GPU


def _exported(param: Param, array: Any, device: int, stream: Any) -> DeviceArray:
    try:
        # The protocol calls the legacy default stream 1.
        exported = dlpack.export(array, stream.ptr or 1)
    except (BufferError, dlpack.DlpackError) as error:
        raise ArgumentError(
            f"parameter {param.name} is {named_type(array)} that cannot be used: {error}"
        ) from error
    dtype = np.dtype(param.dtype)
    if exported.shape != param.shape or exported.dtype != dtype:
        raise ArgumentError(
            f"parameter {param.name} is {exported.dtype}{list(exported.shape)}: expected "
            f"{param.dtype}{list(param.shape)}"
        )
    if exported.device[1] != device:
        raise ArgumentError(
            f"parameter {param.name} is on GPU {exported.device[1]}, and the kernel on {device}"
        )
    if not exported.is_dense:
        raise ArgumentError(f"parameter {param.name} is not contiguous: pass a dense copy of it")
    if param.is_output and not exported.is_writable:
        raise ArgumentError(f"parameter {param.name} is written, and the array is read-only")
    if exported.address % GLOBAL_ALIGNMENT:
        # A misaligned access would end the use of the GPU by this process.
        raise ArgumentError(
            f"parameter {param.name} begins at an address that is no multiple of "
            f"{GLOBAL_ALIGNMENT} bytes: pass a copy of it"
        )
    size_bytes = math.prod(exported.shape) * dtype.itemsize
    return DeviceArray(exported.address, size_bytes, exported.capsule)
