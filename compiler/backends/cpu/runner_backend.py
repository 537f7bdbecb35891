"""The backend of a CPU behind a runner: kernels are built here, and run and timed there.

A process that works for such a device provides it instead of that of this host's CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from compiler.backends.backend import BACKENDS
from compiler.backends.cpu.backend import CpuBackend
from compiler.backends.error import DeviceFaultError, KernelFaultError
from compiler.backends.host_arrays import HostArrays
from compiler.backends.module import Module
from compiler.executor.artifact import Artifact
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.error_growth import CheckCase
from compiler.remote.arrays import RemoteArray
from compiler.remote.error import EmulatedDeviceError, RemoteError
from compiler.remote.module import RemoteModule
from compiler.remote.remote import Remote
from compiler.target.target import Target

Array = NDArray[Any]


class RunnerBackend(CpuBackend):
    """Builds kernels as `CpuBackend` does, and runs them on a device.

    Args:
        remote: The session with the device.
        target: The target of the device.
    """

    runs_libraries = False

    def __init__(self, remote: Remote, target: Target) -> None:
        self.remote = remote
        self._target = target

    @property
    def module_class(self) -> type[Module]:  # type: ignore[override]
        """Return the class of modules that are loaded on the device."""
        return RunnerModule

    def host_targets(self) -> Sequence[Target]:
        """Return the CPU of the device."""
        return (self._target,)

    def arrays(self, func: PrimFunc, target: Target, case: CheckCase) -> RunnerArrays:
        """Return arrays of the device, with copies here that are compared."""
        del target
        return RunnerArrays(self.remote, func, case)

    def time_calls(self, run: Callable[[], object], num_threads: int, calls: int) -> float:
        """Return the mean seconds a call, by the clock of the device."""
        assert isinstance(run, RunnerCall), run
        return run.mean_secs(calls)

    def peak_flops(self, target: Target, num_cores: int) -> float | None:  # type: ignore[override]
        """Return None: the peak of the device is not measured."""
        del target, num_cores
        return None


class RunnerArrays(HostArrays):
    """The arrays of a workload on a device.

    Inputs are written once, and are read-only from then on: a kernel that writes into one crashes.
    """

    def __init__(self, remote: Remote, func: PrimFunc, case: CheckCase) -> None:
        super().__init__(func, case)
        self._remote = remote
        self._remote_arrays: dict[str, RemoteArray] = {}

    def again(self) -> RunnerArrays:
        """Return the same case with other arrays to run on."""
        return RunnerArrays(self._remote, self.func, self._case)

    def fresh_arrays(self) -> list[Any]:
        """Return one array of the device for each parameter."""
        inputs = self._case.inputs.keys() - self._case.expected.keys()
        arrays = dict(zip(self._arrays, super().fresh_arrays(), strict=True))
        for name, array in arrays.items():
            if name not in self._remote_arrays:
                remote = self._remote.empty(array.shape, array.dtype.name).copyfrom(array)
                self._remote_arrays[name] = remote
                if name in inputs:
                    remote.session.protect(remote.region)
            elif name not in inputs:
                self._remote_arrays[name].copyfrom(array)
        return [self._remote_arrays[name] for name in arrays]

    def check(self) -> float:
        """Compare the outputs with the oracle's after one run; return the largest error."""
        self._fetch()
        return super().check()

    def check_again(self) -> None:
        """Compare the outputs once more after many runs."""
        self._fetch()
        super().check_again()

    def _fetch(self) -> None:
        with _faults():
            for name in self._case.expected:
                self._arrays[name][...] = self._remote_arrays[name].numpy()


class RunnerModule(Module):
    """A kernel on a device, with the methods of `Module`."""

    def __init__(
        self,
        artifact: Artifact,
        const_params: Mapping[str, Any] | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(artifact, const_params, source)
        backend = BACKENDS.find(artifact.backend)
        assert isinstance(backend, RunnerBackend), backend
        with _faults():
            constants = {n: _on_host(array) for n, array in (const_params or {}).items()}
            self._module = RemoteModule(backend.remote, artifact, constants)
        self.num_threads = self._module.num_threads

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        """Run the kernel on arrays of the device."""
        self.bind(*arrays, num_threads=num_threads)()

    def bind(self, *arrays: Any, num_threads: int | None = None) -> RunnerCall:
        """Return a function that runs the kernel on arrays of the device."""
        del num_threads
        return RunnerCall(self._module, arrays)

    def close(self) -> None:
        """Do nothing: the memory of the kernel is given back with this object."""


class RunnerCall:
    """A kernel of a device with its arrays."""

    def __init__(self, module: RemoteModule, arrays: Sequence[RemoteArray]) -> None:
        self._module = module
        self._arrays = arrays

    def __call__(self) -> None:
        """Run the kernel once."""
        with _faults():
            self._module(*self._arrays)

    def mean_secs(self, calls: int) -> float:
        """Return the mean seconds a call."""
        with _faults():
            return self._module.mean_secs(self._arrays, calls)


def _on_host(array: Any) -> Any:
    return array.numpy() if isinstance(array, RemoteArray) else array


@contextmanager
def _faults() -> Iterator[None]:
    """Convert the errors of a device to those of kernels."""
    try:
        yield
    except EmulatedDeviceError as error:
        raise KernelFaultError(str(error)) from error
    except RemoteError as error:
        # The session may be over: another process of this host begins a new one.
        raise DeviceFaultError(str(error)) from error
