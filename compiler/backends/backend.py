"""The contract of backends: build, load and time kernels for one kind of target."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.backends.error import BuildError
from compiler.backends.host_arrays import HostArrays
from compiler.backends.host_device import DEVICE_VARIABLE, HostDevice
from compiler.backends.inspection import Emulation
from compiler.backends.trial_arrays import TrialArrays
from compiler.executor.artifact import Artifact
from compiler.executor.cores import available_cores
from compiler.executor.extents import Extent
from compiler.executor.params import Param, Symbol
from compiler.ir.core.nodes import Buffer, Stmt
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.error_growth import CheckCase
from compiler.runtime.resources import KernelResources
from compiler.runtime.sample_calls import TimedSamples, sample_secs
from compiler.runtime.time_calls import Clock, time_calls
from compiler.target.registry import KindRegistry
from compiler.target.target import Target

if TYPE_CHECKING:
    from compiler.backends.module import Module  # it imports `backend_of` from this module


@dataclass(frozen=True, slots=True)
class SourceCode:
    """The finished source code of a kernel, and the resources that a call requires.

    Attributes:
        text: The code, in the language of the backend.
        workspace_bytes: The memory that a call requires, enough for `num_threads` threads. It may
            depend on symbolic variables.
        num_threads: The maximum number of host threads that a call uses.
        symbols: The symbolic extents, whose values the kernel takes after its parameters.
    """

    text: str
    workspace_bytes: Extent = 0
    num_threads: int = 1
    symbols: tuple[Symbol, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitSource:
    """The source code of a kernel with constants; see `Artifact` for the order of parameters.

    Attributes:
        packer: Prepares the constants, once.
        kernel: Runs in each call.
    """

    packer: SourceCode
    packer_params: tuple[Param, ...]
    kernel: SourceCode
    kernel_params: tuple[Param, ...]


class Backend(ABC):
    """All steps for one kind of target, from a scheduled program to its measurement.

    The driver, the modules and the workers find a backend by the kind of a target, or by the name
    in an artifact. Programs are verified before a backend gets them. No build changes the state of
    a backend; several threads use it at once.
    """

    kind: str
    """The kind of its targets: its name in the registry and in artifacts."""

    module_class: type[Module]
    """The class of modules that loads its artifacts into a process."""

    source_language: str
    """The language of its source code, for people."""

    assembly_language: str = "Assembly"
    """The language of `assembly`, for people."""

    runs_libraries: bool = True
    """Whether functions of libraries run where its kernels run, so that they can be compared."""

    packs_constants: bool = False
    """Whether constant parameters are passed once; otherwise they are passed in each call."""

    calls_functions: bool = False
    """Whether its kernels run in this process, between calls of registered functions."""

    @abstractmethod
    def toolchain(self) -> str:
        """Return the code generator's name and version: a measurement is valid for one only."""

    @abstractmethod
    def host_targets(self) -> Sequence[Target]:
        """Return the targets of this host on which kernels can run; empty without a device."""

    def host_devices(self) -> Sequence[HostDevice]:
        """Return the devices of this host: by default one for each target of the host."""
        return [
            HostDevice(target, target.label.rpartition("/")[2]) for target in self.host_targets()
        ]

    def require_host(self, target: Target) -> None:
        """Require that this host can build kernels for a target, and run them.

        Raises:
            TargetError: If it can't, with what to do.
        """
        del target

    def open_device(self, device: HostDevice) -> None:
        """Prepare this process for its first kernel on a device, such as by making a context."""
        del device

    def device_state(self, device: HostDevice) -> dict[str, Any]:
        """Return the current clock, power and temperature of a device as JSON-able facts.

        They are empty for a device that does not report them, such as an emulated one.
        """
        del device
        return {}

    @abstractmethod
    def lower(self, func: PrimFunc, target: Target) -> Stmt:
        """Turn a scheduled program into one without blocks, ready for code generation.

        Raises:
            LoweringError: If that is not possible.
        """

    @abstractmethod
    def emit(self, func: PrimFunc, target: Target) -> SourceCode:
        """Lower a program, and generate its source code.

        Raises:
            BuildError: If the program can't be lowered, or the language can't express it.
        """

    @abstractmethod
    def compile(
        self, name: str, params: tuple[Param, ...], source: SourceCode, target: Target
    ) -> Artifact:
        """Compile source code.

        Args:
            name: The name of the kernel.
            params: The arrays that it takes, in order.

        Raises:
            BuildError: If the compiler rejects the code.
        """

    def assembly(self, source: str, target: Target) -> str:
        """Return the assembly of source code; empty if the backend has none to show."""
        del source, target
        return ""

    def resources(self, artifact: Artifact) -> KernelResources | None:
        """Return what a kernel of this backend uses of its device; None for a CPU's."""
        del artifact
        return None

    def bank_conflicts(self, run: Callable[[], object]) -> float | None:
        """Return the bank conflicts of the last run of a bound kernel; None if they are unknown.

        That is `KernelResources.bank_conflicts`.
        """
        del run
        return None

    def emulate(self, func: PrimFunc, artifact: Artifact) -> Emulation | None:
        """Run the kernel of a program in an emulator of its device; None without an emulator."""
        del func, artifact
        return None

    def emit_with_constants(
        self,
        func: PrimFunc,
        constants: Collection[Buffer],
        target: Target,
        packer_target: Target | None = None,
    ) -> SplitSource:
        """Lower a program with constant parameters, and generate the source code of both parts.

        Only a backend that `packs_constants` defines it. Copies that the schedule makes of
        constants, and all else that follows from constants alone, are made by the packer.

        Args:
            func: The program.
            constants: Its constant parameters.
            target: The machine that the kernel runs on.
            packer_target: The machine that the packer runs on, by default the same one.

        Raises:
            BuildError: As `emit` does.
        """
        del constants, packer_target
        raise BuildError(f"{func.name}: no constants for {target.name!r}", "constants")

    def time_calls(self, run: Callable[[], object], num_threads: int, calls: int) -> float:
        """Return the mean seconds a call, over `calls` calls of a bound kernel."""
        return time_calls(run, num_threads, calls)

    def clock_of_library(self, clock: Clock, operands: Sequence[Any], target: Target) -> Clock:
        """Return the clock of a function of a library that is timed beside kernels of a target.

        Args:
            clock: The clock that the library requires.
            operands: The arrays that the function reads.
            target: The target of the kernels.
        """
        del operands, target
        return clock

    def time_beside_library(self, run: Callable[[], object], num_threads: int, calls: int) -> float:
        """Return the mean seconds a call of a bound kernel, timed as functions of libraries are."""
        return self.time_calls(run, num_threads, calls)

    def reserves_address_space(self, target: Target) -> bool:
        """Return whether the driver of the device reserves far more address space than it uses."""
        del target
        return False

    def sample(
        self,
        run: Callable[[], None],
        num_threads: int,
        first_secs: float,
        incumbent_secs: float | None,
    ) -> TimedSamples:
        """Return samples of a bound kernel that ran once; few if it is slow, enough if it may win.

        Args:
            first_secs: The first run, as `time_calls` measured it.
            incumbent_secs: The best known time of the workload.
        """
        return TimedSamples(
            sample_secs(run, num_threads, first_secs, incumbent_secs, self.time_calls)
        )

    def arrays(
        self,
        func: PrimFunc,
        target: Target,
        case: CheckCase,
    ) -> TrialArrays:
        """Return arrays to run candidates on, which compare the results with the oracle's.

        Args:
            target: The target of the candidates.
            case: The inputs and what is expected of the outputs, in the memory of the host.
        """
        del target  # its kernels run on arrays of the host
        return HostArrays(func, case)

    def peak_flops(self, target: Target, num_cores: int) -> float | None:
        """Measure the peak float32 rate of a target, in FLOP/s; None if it is unknown."""
        del target, num_cores
        return None

    def peak_share(self, target: Target, dtype: str) -> float | None:
        """Return the peak rate of a type as a multiple of float32's; None if it is unknown.

        A vector holds half as many numbers of twice the size.

        Args:
            target: The target.
            dtype: The type of the numbers that are multiplied; "int8" also for unsigned bytes.
        """
        del target
        return {"float32": 1.0, "float64": 0.5}.get(dtype)


