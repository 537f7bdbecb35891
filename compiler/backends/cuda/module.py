"""Kernels for GPUs as modules: on an emulated GPU they run in the emulator, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compiler.backends.cuda.device_code import DeviceCode
from compiler.backends.cuda.emulated_call import EmulatedCall
from compiler.backends.module import Module
from compiler.runtime.artifact import Artifact, ArtifactError
from compiler.runtime.param_check import ArgumentError, ParamCheck
from compiler.target.cuda import CudaTarget


class CudaModule(Module):
    """A kernel for a GPU; see `Module`.

    Raises:
        ArtifactError: If the artifact is damaged, or this host has no such GPU.
    """

    languages = ("cu", "ptx")

    def __init__(
        self, artifact: Artifact, constants: Sequence[Any] = (), source: str | None = None
    ) -> None:
        super().__init__(artifact, constants, source)
        self._target = CudaTarget(artifact.target)
        if not self._target.is_emulated:
            raise ArtifactError(
                f"{artifact.name} was built for {artifact.target}, and this host has no GPU that "
                f"runs it: run it on such a host, build it for '{artifact.target} -emulated' to "
                "run it on the CPU, or look at its code with lw.inspect"
            )
        self._code: DeviceCode | None = DeviceCode.from_bytes(artifact.code)
        self._checks = tuple(ParamCheck(param) for param in self.params)

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        """Run the kernel once; see `Module`.

        Raises:
            ArgumentError: If the arrays do not fit the parameters.
            EmulationError: If the emulator finds a fault, such as a race.
        """
        self.bind(*arrays, num_threads=num_threads)()

    def bind(self, *arrays: Any, num_threads: int | None = None) -> Callable[[], None]:
        """Check the arrays once, and return a function that runs the kernel on them.

        Raises:
            ArgumentError: As a call does.
        """
        if self._code is None:
            raise ArgumentError(f"{self.artifact.name} was closed")
        if num_threads is not None and num_threads < 1:
            raise ArgumentError(f"num_threads is {num_threads}: expected 1 or more")
        if len(arrays) != len(self.params):
            names = ", ".join(param.name for param in self.params)
            raise ArgumentError(
                f"{self.artifact.name} takes {len(self.params)} arrays ({names}): got {len(arrays)}"
            )
        checked = list(map(ParamCheck.array, self._checks, arrays))
        return EmulatedCall(self._code, (*checked, *self._constants), self._target)

    def close(self) -> None:
        """Unload the code as soon as no call is in progress; a second call does nothing."""
        self._code = None
