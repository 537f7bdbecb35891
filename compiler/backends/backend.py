"""The contract of backends: how kernels for one kind of target are built, loaded and timed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.backends.error import BuildError
from compiler.backends.host_arrays import HostArrays
from compiler.backends.trial_arrays import TrialArrays
from compiler.ir.core.nodes import Stmt
from compiler.ir.core.program import PrimFunc
from compiler.runtime.artifact import Artifact, Param
from compiler.runtime.time_calls import time_calls
from compiler.target.registry import KindRegistry
from compiler.target.target import Target

if TYPE_CHECKING:
    from compiler.backends.module import Module  # which looks backends up here


@dataclass(frozen=True, slots=True)
class SourceCode:
    """The finished source code of a kernel, and what a call of it needs.

    Attributes:
        text: In the language of the backend.
        workspace_bytes: The memory that a call needs, enough for `num_threads` threads.
        num_threads: How many threads of the host a call uses at most.
    """

    text: str
    workspace_bytes: int = 0
    num_threads: int = 1


class Backend(ABC):
    """All that is done for one kind of target, between a scheduled program and its measurement.

    The driver, the modules and the workers look a backend up by the kind of a target, or by the
    name in an artifact. Programs are verified before a backend gets them. A backend has no state
    that a build changes; several threads use it at once.
    """

    kind: str
    """The kind of its targets, by which it is registered, and named in artifacts."""

    module_class: type[Module]
    """What loads its artifacts into a process."""

    @abstractmethod
    def toolchain(self) -> str:
        """Name what makes the code: a measurement is valid for one toolchain only."""

    @abstractmethod
    def host_targets(self) -> Sequence[Target]:
        """Return the targets of this host on which kernels can run; none where it has no device."""

    @abstractmethod
    def lower(self, func: PrimFunc, target: Target) -> Stmt:
        """Turn a scheduled program into one without blocks, ready for code generation.

        Raises:
            LoweringError: If there is no such program.
        """

    @abstractmethod
    def emit(self, func: PrimFunc, target: Target) -> SourceCode:
        """Lower a program, and write its source code.

        Raises:
            BuildError: If it cannot be lowered, or not be expressed.
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
            BuildError: If the compiler refuses the code.
        """

    def assembly(self, source: str, target: Target) -> str:
        """Return the assembly that source code is compiled to; empty if there is none to show."""
        del source, target
        return ""

    def build_with_constants(
        self, func: PrimFunc, target: Target, arrays: Mapping[str, Any]
    ) -> Module:
        """Build a kernel some of whose parameters never change; `driver.build` describes it.

        Raises:
            BuildError: If the backend does not do it, or the arrays do not fit the program.
        """
        names = ", ".join(arrays)
        reason = f"not supported for {target.name!r}"
        raise BuildError(f"{func.name}: const_params {names}: {reason}", "constants")

    def time_calls(self, run: Callable[[], object], num_threads: int, calls: int) -> float:
        """Return the mean seconds a call, over `calls` calls of a bound kernel: the clock."""
        return time_calls(run, num_threads, calls)

    def arrays(
        self,
        func: PrimFunc,
        inputs: Mapping[str, Any],
        expected: Mapping[str, Any],
        growth: Mapping[str, float],
    ) -> TrialArrays:
        """Return arrays to run candidates on, which compare what these wrote with the oracle.

        Args:
            inputs: What the program reads, by name; in the memory of the host.
            expected: What it should write, by name; in the memory of the host.
            growth: How rounding errors grow, by output; see `compiler.ir.interpret.error_growth`.
        """
        return HostArrays(func, inputs, expected, growth)

    def peak_flops(self, target: Target, num_cores: int) -> float | None:
        """Measure the most float32 operations a second of a target; None if it is unknown."""
        del target, num_cores
        return None


BACKENDS: KindRegistry[Backend] = KindRegistry("backend")
"""The backend of each kind; `compiler/backends/__init__.py` provides those of the project."""


def backend_of(target: Target) -> Backend:
    """Return the backend that makes kernels for a target.

    Raises:
        UnknownKindError: If none is registered for its kind.
    """
    return BACKENDS.find(target.kind)


def host_labels() -> list[str]:
    """Return the labels of the targets of this host, the CPU's first."""
    return [target.label for target in host_targets()]


def host_targets() -> list[Target]:
    """Return the targets of this host that its backends offer, the CPU first."""
    kinds = sorted(BACKENDS.kinds, key=lambda kind: (kind != "cpu", kind))
    return [target for kind in kinds for target in BACKENDS.find(kind).host_targets()]
