"""Functions of GPU libraries, timed as kernels are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy

from compiler.backends.cuda.device_call import DeviceCall
from compiler.backends.cuda.runtime.active_gpu import active_gpu
from compiler.backends.cuda.runtime.stream_clock import StreamClock
from compiler.runtime.sample_calls import TimedSamples


def gpu_clock(run: Callable[[], object], num_threads: int, calls: int) -> float:
    """Return the mean seconds a call of a `GpuFunction`."""
    del num_threads  # of the host
    assert isinstance(run, GpuFunction), "a call of another device"
    return run.event_secs(calls)


class GpuFunction(DeviceCall):
    """Runs a function that queues work on the current stream of CuPy.

    Its launches are timed by events, also short ones: a library may allocate memory, which a graph
    can't capture.

    Args:
        function: The function.
        device: The number of the GPU for CUDA in this process.
    """

    def __init__(self, function: Callable[[], Any], device: int) -> None:
        self._function = function
        self._device = device
        with active_gpu(device):
            self._clock = StreamClock(function, set_bytes=0)

    def __call__(self) -> Any:
        """Run the function once, and return its result when it is there.

        Raises:
            DeviceFaultError: If the device is not usable for this process.
        """
        with active_gpu(self._device):
            result = self._function()
            cupy.cuda.runtime.deviceSynchronize()
        return result

    def mean_secs(self, calls: int) -> float:
        """Return the mean seconds a run; see `StreamClock`.

        Raises:
            DeviceFaultError: If the device is not usable for this process.
        """
        with active_gpu(self._device):
            cupy.cuda.runtime.deviceSynchronize()
            return self._clock.mean_secs(calls)

    def event_secs(self, calls: int) -> float:
        """Return the mean seconds of runs that are timed by events.

        Raises:
            DeviceFaultError: If the device is not usable for this process.
        """
        with active_gpu(self._device):
            cupy.cuda.runtime.deviceSynchronize()
            return self._clock.event_secs(calls)

    def warm_secs(self, calls: int) -> float:
        """Return the mean seconds of runs in a row.

        Raises:
            DeviceFaultError: If the device is not usable for this process.
        """
        with active_gpu(self._device):
            cupy.cuda.runtime.deviceSynchronize()
            return self._clock.warm_secs(calls)

    def sample(self, incumbent_secs: float | None) -> TimedSamples:
        """Return samples of the function.

        Raises:
            DeviceFaultError: If the device is not usable for this process.
        """
        with active_gpu(self._device):
            cupy.cuda.runtime.deviceSynchronize()
            return TimedSamples(self._clock.samples(incumbent_secs))
