"""Calls of kernels on a GPU: cubins that CuPy loads, and launches on a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import cupy
import numpy as np
from cupy_backends.cuda.api import driver

from compiler.backends.cuda.device_call import DeviceCall
from compiler.backends.cuda.device_code import DeviceCode, KernelLaunch
from compiler.backends.cuda.runtime.device_arrays import DeviceArray, allocate, device_arrays
from compiler.backends.error import DeviceFaultError
from compiler.ir.core.dtypes import size_bytes
from compiler.runtime.param_check import ArgumentError, ParamCheck, check_overlaps

# A kernel may use more dynamic shared memory only if its function is set to do so.
_DEFAULT_SHARED_BYTES = 48 << 10
# Larger than the L2 cache of each GPU in `compiler.target.gpus` (128 MiB at most).
_FLUSH_BYTES = 256 << 20
# After these no call of the process succeeds on the device: "the process must be terminated and
# relaunched", as the reference of the CUDA runtime says of each.
_STICKY = {
    700: "illegal address",
    702: "launch timeout",
    710: "assertion",
    714: "hardware stack error",
    715: "illegal instruction",
    716: "misaligned address",
    717: "invalid address space",
    718: "invalid program counter",
    719: "launch failure",
}


class GpuKernels:
    """The kernels of an artifact, loaded on one GPU."""

    def __init__(self, code: DeviceCode, device: int) -> None:
        self.code = code
        self.device = device
        with self.active():
            self._module = cupy.cuda.function.Module()
            self._module.load(code.cubin)
            self._functions = {
                launch.kernel: self._function(launch) for launch in code.plan.launches
            }

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the GPU the current one; translate the errors after which it can't be used.

        Raises:
            DeviceFaultError: If a kernel made the device unusable for this process.
        """
        try:
            with cupy.cuda.Device(self.device):
                yield
        except (cupy.cuda.runtime.CUDARuntimeError, driver.CUDADriverError) as error:
            if error.status in _STICKY:
                raise DeviceFaultError(f"{_STICKY[error.status]}: {error}") from error
            raise

    def bind(
        self,
        checks: Sequence[ParamCheck],
        arrays: Sequence[Any],
        outputs: Sequence[int],
        stream: Any,
    ) -> GpuCall:
        """Return a call of the kernels on a caller's arrays.

        Args:
            checks: One for each parameter.
            arrays: One for each parameter; see `device_arrays`.
            outputs: The positions of the parameters that the kernel writes.
            stream: A stream of CuPy or PyTorch, the address of one, or None for the current one.

        Raises:
            ArgumentError: If an array does not fit its parameter, an output overlaps another array,
                or the stream is none.
            DeviceFaultError: If a kernel made the device unusable for this process.
        """
        with self.active():
            cupy_stream = _stream(stream)
            located = device_arrays(checks, arrays, self.device, cupy_stream)
        check_overlaps(checks, [array.caller_address for array in located], outputs)
        return GpuCall(self, located, outputs, cupy_stream)

    def launches(self, arrays: Sequence[DeviceArray]) -> list[Callable[[], None]]:
        """Return functions that launch the kernels on the current stream, in their order.

        Args:
            arrays: The memory of the parameters, followed by that of the workspaces.
        """
        return [self._launch(launch, arrays) for launch in self.code.plan.launches]

    def _function(self, launch: KernelLaunch) -> Any:
        function = self._module.get_function(launch.kernel)
        if launch.shared_bytes > _DEFAULT_SHARED_BYTES:
            attribute = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.funcSetAttribute(function.ptr, attribute, launch.shared_bytes)
        return function

    def _launch(self, launch: KernelLaunch, arrays: Sequence[DeviceArray]) -> Callable[[], None]:
        function = self._functions[launch.kernel]
        arguments = (
            *(np.uintp(arrays[position].address) for position in launch.arguments),
            *(np.dtype(dtype).type(value) for dtype, value in launch.scalars),
        )
        grid, block, shared = launch.grid, launch.block, launch.shared_bytes
        return lambda: function(grid, block, arguments, shared_mem=shared)


def _stream(stream: Any) -> Any:
    if stream is None:
        return cupy.cuda.get_current_stream()
    if isinstance(stream, cupy.cuda.Stream):
        return stream
    address = getattr(stream, "cuda_stream", stream)  # PyTorch's streams have that attribute
    if not isinstance(address, int):
        raise ArgumentError(f"stream is a {type(stream).__name__}: expected a stream of CUDA")
    return cupy.cuda.ExternalStream(address)


class GpuCall(DeviceCall):
    """Runs a kernel on arrays; it is what `Module.bind` returns.

    Arrays of the host are copied to the GPU before each run, and those that are written back after
    it; the call then waits for the copies. Otherwise a run returns as soon as it is queued.

    Args:
        kernels: The kernels.
        arrays: The memory of the parameters.
        written: The positions of the parameters that the kernel writes.
        stream: The stream of CuPy to run on.
    """

    def __init__(
        self,
        kernels: GpuKernels,
        arrays: Sequence[DeviceArray],
        written: Sequence[int],
        stream: Any,
    ) -> None:
        self._kernels = kernels
        self._stream = stream
        self._arrays = arrays
        self._on_host = [array for array in arrays if array.host is not None]
        self._results = [arrays[i] for i in written if arrays[i].host is not None]
        with kernels.active():
            workspaces = [
                allocate(math.prod(w.shape) * size_bytes(w.dtype))
                for w in kernels.code.plan.workspaces
            ]
        self._workspaces = workspaces
        self._launches = kernels.launches([*arrays, *workspaces])

    def __call__(self) -> None:
        """Run the kernel once on its stream.

        Raises:
            DeviceFaultError: If a kernel made the device unusable for this process.
        """
        with self._kernels.active(), self._stream:
            self._upload()
            self._launch()
            self._download()

    def mean_secs(self, calls: int) -> float:
        """Return the mean seconds a run of the kernels, without copies, over `calls` runs.

        The L2 cache is flushed before each run, outside of the two events that time it, because a
        kernel of a model finds its inputs in memory more often than in the cache.

        Raises:
            DeviceFaultError: If a kernel made the device unusable for this process.
        """
        with self._kernels.active(), self._stream:
            self._upload()
            flush = _flush_buffer(self._kernels.device)
            events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(calls)]
            for start, end in events:
                flush.memset_async(0, _FLUSH_BYTES, self._stream)
                start.record(self._stream)
                self._launch()
                end.record(self._stream)
            self._stream.synchronize()
            millis = sum(cupy.cuda.get_elapsed_time(start, end) for start, end in events)
            self._download()
        return float(millis) / 1000 / calls

    def _upload(self) -> None:
        for array in self._on_host:
            array.upload(self._stream)

    def _download(self) -> None:
        for array in self._results:
            array.download(self._stream)
        if self._on_host:
            self._stream.synchronize()

    def _launch(self) -> None:
        for launch in self._launches:
            launch()


@cache
def _flush_buffer(device: int) -> Any:
    """Return memory on the current device, which is `device`, larger than its L2 cache."""
    del device  # the key of the cache
    return cupy.cuda.alloc(_FLUSH_BYTES)
