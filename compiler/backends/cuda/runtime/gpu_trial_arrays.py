"""Arrays of a workload on a GPU, on which candidates run, and their comparison there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cupy
import numpy as np

from compiler.backends.cuda.runtime.active_gpu import active_gpu
from compiler.backends.cuda.runtime.compare import DeviceCase
from compiler.backends.cuda.runtime.device_arrays import DeviceArray
from compiler.backends.trial_arrays import TrialArrays, WrongResultError
from compiler.ir.core.nodes import Buffer, static_shape


class GpuTrialArrays(TrialArrays):
    """Arrays on a GPU; see `TrialArrays`. The case is uploaded once, whatever runs on it.

    Args:
        case: The inputs and the expected outputs, on the GPU.
        device: The number of the GPU for CUDA in this process.
    """

    def __init__(self, case: DeviceCase, device: int) -> None:
        self.func = case.func
        self.is_spot_checked = case.is_spot_checked
        self._case = case
        self._device = device
        with active_gpu(device):
            self._arrays = case.new_arrays()
        self._first: Mapping[str, Any] = {}

    def again(self) -> GpuTrialArrays:
        """Return the same case with other arrays to run on."""
        return GpuTrialArrays(self._case, self._device)

    def fresh_arrays(self) -> list[Any]:
        """Return one array a parameter: inputs with their values, outputs poisoned."""
        with active_gpu(self._device):
            self._case.fill(self._arrays)
            cupy.cuda.runtime.deviceSynchronize()  # kernels may run on another stream
        return [
            _device_array(buffer, raw)
            for buffer, raw in zip(self.func.buffers, self._arrays.values(), strict=True)
        ]

    def check(self) -> float:
        """Compare the arrays with the oracle's after one run; return the largest error.

        Raises:
            WrongResultError: If they differ by more than rounding explains.
            DeviceFaultError: If a kernel made the device unusable for this process.
        """
        with active_gpu(self._device):
            cupy.cuda.runtime.deviceSynchronize()
            self._first = self._case.outputs_of(self._arrays)
            return self._case.check(self._arrays)

    def check_again(self) -> None:
        """Compare the outputs once more after many runs.

        Raises:
            WrongResultError: If a later run went wrong, as the race of a kernel may.
            DeviceFaultError: If a kernel made the device unusable for this process.
        """
        if self._case.is_updated_in_place:
            return  # each run starts from the result of the run before
        with active_gpu(self._device):
            cupy.cuda.runtime.deviceSynchronize()
            if self._case.are_outputs(self._arrays, self._first):
                return
            try:
                self._case.check(self._arrays)
            except WrongResultError as error:
                raise WrongResultError(f"a later run differs from the first: {error}") from error

    def check_result(self, result: Any) -> None:
        """Compare the returned result of a library, for the only output, with the oracle's.

        Args:
            result: An array of the GPU in any library with DLPack, as flat bytes.

        Raises:
            WrongResultError: If it is another array, or the library wrote to an input.
        """
        with active_gpu(self._device):
            output = next(reversed(self._arrays.values()))
            raw = cupy.from_dlpack(result)
            if raw.dtype != np.uint8 or raw.shape != output.shape:
                actual = f"{raw.dtype}{list(raw.shape)}"
                raise WrongResultError(f"{actual} instead of {output.size} bytes")
            output[:] = raw
        self.check()


def _device_array(buffer: Buffer, raw: Any) -> DeviceArray:
    shape = static_shape(buffer)
    return DeviceArray(raw.data.ptr, raw.nbytes, raw.data, dtype=buffer.dtype, shape=shape)
