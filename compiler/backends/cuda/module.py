"""Kernels for GPUs as modules: they run on a GPU of this host, or in the emulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compiler.backends.cuda.device_code import DeviceCode
from compiler.backends.cuda.emulated_call import EmulatedCall
from compiler.backends.cuda.runtime.load import load_on_gpu
from compiler.backends.module import Module
from compiler.executor.arrays import ArrayCheck, check_overlaps
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArgumentError
from compiler.executor.kernel import wrong_number
from compiler.executor.memory import address_of
from compiler.target.cuda import CudaTarget


class CudaModule(Module):
    """A kernel for a GPU; see `Module`.

    It takes arrays of the GPU, of CuPy, PyTorch or another library with DLPack; such a call returns
    as soon as it is queued. It takes NumPy arrays, too, which are copied to the GPU and back. A
    kernel for an emulated GPU takes arrays of the host.

    Raises:
        ArtifactError: If the artifact is damaged, or this host has no such GPU.
    """

    languages = ("cu", "ptx")

    def __init__(
        self,
        artifact: Artifact,
        const_params: Mapping[str, Any] | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(artifact, const_params, source)
        self._target = CudaTarget(artifact.target)
        self._code: DeviceCode | None = DeviceCode.from_bytes(artifact.code)
        self._code.plan.require_arrays(len(artifact.params))
        self._kernels = None if self._target.is_emulated else load_on_gpu(artifact, self._code)
        self._checks = tuple(ArrayCheck(param) for param in artifact.params)
        self._outputs = [position for position, param in enumerate(self.params) if param.is_output]

    def __call__(self, *arrays: Any, num_threads: int | None = None, stream: Any = None) -> None:
        """Run the kernel once; see `Module`.

        Args:
            arrays: One a parameter.
            num_threads: The number of host threads, of which a kernel for a GPU uses one.
            stream: The stream to run on: one of CuPy or PyTorch, or the address of a CUDA stream;
                by default the current stream of CuPy.

        Raises:
            ArgumentError: If the arrays do not fit the parameters.
            DeviceFaultError: If the kernel made the GPU unusable for this process.
            EmulationError: If the emulator finds a fault, such as a race.
        """
        self.bind(*arrays, num_threads=num_threads, stream=stream)()

    def bind(
        self, *arrays: Any, num_threads: int | None = None, stream: Any = None
    ) -> Callable[[], None]:
        """Check the arrays once, and return a function that runs the kernel on them.

        Raises:
            ArgumentError: As a call does.
        """
        if self._code is None:
            raise ArgumentError(f"{self.artifact.name} was closed")
        if num_threads is not None and num_threads < 1:
            raise ArgumentError(f"num_threads is {num_threads}: expected 1 or more")
        if len(arrays) != len(self.params):
            raise wrong_number(self.artifact, len(arrays))
        if self._kernels is not None:
            return self._kernels.bind(self._checks, arrays, self._outputs, stream)
        if stream is not None:
            raise ArgumentError(f"{self.artifact.name} runs on an emulated GPU, without streams")
        checked = list(map(ArrayCheck.array, self._checks, arrays))
        check_overlaps(self._checks, list(map(address_of, checked)), self._outputs)
        return EmulatedCall(self._code, checked, self._target)

    def close(self) -> None:
        """Unload the code as soon as no call is in progress; a second call does nothing."""
        self._code = self._kernels = None
