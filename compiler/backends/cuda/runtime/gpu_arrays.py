"""Arrays on a GPU to run candidates on; their results are compared on the host."""

from __future__ import annotations

from typing import Any

import cupy

from compiler.backends.cuda.runtime.device_arrays import DeviceArray, copy_of
from compiler.backends.host_arrays import HostArrays


class GpuArrays(HostArrays):
    """Arrays on a GPU, each with an array of the host that it is copied from and to.

    The device takes part in copies only: the comparison is that of `HostArrays`.
    """

    _on_gpu: list[DeviceArray] | None = None

    def again(self) -> GpuArrays:
        """Return the same case with other arrays to run on."""
        return GpuArrays(self.func, self._inputs, self._expected, self._growth)

    def fresh_arrays(self) -> list[Any]:
        """Return one array a parameter: inputs with their values, outputs poisoned."""
        host = super().fresh_arrays()
        if self._on_gpu is None:
            self._on_gpu = [copy_of(array) for array in host]
        stream = cupy.cuda.get_current_stream()
        for array in self._on_gpu:
            array.upload(stream)
        stream.synchronize()
        return list(self._on_gpu)

    def check(self) -> float:
        """Compare the arrays with the oracle's after one run; return the largest error.

        Raises:
            WrongResultError: If they differ by more than rounding explains.
        """
        self._download()
        return super().check()

    def check_again(self) -> None:
        """Compare the outputs once more after many runs.

        Raises:
            WrongResultError: If a later run went wrong.
        """
        self._download()
        super().check_again()

    def _download(self) -> None:
        stream = cupy.cuda.get_current_stream()
        for array in self._on_gpu or ():
            array.download(stream)
        stream.synchronize()