BACKENDS: KindRegistry[Backend] = KindRegistry("backend")
"""The backend of each kind; `compiler/backends/__init__.py` provides those of the project."""


def backend_of(target: Target) -> Backend:
    """Return the backend that builds kernels for a target.

    Raises:
        UnknownKindError: If none is registered for its kind.
    """
    return BACKENDS.find(target.kind)


def host_labels() -> list[str]:
    """Return the labels of this host's targets, the CPU's first."""
    return [target.label for target in host_targets()]


def cores_by_label() -> dict[str, int]:
    """Return the labels that workers of this host serve, and the cores of each machine.

    Besides those of this host, they are those of devices that it measures on for others.
    """
    devices = {device.target.label: device.target.num_cores for device in host_devices()}
    return {**devices, **dict.fromkeys(host_labels(), available_cores())}


def host_targets() -> list[Target]:
    """Return the targets that the backends find on this host, the CPU first."""
    kinds = sorted(BACKENDS.kinds, key=lambda kind: (kind != "cpu", kind))
    return [target for kind in kinds for target in BACKENDS.find(kind).host_targets()]


def host_devices() -> list[HostDevice]:
    """Return the devices that the backends find on this host."""
    return [device for kind in BACKENDS.kinds for device in BACKENDS.find(kind).host_devices()]


def device_for(target: Target) -> HostDevice | None:
    """Return the first device of this host that a target names; None for a CPU."""
    devices = backend_of(target).host_devices()
    return next((device for device in devices if device.target.label == target.label), None)


def device_of_process() -> HostDevice | None:
    """Return the device that this process works for, by its environment; None without one."""
    name = os.environ.get(DEVICE_VARIABLE)
    if not name:
        return None
    return next((device for device in host_devices() if device.name == name), None)
