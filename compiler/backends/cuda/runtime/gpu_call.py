"""Calls of kernels on a GPU: cubins that CuPy loads, and launches on a stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import cupy
import numpy as np
from cupy_backends.cuda.api import driver

from compiler.backends.cuda.device_call import DeviceCall
from compiler.backends.cuda.device_code import DeviceCode, KernelLaunch
from compiler.backends.cuda.runtime.active_gpu import active_gpu
from compiler.backends.cuda.runtime.device_arrays import DeviceArray, allocate, device_arrays
from compiler.backends.cuda.runtime.host_gpus import keep_nvml, state_of
from compiler.backends.cuda.runtime.stream_clock import StreamClock
from compiler.backends.cuda.runtime.tensor_maps import encode_tensor_map
from compiler.backends.cuda.runtime.timing_plan import at_full_clock, conditions
from compiler.executor.arrays import ArrayCheck, check_overlaps
from compiler.executor.error import ArgumentError
from compiler.executor.named_type import named_type
from compiler.runtime.sample_calls import TimedSamples

# A kernel may use more dynamic shared memory only if its function is set to do so.
_DEFAULT_SHARED_BYTES = 48 << 10


class GpuKernels:
    """The kernels of an artifact, loaded on one GPU.

    Args:
        code: The code of the artifact.
        device: The number of the GPU for CUDA in this process.
        uuid: The identity of the GPU, by which NVML reports its state.
    """

    def __init__(self, code: DeviceCode, device: int, uuid: str) -> None:
        self.code = code
        self.device = device
        self.uuid = uuid
        with self.active():
            self._module = cupy.cuda.function.Module()
            self._module.load(code.cubin)
            self._functions = {
                launch.kernel: self._function(launch) for launch in code.plan.launches
            }

    def active(self) -> AbstractContextManager[None]:
        """Make the GPU the current one; see `active_gpu`."""
        return active_gpu(self.device)

    def bind(
        self,
        checks: Sequence[ArrayCheck],
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
            # CuPy passes the contents of an array of NumPy by value.
            *(encode_tensor_map(each, arrays[each.array].address) for each in launch.tensors),
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
        raise ArgumentError(f"stream is {named_type(stream)}: expected a stream of CUDA")
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
        self._copied: list[list[DeviceArray]] = []
        self._on_host = [array for array in arrays if array.host is not None]
        self._results = [arrays[i] for i in written if arrays[i].host is not None]
        workspaces = (workspace.size_bytes for workspace in kernels.code.plan.workspaces)
        with kernels.active():
            self._all = [*arrays, *map(allocate, workspaces)]
            self._launches = kernels.launches(self._all)
            set_bytes = sum(array.size_bytes for array in self._all)
            self._clock = StreamClock(self._launch, set_bytes, self._copies)

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
        """Return the mean seconds a run of the kernels, without copies; see `StreamClock`.

        Raises:
            DeviceFaultError: If a kernel made the device unusable for this process.
        """
        with self._timing():
            return self._clock.mean_secs(calls)

    def event_secs(self, calls: int) -> float:
        """Return the mean seconds of runs that are timed by events, without copies.

        Raises:
            DeviceFaultError: If a kernel made the device unusable for this process.
        """
        with self._timing():
            return self._clock.event_secs(calls)

    def warm_secs(self, calls: int) -> float:
        """Return the mean seconds of runs in a row.

        Raises:
            DeviceFaultError: If a kernel made the device unusable for this process.
        """
        with self._timing():
            return self._clock.warm_secs(calls)

    def sample(self, incumbent_secs: float | None) -> TimedSamples:
        """Return samples of the kernels, and the state of the GPU afterwards.

        Samples of a GPU that is too hot, or has too little power, are taken again.

        Raises:
            DeviceFaultError: If a kernel made the device unusable for this process.
        """
        keep_nvml()
        with self._timing():
            secs, state = at_full_clock(
                lambda: self._clock.samples(incumbent_secs),
                lambda: state_of(self._kernels.uuid),
                time.sleep,
            )
        return TimedSamples(secs, conditions(self._clock.l2, state))

    @contextmanager
    def _timing(self) -> Iterator[None]:
        """Upload arrays of the host; download the results after the body, which times runs."""
        with self._kernels.active():
            with self._stream:
                self._upload()
            self._stream.synchronize()  # the clock has a stream of its own
            yield
            with self._stream:
                self._download()

    def _copies(self, num: int) -> list[Callable[[], None]]:
        """Return functions that run the kernels on copies of all arrays."""
        return [self._copy() for _ in range(num)]

    def _copy(self) -> Callable[[], None]:
        arrays = [array.copy_on_gpu() for array in self._all]
        self._copied.append(arrays)  # a launch has only addresses
        launches = self._kernels.launches(arrays)

        def launch_all() -> None:
            for launch in launches:
                launch()

        return launch_all

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
